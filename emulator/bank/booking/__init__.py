"""The money of payments: reserved, exchanged, charged and booked, with the transactions that show it."""
