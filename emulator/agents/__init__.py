"""The bank for agents: a server of the Model Context Protocol, whose tools are made for the work of a TPP's developer.

It stands on the command line and on the Python interface, and is imported by `bank-emulator mcp` alone.
"""
