"""Signatures over HTTP requests as pure text: draft-cavage-http-signatures-10 with the bank's own rules.

Shared by the bank, which verifies, and the client, which signs. No I/O, no clock, no stored keys.
"""
