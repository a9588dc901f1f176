"""What the parser refuses is answered with a reason, and without the bytes that came."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest
from aiohttp.http import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser

from emulator.web.refusals import parser_refusal
from emulator.web.shortcut import Shortcut


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://[::1/v1/accounts", "its target cannot be read"),
        ("a:b:c", "Unexpected char in url schema"),
        ("/a b", "Bad status line: Expected HTTP/, RTSP/ or ICE/"),
    ],
)
def test_a_target_that_cannot_be_read_is_refused_with_a_reason(target: str, reason: str) -> None:
    parser = Shortcut(HttpRequestParser(Mock(), Mock(), 65536), bytearray(), Mock())
    with pytest.raises(HttpProcessingError) as refused:
        parser.feed_data(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = parser_refusal(refused.value, refused.value.message)
    (told,) = json.loads(answer.body)["tppMessages"]
    assert told["text"] == f"This is not an HTTP/1.1 request: {reason}."
