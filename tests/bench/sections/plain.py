"""The yardstick by itself: what a plain aiohttp application does on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.bench.customers import sepa_payment
from tests.bench.harness import Row, rate, raw, typical, yardstick

HEADERS = {"Host": "127.0.0.1", "Accept": "application/json", "Content-Type": "application/json"}
# What the bank is sent, but for the account: a JSON of one long text would be read and written in half the time.
BODY = json.dumps(sepa_payment({"iban": "NO4299901100019", "currency": "NOK"})).encode()


def posts(count: int) -> list[bytes]:
    """Requests that are parsed and echoed, 600 bytes of JSON each, the same that the bank gets."""
    return [raw("POST", "/echo", HEADERS, BODY)] * count


def gets(count: int) -> list[bytes]:
    """Requests for a small JSON answer."""
    return [raw("GET", "/get", HEADERS)] * count


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with yardstick() as server:
        for name, prepared in (("POST", posts(requests)), ("GET", gets(requests))):
            rate(server, prepared, expect=200)
            per_second, p50, _ = typical([rate(server, prepared, expect=200) for _ in range(rounds)])
            yield Row("plain", f"plain {name}", per_second, "1/s")
            yield Row("plain", f"plain {name}, median", p50, "ms")
