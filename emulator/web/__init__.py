"""The HTTP server: passes requests from sockets to the core and writes answers. Only it and the client use aiohttp."""
