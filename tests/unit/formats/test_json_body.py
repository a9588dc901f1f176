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


@cases(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json;charset=UTF-8",
        'application/json; charset="utf8"',
        "application/json ; version=1; charset=utf-8",
    ],
)
def test_json_in_utf_8_is_read(content_type):
    assert read_json('"ø"'.encode(), typed(content_type)) == "ø"


def test_json_in_iso_8859_1_is_read():
    assert read_json('"ø"'.encode("latin-1"), typed("application/json; charset=ISO-8859-1")) == "ø"


@cases(
    "headers, path",
    [
        (typed("text/plain"), "Content-Type"),
        (Headers([("Content-Type", ""), ("Content-Type", "application/json")]), "Content-Type"),
        (typed("application/xml"), "Content-Type"),
        (typed("application/jsonx"), "Content-Type"),
        (typed("application/json; charset=utf-16"), "Content-Type"),
        (typed("application/json; charset=windows-1252"), "Content-Type"),
        (typed("application/json; charset=us-ascii"), "Content-Type"),
        (typed("application/json; charset="), "Content-Type"),
        (Headers([("Content-Type", "application/json"), ("content-type", "text/plain")]), "Content-Type"),
        (Headers([("Content-Type", "application/json"), ("Content-Encoding", "gzip")]), "Content-Encoding"),
    ],
)
def test_other_content_is_415(headers, path):
    error = refused(b"{}", headers)
    assert (error.status, error.code, error.messages[0].path) == (415, "BAD_REQUEST", path)


def test_a_content_encoding_of_identity_changes_nothing():
    assert read_json(b"1", Headers([("Content-Encoding", "identity")])) == 1


def test_a_body_of_over_1_mib_is_413():
    whole = b'"' + b"a" * (LARGEST_BODY - 2) + b'"'
    assert len(read_json(whole, JSON)) == LARGEST_BODY - 2
    error = refused(whole + b" ")
    assert (error.status, error.code) == (413, "BAD_REQUEST")


@cases(
    "body",
    [
        b"",
        b"  \n",
        b"{",
        b"{} {}",
        b"{}x",
        b"{'a': 1}",
        b'{"a": 1,}',
        b"[1,]",
        b'{"a": NaN}',
        b"Infinity",
        b"-Infinity",
        b"1e999999",
        b"0e-999999999",
        b"0e999999999",
        b"01",
        b"+1",
        b"1.",
        b".5",
        b"0x1",
        b"9" * 5000,
        b'"\x01"',
        b'"a\nb"',
        b'"\\x"',
        b'"\\u12"',
        b"tru",
        b"\xff",
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        "\ufeff{}".encode(),
        '{"a": 1}'.encode("utf-16"),
        b"\x00",
        b"/* */ {}",
    ],
)
def test_what_is_not_well_formed_is_a_format_error(body):
    error = refused(body)
    assert (error.code, error.status, error.messages[0].path) == ("FORMAT_ERROR", None, None)


def test_the_text_says_where_the_mistake_is():
    assert refused(b'{"a": 1,\n "b" 2}').messages[0].text == (
        "The body is not well-formed JSON: expecting ':' delimiter at line 2, column 6."
    )
    assert refused(b"").messages[0].text == "A JSON body is required."
    mark = "The body is not well-formed JSON: it begins with a byte order mark."
    assert refused("\ufeff{}".encode()).messages[0].text == mark


def test_members_that_stand_twice_are_named_with_their_paths():
    body = b'{"a": {"b": 1, "c": [{"d": 1, "d": 2}], "b": 2}, "e": 1, "e": 1, "e": 2}'
    assert {message.path for message in refused(body).messages} == {"e", "a.b", "a.c[0].d"}
    assert refused(b'{"a": 1, "\\u0061": 2}').messages[0].path == "a"
    assert refused(b'{"a": 1, "a": 2, x').code == "FORMAT_ERROR"


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


@cases(
    "body",
    [
        b"[" * 500_000,
        b'{"a":' * 200_000,
        b'["]",' * 100_000,
        b"]" * 100_000 + b"[" * 100_000,
        b"[" * 33 + b'"' + b'\\"' * 400_000,
        b"[" * 33 + b'"' + b"\\" * 400_001,
    ],
)
def test_depth_without_an_end_costs_nothing(body):
    assert refused(body).code == "FORMAT_ERROR"


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


@cases(
    "text, kind",
    [
        ("a\nb", "a control character (U+000A)"),
        ("\t", "a control character (U+0009)"),
        ("\x00", "a control character (U+0000)"),
        ("\x7f", "a control character (U+007F)"),
        ("\x85", "a control character (U+0085)"),
        ("\ud800", "half of a surrogate pair (U+D800)"),
        ("\udfff", "half of a surrogate pair (U+DFFF)"),
        ("smile 😀", "a character outside the basic multilingual plane, such as an emoji (U+1F600)"),
        ("\U0010ffff", "a character outside the basic multilingual plane, such as an emoji (U+10FFFF)"),
    ],
)
def test_other_characters_are_refused_with_the_path_of_the_member(text, kind):
    messages = check_strings({"a": {"b": ["fine", text]}})
    assert [(m.code, m.path, m.text) for m in messages] == [
        ("FORMAT_ERROR", "a.b[1]", f"The bank's systems cannot process {kind}.")
    ]
    assert [m.path for m in check_strings(text)] == [None]


def test_member_names_are_looked_at_too_and_shown_with_escapes():
    assert [message.path for message in check_strings({"a": {"x\ny": 1}})] == ["a.x\\ny"]
    messages = check_strings({"a": {"x\ny": 1}, "😀": "😀"})
    assert [message.path for message in messages] == ["a.x\\ny", "😀", "😀"]


def test_a_body_of_more_members_than_any_needs_is_refused_before_it_is_read():
    entries = b"1," * MOST_VALUES
    assert len(read_json(b"[" + entries + b"1]", JSON)) == MOST_VALUES + 1
    assert "at most 100000 members and entries" in str(refused(b"[1," + entries + b"1]"))
    members = [b'"%d":0' % number for number in range(MOST_MEMBERS + 1)]
    assert len(read_json(b"{" + b",".join(members[1:]) + b"}", JSON)) == MOST_MEMBERS
    assert str(refused(b'{"a":{' + b",".join(members) + b"}}")).endswith("An object has at most 1000 members.")
