"""The shapes of bodies of requests and answers; imported with the first body.

A body is a TypedDict here: that of a payment, which its product names, in `payments.py` with the rules over several
members in `RULES`, and beside it that of a signing basket; those of sandbox operations, with their answers, in
`sandbox.py`. Other answers are in `answers.py`.
"""
