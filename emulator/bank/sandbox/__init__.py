"""Sandbox data, which a TPP creates, changes, generates and deletes for its tests."""
