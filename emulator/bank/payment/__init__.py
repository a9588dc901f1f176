"""Payments and signing baskets: initiation, signatures, progress with bank time, and views.

A flow (`flows.py`) says which statuses of the table in `bank/scheme/transitions.py` a product's payment takes and what
each changes, `progression.py` when it takes them.
"""
