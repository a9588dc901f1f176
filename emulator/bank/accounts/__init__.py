"""Accounts, cards and their transactions, and the ledger, which alone moves an account's money."""
