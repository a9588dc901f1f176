"""The rules of payments: statuses and their transitions, execution dates, and the checks of products."""
