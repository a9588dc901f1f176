"""The shapes of bodies of requests and answers; imported with the first body.

A body is a TypedDict here: that of a payment, which its product names, in `payments.py` with the rules over several
members in `RULES`, and beside it that of a signing basket; those of sandbox operations in `sandbox.py`; those of
answers in `answers.py`, `account_answers.py` and `sandbox_answers.py`.
"""
