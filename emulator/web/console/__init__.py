"""The console for people at `/console`: the bank's data and requests, and actions on them.

Pages read the bank directly. Every change is a request to the control interface, as from any other client, except
ending a session, for which that interface has no operation.

A page is a function in a module here, a row of `PAGES` in `routes.py`, a template in `templates/console` (`{% set here
= "NAME" %}` is its name in the navigation), and a name in `_PLACES` (`screen.py`). A form is a row of `ACTIONS`, and
what it has done is said in `DONE` (`screen.py`). The tests are `tests/unit/pages/test_console.py` and `tests/e2e`,
which open what is in `NAVIGATION`. A part of a template with `data-live` is drawn again after each event of `KINDS`
(`static/console.js`). `python -m tests.docs.screenshots` takes the pictures of the manual, which show it, too.
"""
