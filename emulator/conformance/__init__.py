"""Checks that judge the behaviour of a TPP, on a running bank or by a plan, and their report.

`check.py` reads the files of `checks/`: YAML, one for each check, which also says how `runner.py` prepares the bank for
it. `observer.py` queues what a bank sees; the auditor (`auditor.py`) passes each
observation (`facts.py`) to the clauses that it concerns, each of them a state machine that writes to the record of its
check. `report.py` renders the records. `runner.py` runs a TPP through all checks.

The way of an observation, and what is in memory at each place:

1. A request that was answered, a change that the bank announces, or a browser at an SCA page joins the queue
   (`Conformance`, one for each bank). No request waits for a judgement: the queue is emptied when the process is idle,
   when a report is asked for, and by two entries at a time when it is full.
2. `Auditor.request` makes it an `Observation`, whose facts are computed when a check first asks for them. The links of
   earlier answers, and the final statuses that the TPP has read, are remembered for the checks that ask for them.
3. Clauses are sorted out by event, operation and status: for each combination the auditor lists once which of them it
   can concern. Each of these tests the observation by its conditions, fact by fact.
4. First the open occasions are decided, then new ones opened, so that no observation decides its own occasion.
5. `verdicts` counts open occasions as they stand now, on a copy of the records: a report changes nothing.

    state of an occasion   becomes                      by
    (none)                 open                         an observation that matches `seen`
    (none)                 passed or failed at once     clauses about the occasion itself
    open                   passed, failed or forgotten  an observation, `until`, the end of `within`
    open                   open                         the report, in whose copy it counts as passed, failed, undecided

Forgotten, and counted nowhere, are a `next` that `until` has ended, and an `each` that no observation concerned.

Nothing is stored: a reset, `DELETE /_emulator/conformance` and the end of the process forget all (`forget`). What is
remembered is bounded, the oldest goes first: an occasion that is dropped ends as by its `until`, and an address that
was given long ago counts as made up. A document that is gone when its change is read is left out.
"""

PAGES = ("getTransactions", "getCardTransactions")
END_OF_PAGE = 2048  # the last bytes of a page, which hold its links; the rest is not judged
