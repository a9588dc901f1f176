"""The web room: carries bytes between sockets and the core; the only importer of aiohttp."""
