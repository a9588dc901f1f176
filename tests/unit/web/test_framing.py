"""Where requests begin and end, in however many pieces their bytes come."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emulator.web.framing import END, HEAD_TOO_LARGE, Framing
from emulator.web.limits import MAX_HEAD_BYTES


def head(*lines: str) -> bytes:
    return "\r\n".join(["GET / HTTP/1.1", "Host: x", *lines, "", ""]).encode()


CHUNKED = head("transfer-Encoding: chunked")
REQUESTS = {
    "bare": (head(), b""),
    "empty": (head("Content-Length: 0"), b""),
    "body": (head("X: y", "content-length:\t4 "), b"body"),
    "head in body": (head(f"Content-Length: {len(head())}"), head()),
    "chunked": (CHUNKED, b"4;a=b\r\nbody\r\n1\r\n\n\r\n0\r\nX-Trailer: 1\r\n\r\n"),
    "nothing in chunks": (CHUNKED, b"0\r\n\r\n"),
}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({place % len(data) for place in places} - {0})
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


@example(["body", "bare"], [], 0)
@example(["head in body"] * 3, [40, 41, 42], 2)
@example(["chunked", "bare"], [1, 2, 3], 1)
@given(
    st.lists(st.sampled_from(sorted(REQUESTS)), min_size=1, max_size=6),
    st.lists(st.integers(0, 1000), max_size=9),
    st.integers(0, 2),
)
def test_requests_are_told_apart_however_they_come(kinds: list[str], places: list[int], blank_lines: int) -> None:
    blank = b"\r\n" * blank_lines
    framing = Framing()
    pieces = [
        piece
        for part in cut(b"".join(blank + b"".join(REQUESTS[kind]) for kind in kinds), places)
        for piece in framing.cut(part)
    ]
    assert b"".join(pieces) == b"".join(b"".join(REQUESTS[kind]) for kind in kinds)
    assert list(framing.heads) == [REQUESTS[kind][0] for kind in kinds]
    assert (framing.count, framing.in_body, framing.partial_head, framing.fault) == (len(kinds), False, b"", None)


@given(st.lists(st.sampled_from(["bare", "body", "chunked"]), min_size=1, max_size=6))
def test_no_piece_has_a_head_behind_another_or_behind_a_body_in_chunks(kinds: list[str]) -> None:
    for piece in Framing().cut(b"".join(b"".join(REQUESTS[kind]) for kind in kinds)):
        assert piece.count(b" HTTP/1.1\r\n") <= 1
        assert b"ransfer-Encoding" not in piece or piece.endswith(END)


@given(st.lists(st.integers(0, 1000), max_size=3), st.integers(1, 60))
def test_what_is_not_whole_is_known(places: list[int], missing: int) -> None:
    whole, body = REQUESTS["body"]
    framing = Framing()
    for part in cut((whole + body + whole + body)[:-missing], places):
        framing.cut(part)
    if missing <= len(body):
        assert (framing.count, framing.in_body, framing.partial_head) == (2, True, b"")
    elif missing < len(whole + body):
        assert (framing.count, framing.in_body, framing.partial_head) == (1, False, (whole + body)[:-missing])
    else:
        assert (framing.count, framing.partial_head) == (1, b"")


@pytest.mark.parametrize("size", [MAX_HEAD_BYTES, MAX_HEAD_BYTES + 1])
@pytest.mark.parametrize("places", [[], [1000], [MAX_HEAD_BYTES - 1]])
@pytest.mark.parametrize("before", [b"", head()])
def test_a_head_has_a_largest_size(size: int, places: list[int], before: bytes) -> None:
    large = head("X: " + "x" * (size - len(head("X: "))))
    framing = Framing()
    pieces = [piece for part in cut(before + large, places) for piece in framing.cut(part)]
    if size > MAX_HEAD_BYTES:
        assert framing.fault == HEAD_TOO_LARGE
        assert list(framing.heads) == [before] * bool(before)
        assert b"".join(pieces).startswith(before)
        assert b"Host: x" in framing.partial_head
    else:
        assert (framing.fault, b"".join(pieces)) == (None, before + large)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"zz\r\n", "invalid character in chunk size"),
        (b"\r\n", "invalid character in chunk size"),
        (b"0x1\r\nx\r\n", "invalid character in chunk size"),
        (b"-1\r\n", "invalid character in chunk size"),
        (b"1 \r\nx\r\n", "invalid character in chunk size"),
        (b"f" * 17 + b"\r\n", "chunk size overflow"),
        (b"1\r\nxy\r\n", "expected CRLF after chunk data"),
        (b"1\nx\r\n", "expected CRLF at the end of a line between chunks"),
        (b"0\r\n\n", "expected CRLF at the end of a line between chunks"),
        (b"1;" + b"a" * MAX_HEAD_BYTES, f"its chunk sizes and trailers are longer than {MAX_HEAD_BYTES} bytes"),
        (
            b"0\r\n" + b"X: y\r\n" * MAX_HEAD_BYTES,
            f"its chunk sizes and trailers are longer than {MAX_HEAD_BYTES} bytes",
        ),
    ],
)
@given(places=st.lists(st.integers(0, 1000), max_size=4))
def test_chunks_whose_framing_is_broken_are_told(body: bytes, fault: str, places: list[int]) -> None:
    framing = Framing()
    for part in cut(CHUNKED + body + head(), places):
        if framing.fault is None:
            framing.cut(part)
    assert (framing.fault, framing.in_body) == (fault, True)
