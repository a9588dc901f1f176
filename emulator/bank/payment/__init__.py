"""Payments and signing baskets: initiation, signatures, progress with bank time, and views."""
