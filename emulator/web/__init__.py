"""The HTTP server: passes requests from sockets to the core and writes its answers; imports aiohttp, as the client."""
