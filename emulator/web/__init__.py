"""The HTTP server: passes requests from sockets to the core and writes answers. Only it and the client use aiohttp.

`server.py` runs an `Application` (`application.py`) on its sockets. A connection (`connection.py`) refuses what is not
HTTP (`framing.py`, `refusals.py`) and queues the rest; `handler.py` answers the queue in turns, with `answers.py` and
`events.py`. `console/`, `pages/` and `docs/` are the pages for people; they need no server.
"""
