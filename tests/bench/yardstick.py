"""The yardstick: a plain aiohttp application (asyncio, stdlib json, access log off), as anybody would write it."""

from __future__ import annotations

import sys

from aiohttp import web

ANSWER = {"transactionStatus": "RCVD", "_links": {"self": {"href": "/v1/payments/1", "verbs": ["GET"]}}}


async def echo(request: web.Request) -> web.Response:
    return web.json_response(await request.json())


async def get(request: web.Request) -> web.Response:
    return web.json_response(ANSWER)


def main() -> None:
    app = web.Application()
    app.router.add_post("/echo", echo)
    app.router.add_get("/get", get)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)


if __name__ == "__main__":
    main()
