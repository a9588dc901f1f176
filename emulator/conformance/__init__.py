"""Checks that judge the behaviour of a TPP, on a running bank or by a plan, and their report.

`check.py` reads the files of `checks/`. `observer.py` queues what a bank sees; the auditor (`auditor.py`) passes each
observation (`facts.py`) to the clauses that it concerns, each of them a state machine (`machine.py`) that writes to the
record of its check. `report.py` renders the records. `runner.py` runs a TPP through all checks.
"""
