"""The console for people at `/console`: the bank's data and requests, and actions on them.

Pages read the bank directly. Every change is a request to the control interface, as from any other client, except
ending a session, for which that interface has no operation.
"""
