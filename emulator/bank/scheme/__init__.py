"""The rulebook of payments: the table of statuses, when a payment is executed, and what makes one wrong."""
