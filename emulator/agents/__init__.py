"""The bank for agents: a server of the Model Context Protocol, whose tools are made for the work of a TPP's developer.

Its tools ask the control interface of a bank, use the command line and the Python interface, and are described in
agents.md; it is imported by `bank-emulator mcp` alone.

A tool is a method of `Tools` and a row of `TABLE`, both in `tools.py`; its docstring is what an agent reads, and
`python -m tests.docs.sections` writes agents.md. The example there is `tests/agents/journey.py`.
"""
