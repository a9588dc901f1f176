"""The console for people at `/console`: the bank's data and requests, and actions on them.

Reads come straight from the bank; every change goes through the control interface, as any other client's would, but
for the end of a session, for which that has no operation.
"""
