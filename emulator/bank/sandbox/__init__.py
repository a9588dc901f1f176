"""Sandbox data: what a TPP makes, changes, generates and removes for its tests (CONTRACT 8, 9.3)."""
