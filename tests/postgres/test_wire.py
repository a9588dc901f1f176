"""The balancer and the proxy that the other tests rely on, before plain servers."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.cluster import Cluster, ask, cluster, eventually
from tests.postgres.server import PostgreSQL
from tests.postgres.wire import Loop, Proxy


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Cluster]:
    """Three processes that know nothing of each other."""
    with cluster(tmp_path, None, "--ephemeral") as running:
        yield running


@pytest.fixture
def proxy(postgresql: PostgreSQL) -> Iterator[Proxy]:
    loop = Loop()
    running = Proxy(loop, postgresql.port).start()
    yield running
    running.stop()
    loop.close()


@pytest.mark.crash
def test_requests_go_round_and_leave_out_who_does_not_answer(three: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", three.balancer.port)
    for _ in range(6):
        connection.request("GET", "/ready")
        assert connection.getresponse().read()
    assert [node.target.requests for node in three.nodes] == [2, 2, 2]
    three.nodes[1].kill()
    for _ in range(4):
        connection.request("GET", "/ready")
        assert connection.getresponse().read()
    assert [node.target.requests for node in three.nodes] == [4, 2, 4]
    three.nodes[1].start()
    eventually(lambda: ask(three.url, "GET", "/ready")[0] == 200 and three.nodes[1].target.requests > 2)


def test_a_proxy_cuts_stalls_refuses_and_leads_elsewhere(postgresql: PostgreSQL, proxy: Proxy, store_url: str) -> None:
    url = postgresql.url(store_url.rpartition("/")[2], port=proxy.port)
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    proxy.flow()
    psycopg.connect(url).close()
    proxy.stall()
    with socket.create_connection(("127.0.0.1", proxy.port)) as waiting:
        waiting.sendall(b"\0\0\0\x08\x04\xd2\x16/")  # asks for TLS; the answer would be one byte
        waiting.settimeout(0.1)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        proxy.flow()
        waiting.settimeout(10)
        assert waiting.recv(1) in (b"N", b"S")
    proxy.lead_to(1)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
