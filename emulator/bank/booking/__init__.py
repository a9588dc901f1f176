"""The money of payments: held back, exchanged, charged and booked, with the transactions that tell of it."""
