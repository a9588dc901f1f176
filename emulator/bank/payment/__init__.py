"""Payments and signing baskets: initiated, signed, carried on by bank time, and shown."""
