"""When gzip is asked for (RFC 9110, 12.5.3)."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.messages import Response
from emulator.api.render import wants_gzip
from emulator.web.wire import encoded
from tests.cases import cases


@cases(
    "value",
    ["gzip", "GZip", "deflate, gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1", "*", "gzip;q=0.001", "gzip ; q=1", "x-gzip",
     "gzip, identity", "identity;q=0.5, gzip;q=0.5", "identity;q=0, *"],
)  # fmt: skip
def test_gzip_is_asked_for(value: str) -> None:
    assert wants_gzip(value)


@cases(
    "value",
    ["", "identity", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "gzip;q=0, *", "identity, gzip;q=0.5", "gzipx",
     "gzip;q=-1", "gzip;q=nan", "gzip;q=x", "gzip;q=", "gzip;q=1e9", "gzip;q=٣"],
)  # fmt: skip
def test_gzip_is_not_asked_for(value: str) -> None:
    assert not wants_gzip(value)


@given(st.text())
def test_any_value_is_understood(value: str) -> None:
    assert wants_gzip(value) in (True, False)


def test_the_coding_is_said_and_the_same_bytes_give_the_same_bytes() -> None:
    response = Response(200, [("Content-Type", "text/plain")], b"hei" * 9)
    answers = [encoded(response, "gzip") for _ in range(2)]
    assert answers[0] == answers[1]
    assert response == Response(200, [("Content-Type", "text/plain")], b"hei" * 9)
    assert answers[0].headers[1:] == [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    assert gzip.decompress(answers[0].body) == b"hei" * 9


@cases("accept_encoding", ["", "br", "gzip"])
@cases("own", [None, ("Vary", "Accept-Encoding, Accept-Language"), ("vary", "Cookie")])
def test_what_decides_is_said_once_and_compressed_or_not(accept_encoding: str, own: tuple[str, str] | None) -> None:
    sent = encoded(Response(200, [own] if own else [], b"hei"), accept_encoding)
    assert (dict(sent.headers).get("Content-Encoding") == "gzip") == (accept_encoding == "gzip")
    assert [value for name, value in sent.headers if name.lower() == "vary"] == [own[1] if own else "Accept-Encoding"]


def test_nothing_and_what_is_coded_already_are_left_alone() -> None:
    for response in (Response(204), Response(200, [("content-encoding", "br")], b"x")):
        assert encoded(response, "gzip") is response
