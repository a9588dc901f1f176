"""Payments and signing baskets: initiated, signed, advanced by bank time, and shown."""
