"""A log in PostgreSQL, for processes that share banks: each bank has one of them as its home.

`layout.py` has the tables and their versions. `connection.py` is the way to the server, on which every wait is limited,
and says why one cannot be used; `leases.py` says who is the home of a bank, `log.py` stores the changes of the banks
that a process is the home of. Nothing here is imported without `--store`.

It uses primary keys and row locks only, and each statement of a serving process is a transaction of its own, so that
pgbouncer in transaction mode works.
"""
