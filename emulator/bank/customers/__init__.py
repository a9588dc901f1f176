"""Customers, the accounts that they may use, and the consents and sessions with which a TPP acts for them."""
