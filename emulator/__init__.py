"""A standalone sandbox bank for open banking developers."""

__version__ = "0.1.0"
