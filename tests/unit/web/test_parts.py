"""An answer in parts: each is made when it is sent, so that nobody waits for all of them and none is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from emulator.api.messages import BodyParts, Request, Response
from tests.e2e.serving import MadeUpSite
from tests.unit.web.peer import Peer, connections_of, turn

PIECE = b"0123456789" * 100
COUNT = 10


class Site(MadeUpSite):
    def __init__(self) -> None:
        super().__init__()
        self.produced = 0
        self.seen: list[int] = []
        self.answers["/large"] = self.large
        self.answers["/small"] = self.small

    def large(self, _request: Request) -> Response:
        def pieces() -> Iterator[bytes]:
            for _ in range(COUNT):
                self.produced += 1
                yield PIECE

        return Response(200, [("Content-Type", "text/plain")], parts=BodyParts(COUNT * len(PIECE), pieces()))

    def small(self, _request: Request) -> Response:
        self.seen.append(self.produced)
        return Response(200, [], b"small")


@pytest.fixture
def site() -> Site:
    return Site()


async def asked(site: Site, head: str, rounds: int = 1) -> Peer:
    peer = Peer(connections_of(site))
    peer.connection.data_received(head.encode())
    for _ in range(rounds):
        await turn()
    return peer


def body(peer: Peer) -> bytes:
    return peer.got.partition(b"\r\n\r\n")[2]


async def test_it_has_its_length_and_all_parts_and_the_connection_goes_on(site: Site) -> None:
    peer = await asked(site, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    assert f"Content-Length: {COUNT * len(PIECE)}\r\n".encode() in peer.got
    assert body(peer) == PIECE * COUNT
    peer.ask("/small")
    await turn()
    assert peer.statuses == [200, 200]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_it_comes_as_it_is_whatever_the_client_accepts(site: Site, version: str) -> None:
    peer = await asked(site, f"GET /large HTTP/{version}\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
    assert (body(peer), b"Encoding" in peer.got, peer.no_more) == (PIECE * COUNT, False, version == "1.0")


async def test_head_makes_no_part(site: Site) -> None:
    peer = await asked(site, "HEAD /large HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (peer.statuses, body(peer), site.produced) == ([200], b"", 0)


async def test_others_are_answered_between_the_parts(site: Site) -> None:
    connections = connections_of(site)
    slow, other = Peer(connections), Peer(connections)
    slow.ask("/large")
    while not site.produced:
        await asyncio.sleep(0)
    other.ask("/small")
    await turn()
    assert other.statuses == [200]
    assert 0 < site.seen[0] < COUNT
    assert body(slow) == PIECE * COUNT


async def test_a_client_that_does_not_read_gets_no_more(site: Site) -> None:
    peer = Peer(connections_of(site))
    peer.connection.pause_writing()
    peer.ask("/large")
    await turn()
    assert site.produced == 0
    peer.connection.resume_writing()
    await turn()
    assert body(peer) == PIECE * COUNT


async def test_a_client_that_leaves_ends_it(site: Site) -> None:
    peer = Peer(connections_of(site))
    peer.connection.pause_writing()
    peer.ask("/large")
    await turn()
    peer.leave()
    await turn()
    assert site.produced <= 1
