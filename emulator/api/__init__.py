"""The TPP interface `/v1`: a table of operations and one pipeline of gates over the synchronous core."""
