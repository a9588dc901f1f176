"""What the wire refuses of a head, with a reason and without the bytes that came; what of a head reaches the core."""

from __future__ import annotations

import asyncio
import json

from hypothesis import example, given
from hypothesis import strategies as st

from emulator.web.wire import MAX_BODY_BYTES, MAX_HEADERS
from tests.e2e.serving import MadeUpSite, get, head
from tests.unit.web.peer import Peer, connections_of, turn


async def asked(data: bytes) -> tuple[list[int], str, list[tuple[str, str]]]:
    """The statuses that `data` is answered with, the text of a refusal, and the headers that reached the core."""
    application = MadeUpSite()
    peer = Peer(connections_of(application))
    peer.connection.data_received(data)
    await turn()
    statuses, text = peer.statuses, ""
    if statuses and statuses[0] >= 400 and peer.last:
        text = json.loads(peer.last)["tppMessages"][0]["text"]
    headers = list(application.requests[0].headers) if application.requests else []
    peer.leave()
    await turn()
    return statuses, text, headers


async def test_a_host_that_is_none_is_400() -> None:
    for host in ("a b", "a/b", "a@b", "a:b", "a:1:2", "[::1", "å", "a%2", "a\tb", "x:-1"):
        statuses, text, _ = await asked(get("/").replace(b"localhost", host.encode()))
        assert (statuses, text) == ([400], "Host is not a host name or address with an optional port."), host


async def test_a_content_length_may_have_any_number_of_zeros() -> None:
    for digits, statuses in (("0" * 5000 + "2", [200]), ("0" * 5000 + str(MAX_BODY_BYTES + 1), [413])):
        data = get("/").removesuffix(b"\r\n") + f"Content-Length: {digits}\r\n\r\n{{}}".encode()
        assert (await asked(data))[0] == statuses


async def test_a_host_that_can_be_one_passes() -> None:
    for host in ("", "a", "a:80", "a:", "[::1]:80", "xn--a.b-c_d", "a%20b", "1.2.3.4:65536"):
        assert (await asked(get("/").replace(b"localhost", host.encode())))[0] == [200]


LINES = st.sampled_from(
    [
        "Content-Length: 0",
        "Content-Length: 4",
        "Content-Length: 18446744073709551615",
        f"Content-Length: {'0' * 5000}4",
        f"Content-Length: {MAX_BODY_BYTES + 1}",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding:",
        "Expect: 100-continue",
        "Expect: more",
        "Expect:",
        "Connection: close",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "X: y",
    ]
)
TARGETS = st.sampled_from(
    ["/", "/v1/payments?a=b", "/a#b", "/#", "*", "http://there/x", "http://localhost/x", "localhost:80", "//", "x"]
)


@example("GET", "/", "1.1", ["X: y"] * MAX_HEADERS, b"")
@example("GET", "/", "1.1", [f"X: {20_000 * 'x'}"] * 4, b"")
@given(
    st.sampled_from(["GET", "POST", "OPTIONS", "HEAD", "CONNECT"]),
    TARGETS,
    st.sampled_from(["1.1", "1.0", "0.9", "2.0"]),
    st.lists(LINES, max_size=4),
    st.sampled_from([b"", b"body", b"4\r\nbody\r\n0\r\n\r\n"]),
)
def test_no_request_reaches_the_core_that_is_not_plain(
    method: str, target: str, version: str, lines: list[str], body: bytes
) -> None:
    """The rules of `refusals` once more, in other words, over what has reached the core."""

    async def ask() -> list[tuple[str, str]]:
        return (await asked(head(method, target, *lines, version=version) + body))[2]

    sent = {name.lower(): value for name, value in asyncio.run(ask())}
    if sent:
        assert method != "CONNECT"
        assert "#" not in target
        assert version in ("1.0", "1.1")
        assert target.startswith("/") or target == "http://localhost/x" or (method, target) == ("OPTIONS", "*")
        assert sent.get("transfer-encoding", "chunked") == "chunked"
        assert "transfer-encoding" not in sent or ("content-length" not in sent and version == "1.1")
        assert sent.get("expect", "100-continue") == "100-continue"
        assert int(sent.get("content-length", 0)) <= MAX_BODY_BYTES
        assert len(sent) <= MAX_HEADERS


async def test_blanks_behind_a_value_are_no_part_of_it() -> None:
    for sent, read in (
        ("y", "y"),
        ("y \t ", "y"),
        ("", ""),
        ("a b", "a b"),
        # white space, but no blank of HTTP
        ("y\xa0", "y\xa0"),
        ("y\x85", "y\x85"),
        ("y\u3000 ", "y\u3000"),
    ):
        _, _, headers = await asked(get("/", "A: b", f"X: {sent}", "C: d"))
        assert headers == [("Host", "localhost"), ("A", "b"), ("X", read), ("C", "d")]
