"""Serves banks from a store that processes share: the banks, their turns, the sandbox CA, and copies of a store.

`starting.py` joins a process to the service, if its flags fit. `turns.py` lets requests wait for the turns of their
bank; `needs.py` is what a turn fetches and locks, `running.py` one turn from there to its commit. `registry.py` has the
banks that there are, `open_bank.py` one of them in memory; `upkeep.py` follows other processes and writes checkpoints.
`authority.py` is the CA. `copying.py` copies a whole service between directories and PostgreSQL, whose tables
`shared_store.py` reads, writes and checks.
"""
