"""On which addresses a process that serves listens, and how many files it may have open."""

from __future__ import annotations

import resource
import socket

import pytest

from emulator.web import server

UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "most", "then"),
    [
        (1024, 1_048_576, UNLIMITED, 65536),
        (1024, 4096, UNLIMITED, 4096),
        (100_000, UNLIMITED, UNLIMITED, 100_000),
        (UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED),
        (256, UNLIMITED, 61440, 10240),  # macOS, where the most stands in kern.maxfilesperproc
        (20_000, UNLIMITED, 61440, 20_000),
        (256, UNLIMITED, 5000, 256),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_takes_it(
    soft: int, hard: int, most: int, then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = (soft, hard)

    def set_limits(_what: int, wanted: tuple[int, int]) -> None:
        nonlocal limits
        if most != UNLIMITED and wanted[0] > most:
            raise ValueError("current limit exceeds maximum limit")
        limits = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    server.raise_file_limit()
    assert limits == (then, hard)


def families(hosts: list[str]) -> set[tuple[int, str]]:
    """Family and address on which it listens for `hosts`, all at the same port."""
    sockets = server.listen(hosts, 0, copies=2)
    names = {(bound.family, bound.getsockname()[0]) for bound in sockets}
    ports = {bound.getsockname()[1] for bound in sockets}
    for bound in sockets:
        bound.close()
    assert len(ports) == 1
    return names


IPV4, IPV6 = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")


def test_several_addresses_have_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    assert families(["127.0.0.1", "::1", "127.0.0.1"]) == {IPV4, IPV6}
    assert families(["::"]) == {(socket.AF_INET6, "::")}
    assert families(["localhost"]) == {IPV4, IPV6}
    monkeypatch.setattr(server, "_has_ipv6", lambda: False)
    assert families(["localhost"]) == {IPV4}


def test_a_port_that_is_free_on_one_address_only_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    bind, taken = server._bound, []

    def bound(family: int, host: str, port: int, flag: str) -> socket.socket:
        if host == "::1" and not taken:
            taken.append(port)
            raise server.CannotListen(flag, f"port {port} is in use")
        return bind(family, host, port, flag)

    monkeypatch.setattr(server, "_bound", bound)
    assert families(["localhost"]) == {IPV4, IPV6}
    assert taken != []
    taken.clear()
    with pytest.raises(server.CannotListen, match="port 65000 is in use"):
        server.listen(["localhost"], 65000)
