"""The HTTP server: passes requests from sockets to the core and writes answers. Only it, the clients and `testing` use
aiohttp.

    server.py        listening sockets, signals, the end; a loop in a thread for banks beside other work
    connection.py    bytes to complete requests, by aiohttp's parser, and answers back; all time limits
    wire.py          the head of a request, read or refused before anybody is asked; an answer as bytes
    handler.py       complete requests to the application, in turns, and what it demands of that; what falls due while
                     somebody watches

Nothing is parsed twice: what the parser refuses is 400 and the end of the connection, what it takes is taken, except
for the rules in `wire.head_refusal`. `console/` and `pages/` are the pages for people; they need no
server.
"""
