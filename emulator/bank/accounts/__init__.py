"""What customers hold: accounts, cards and their transactions, and the ledger that alone moves an account's money."""
