"""The console for people at `/console`: what the bank holds and has seen, and what may be done with it.

Reads come straight from the bank; every change goes through the control interface, as any other client's would, but
for the end of a session, for which that has no operation.
"""
