"""The money of payments: reserve, charge and book it, and the transactions that result."""
