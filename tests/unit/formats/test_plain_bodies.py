"""Bodies whose strings need no look: `is_plain` never says so of one that `check_strings` would refuse."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.json_body import check_strings, read_json
from emulator.bank.formats import is_plain


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=12), max_size=4), st.booleans())
def test_a_plain_body_has_nothing_to_refuse(value: dict[str, str], escaped: bool) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    if is_plain(body):
        assert check_strings(read_json(body, Headers())) == []


def test_escapes_and_delete_are_not_plain() -> None:
    assert is_plain(b'{"name": "Kari"}')
    for body in (b'{"name": "\\u0007"}', b'{"name": "\\n"}', b'{"name": "\x7f"}', '{"name": "å"}'.encode()):
        assert not is_plain(body)
