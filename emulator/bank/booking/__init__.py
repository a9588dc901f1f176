"""The money of payments: reserve, convert, charge and book it, and the transactions that result."""
