"""The documentation at `/docs`: the manual, the operations of both interfaces, and a search over all of it."""
