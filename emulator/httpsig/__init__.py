"""Signatures over HTTP requests as pure text: draft-cavage-http-signatures-10 with the bank's own rules (SPEC 5.2).

What the bank that verifies and the client that signs share. No I/O, no clock, no keys.
"""
