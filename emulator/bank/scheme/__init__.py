"""The rules of payments: statuses and their transitions, execution dates, and the checks of products.

The cut-off, 14:00 for all products, is in `execution.py`, and in words at `calendar` (`bank/settings.py`) and in
payments.md.
"""
