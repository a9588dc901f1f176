"""The rules of payments: the table of statuses, when a payment is executed, and what is wrong with one."""
