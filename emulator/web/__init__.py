"""The web room: carries bytes between sockets and the core; beside the client the only importer of aiohttp."""
