"""Claims addresses that answer nonsense: each is a sentence, and nothing but beliefs reaches the bank."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from emulator.conformance.program import claims_of


@contextmanager
def answering(raw: bytes) -> Iterator[str]:
    """The address of a server that sends these bytes to one request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(raw)

        thread = Thread(target=once)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"SSH-2.0-server\r\n", "cannot be reached"),
        (http(b"[" * 60_000), "not JSON"),
        (http(b"<html>"), "not JSON"),
        (http(b"[1]"), "not an object"),
        (http(b'{"state": "perhaps"}'), "the state 'perhaps', which is none of paid, open, failed"),
    ],
)
def test_nonsense_is_a_sentence(raw: bytes, problem: str) -> None:
    with answering(raw) as address:
        beliefs, problems = claims_of(address, {"payments": ["payment"]})
    assert beliefs == {}
    assert [problem in text for text in problems] == [True]


def test_an_address_that_is_none_is_a_sentence() -> None:
    assert claims_of("http://[", {"payments": ["payment"]})[0] == {}


def test_members_of_the_tpps_own_are_left_out() -> None:
    with answering(http(b'{"state": "paid", "id": "7", "transactions": [], "rate": NaN}')) as address:
        assert claims_of(address, {"payments": ["payment"]}) == ({"payment": {"state": "paid"}}, [])
