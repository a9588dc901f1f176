"""The yardsticks: plain aiohttp applications (asyncio, stdlib json, access log off), as anybody would write them.

`/get` and `/echo` do nothing else than carry JSON. Every other address is `verify`: what any server must do that
checks the signatures that TPPs send, and nothing more: the body parsed and hashed, the RSA signature checked with the
client's key at hand, the answer written. No bank that checks signatures can be faster on this stack.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from functools import lru_cache

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import load_der_x509_certificate

ANSWER = {"transactionStatus": "RCVD", "_links": {"self": {"href": "/v1/payments/1", "verbs": ["GET"]}}}
_SIGNATURE = re.compile(r'headers="([^"]*)".*signature="([^"]*)"')
_PADDING, _HASH = PKCS1v15(), SHA256()


async def echo(request: web.Request) -> web.Response:
    return web.json_response(await request.json())


async def get(request: web.Request) -> web.Response:
    return web.json_response(ANSWER)


@lru_cache
def key_of(certificate: str) -> RSAPublicKey:
    key = load_der_x509_certificate(base64.b64decode(certificate)).public_key()
    if not isinstance(key, RSAPublicKey):
        raise web.HTTPBadRequest
    return key


async def verify(request: web.Request) -> web.Response:
    body = await request.read()
    headers = request.headers
    if body and headers["Digest"] != "SHA-256=" + base64.b64encode(hashlib.sha256(body).digest()).decode():
        raise web.HTTPBadRequest
    parameters = _SIGNATURE.search(headers["Signature"])
    if parameters is None:
        raise web.HTTPBadRequest
    listed, signature = parameters.groups()
    sent = {name.lower(): value for name, value in headers.items()}
    sent["(request-target)"] = f"{request.method.lower()} {request.raw_path}"
    text = "\n".join([f"{name}: {sent[name]}" for name in listed.lower().split()])
    key = key_of(headers["TPP-Signature-Certificate"])
    key.verify(base64.b64decode(signature), text.encode(), _PADDING, _HASH)
    if not body:
        return web.json_response(ANSWER)
    return web.json_response(await request.json(), status=201)


def main() -> None:
    app = web.Application()
    app.router.add_post("/echo", echo)
    app.router.add_get("/get", get)
    app.router.add_post("/v1/payments/{product}", verify)
    app.router.add_get("/v1/payments/{product}/{payment}/status", verify)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)


if __name__ == "__main__":
    main()
