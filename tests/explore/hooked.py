"""The good TPP as a program of its own would be: it waits for runs at a hook, and tells its claims."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from emulator.client import TppResponse
from emulator.client.clients import Prepared, ResponseHeaders, Tpp
from emulator.client.signing import Identity
from tests.explore.merchant import Merchant


class HttpWorld:
    """What surrounds the TPP: real connections, and no pauses. Each request takes `pause` seconds of work."""

    def __init__(self, url: str, national_id: str, context: str, pause: float) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self.national_id, self.context = national_id, context
        self._pause = pause

    def send(self, prepared: Prepared) -> TppResponse | None:
        time.sleep(self._pause)
        connection = HTTPConnection(self._host, self._port, timeout=10)
        try:
            connection.request(prepared.method, prepared.target, prepared.body or None, prepared.headers)
            answer = connection.getresponse()
            return TppResponse(answer.status, ResponseHeaders(answer.getheaders()), answer.read())
        except (HTTPException, OSError):
            return None
        finally:
            connection.close()

    def wait(self, seconds: float) -> None:
        """Its pauses are set to nothing, except where it waits for the customer's return."""
        time.sleep(0.002)

    def browse(self, link: str) -> None:
        connection = HTTPConnection(self._host, self._port, timeout=10)
        connection.request("GET", urlsplit(link).path)
        connection.getresponse().read()
        connection.close()

    def customer_is_there(self) -> bool:
        return True


class HttpMerchant(Merchant):
    """It waits for the customer's return in real time."""

    hook_status = 200  # of the hook's answer after a run

    def approve(self, link: str) -> None:
        self.world.browse(link)
        for _ in range(100):
            if self.flows[self.state] is not None:
                return
            time.sleep(0.002)


@cache  # all runs of a search have the same, and reading a key takes longer than a request
def identity(certificate: str, key: str) -> Identity:
    return Identity.from_pem(certificate.encode(), key.encode())


@contextmanager
def hooked(
    shop: type[Merchant] = HttpMerchant, world: type[HttpWorld] = HttpWorld, *, pause: float = 0.0
) -> Iterator[str]:
    """The base address: `/run` is the hook, `/claims/{run}` the claims; of a plan `/claims/{check}`."""
    merchants: dict[str, Merchant] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/notifications":
                self._answer(204)
                return
            tpp = Tpp(wanted["url"], identity(wanted["certificate"], wanted["key"]))
            name = wanted.get("run") or wanted["check"]
            merchant = shop(
                world(wanted["url"], wanted["national_id"], wanted["context"], pause),
                tpp,
                debtor=wanted["debtor"],
                tasks=tuple(wanted["task"].split()),
            )
            home = f"http://127.0.0.1:{self.server.server_address[1]}"
            merchant.home = f"{home}/{name}"
            tpp.notification_uri = f"{home}/notifications" if "check" in wanted else None
            merchants[name] = merchant
            merchant.run()
            self._answer(merchant.hook_status)

        def do_GET(self) -> None:
            first, second, *rest = self.path.strip("/").split("/")
            if not {first, second} & merchants.keys():
                self._answer(500)
            elif first == "claims":
                claim = merchants[second].claim(*rest)
                self._answer(404 if claim is None else 200, claim)
            else:
                merchants[first].returned(f"http://127.0.0.1{self.path}")
                self._answer(200)

        def _answer(self, status: int, body: Any = None) -> None:
            content = json.dumps(body or {}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Brief(HttpMerchant):
    """It gives a payment up after a few reads, and looks at it again at the end."""

    most_reads = 2


if __name__ == "__main__":
    with hooked(Brief, pause=float(sys.argv[1])) as address:
        print(address, flush=True)
        threading.Event().wait()
