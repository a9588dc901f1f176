"""The head of an answer: which lines it has, and what it never holds."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.messages import Response, Stream
from emulator.web import wire
from emulator.web.wire import CLOSE, head

HEADERS = st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4)
NOON = 1735732800  # 2025-01-01


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def show(now: float) -> None:
        monkeypatch.setattr(wire, "time", lambda: now)

    return show


def lines(written: bytes) -> list[str]:
    assert written.endswith(b"\r\n\r\n")
    return written.decode()[:-4].split("\r\n")


def test_the_lines_of_a_head_stand_in_their_order(clock: Callable[[float], None]) -> None:
    clock(NOON + 0.9)
    answer = Response(201, [("Content-Type", "text/plain"), ("X-Name", "Zo\u00eb\u200b")], b"body")
    assert lines(head(answer, ["Content-Length: 4", CLOSE])) == [
        "HTTP/1.1 201 Created",
        "Content-Type: text/plain",
        "X-Name: Zo\u00eb\u200b",
        "Content-Length: 4",
        "Connection: close",
        "Date: Wed, 01 Jan 2025 12:00:00 GMT",
        "Server: bank-emulator",
    ]


def test_the_date_goes_on(clock: Callable[[float], None]) -> None:
    dates = []
    for second in (0.0, 0.9, 1.0, 86_400.0):
        clock(NOON + second)
        dates.append(lines(head(Response(299), []))[1])
    assert dates == [
        "Date: Wed, 01 Jan 2025 12:00:00 GMT",
        "Date: Wed, 01 Jan 2025 12:00:00 GMT",
        "Date: Wed, 01 Jan 2025 12:00:01 GMT",
        "Date: Thu, 02 Jan 2025 12:00:00 GMT",
    ]


def test_a_date_of_the_answer_stays_the_only_one() -> None:
    assert lines(head(Response(299, [("Date", "then")]), [])) == [
        "HTTP/1.1 299 ",
        "Date: then",
        "Server: bank-emulator",
    ]


@given(headers=HEADERS, stream=st.booleans())
def test_control_characters_do_not_get_out(headers: list[tuple[str, str]], stream: bool) -> None:
    answer = Stream(200, headers, lambda _: lambda: None) if stream else Response(200, headers)
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", "".join(name + value for name, value in headers)):
        with pytest.raises(ValueError, match="control character"):
            head(answer, [])
    else:
        assert lines(head(answer, []))[1 : 1 + len(headers)] == [f"{name}: {value}" for name, value in headers]
