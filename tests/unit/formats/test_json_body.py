"""Reading JSON bodies (requests.md#bodies)."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.json_body import DEEPEST, LARGEST_BODY, MOST_MEMBERS, MOST_VALUES, check_strings, read_json
from emulator.bank.errors import BankError
from emulator.bank.formats import is_plain
from tests.cases import cases

JSON = Headers([("Content-Type", "application/json")])


def refused(body: bytes, headers: Headers = JSON) -> BankError:
    with pytest.raises(BankError) as caught:
        read_json(body, headers)
    return caught.value


def typed(value: str) -> Headers:
    return Headers([("Content-Type", value)])


def test_a_body_is_one_json_value():
    assert read_json(b' {"a": [1, "b", true, null]} \r\n', JSON) == {"a": [1, "b", True, None]}
    assert read_json(b"[]", Headers()) == []
    assert read_json(b"[]", typed("")) == []
    assert read_json(b"[]", Headers([("X-Other", "1"), ("X-Other", "2")])) == []
    assert read_json('"å"'.encode(), JSON) == "å"


def test_a_content_encoding_of_identity_changes_nothing():
    assert read_json(b"1", Headers([("Content-Encoding", "identity")])) == 1


def test_a_body_of_over_1_mib_is_413():
    whole = b'"' + b"a" * (LARGEST_BODY - 2) + b'"'
    assert len(read_json(whole, JSON)) == LARGEST_BODY - 2
    error = refused(whole + b" ")
    assert (error.status, error.code) == (413, "BAD_REQUEST")


def test_the_text_says_where_the_mistake_is():
    assert refused(b'{"a": 1,\n "b" 2}').messages[0].text == (
        "The body is not well-formed JSON: expecting ':' delimiter at line 2, column 6."
    )
    assert refused(b"").messages[0].text == "A JSON body is required."
    mark = "The body is not well-formed JSON: it begins with a byte order mark."
    assert refused("\ufeff{}".encode()).messages[0].text == mark


def test_a_flood_of_mistakes_is_cut():
    body = b"[" + b",".join([b'{"a":1,"a":2}'] * 3000) + b"]"
    assert len(refused(body).messages) == 1000


@cases("open_, close", [("[", "]"), ('{"a":', "}")])
def test_32_levels_are_read_and_33_are_not(open_, close):
    deepest = open_ * (DEEPEST - 1) + "[]" + close * (DEEPEST - 1)
    assert read_json(deepest.encode(), JSON)
    assert (
        refused((open_ + deepest + close).encode()).messages[0].text == "The body is nested more than 32 levels deep."
    )


def test_brackets_in_strings_and_beside_one_another_are_no_depth():
    assert read_json(json.dumps(["[" * 100, '{"\\"[' * 50]).encode(), JSON)
    assert len(read_json(json.dumps([[]] * 1000).encode(), JSON)) == 1000


def test_numbers_keep_what_was_written():
    assert read_json(b"[0.1, 1e2, -5, 12345678901234567.89]", JSON) == [
        Decimal("0.1"),
        Decimal("1E+2"),
        -5,
        Decimal("12345678901234567.89"),
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_json_can_say_is_read_back(value):
    assert read_json(json.dumps(value, ensure_ascii=True).encode(), JSON) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.eE+-\\ua tfn', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(body):
    try:
        value = read_json(body, JSON)
    except BankError:
        return
    assert check_strings(value) is not None


@cases("text", ["a", "Ærlig Øyvind Å", "Ünïcode – “quotes” €", "日本", "\u2028", "ﷺ"])
def test_text_of_the_basic_multilingual_plane_is_processed(text):
    assert check_strings({"a": [text], text: 1}) == []


def test_a_body_of_more_members_than_any_needs_is_refused_before_it_is_read():
    entries = b"1," * MOST_VALUES
    assert len(read_json(b"[" + entries + b"1]", JSON)) == MOST_VALUES + 1
    assert "at most 100000 members and entries" in str(refused(b"[1," + entries + b"1]"))
    members = [b'"%d":0' % number for number in range(MOST_MEMBERS + 1)]
    assert len(read_json(b"{" + b",".join(members[1:]) + b"}", JSON)) == MOST_MEMBERS
    assert str(refused(b'{"a":{' + b",".join(members) + b"}}")).endswith("An object has at most 1000 members.")


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=12), max_size=4), st.booleans())
def test_a_plain_body_has_nothing_to_refuse(value: dict[str, str], escaped: bool) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    if is_plain(body):
        assert check_strings(read_json(body, Headers())) == []


def test_escapes_and_delete_are_not_plain() -> None:
    assert is_plain(b'{"name": "Kari"}')
    for body in (b'{"name": "\\u0007"}', b'{"name": "\\n"}', b'{"name": "\x7f"}', '{"name": "å"}'.encode()):
        assert not is_plain(body)
