"""Signatures over HTTP requests as pure text: draft-cavage-http-signatures-10 with the rules of SPEC 5.2.

What the bank that verifies and the client that signs share. No I/O, no clock, no keys.
"""
