"""The text of the Signature header: parameters, RFC 2047 wrapping, and no input that breaks the reader."""

from __future__ import annotations

import contextlib
from email.header import Header

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.httpsig.signing import HeaderUnreadable, SignatureHeader, header_text, parse, unwrap
from tests.cases import cases
from tests.unit.signature.making import encoded_word

FULL = 'keyId="SN=1,CA=CN=a\\, b=c",algorithm="rsa-sha256",headers="date digest",signature="eA=="'
READ = SignatureHeader("SN=1,CA=CN=a\\, b=c", "rsa-sha256", "date digest", "eA==")


def test_the_documented_form_is_read() -> None:
    assert parse(FULL) == READ
    key_id = "SN=1,CA=CN=a\\, b=c"
    assert header_text(key_id=key_id, algorithm="rsa-sha256", names=["date", "digest"], signature="eA==") == FULL


@cases(
    "text",
    [
        'signature="eA==",headers="date digest",algorithm="rsa-sha256",keyId="SN=1,CA=CN=a\\, b=c"',
        FULL.replace('",', '" , '),
        FULL.replace('d="', 'd = "').replace('s="', 's= "'),
        "," + FULL + ",,",
        FULL.replace(",algorithm", ",\t\talgorithm"),
    ],
)
def test_order_blanks_and_empty_elements_do_not_matter(text: str) -> None:
    assert parse(text) == READ


def test_an_escaped_quote_does_not_end_the_string_and_backslashes_stay() -> None:
    assert parse('keyId="CN=\\"x\\",signature=\\"",signature="y"') == SignatureHeader(
        'CN=\\"x\\",signature=\\"', None, None, "y"
    )
    assert parse('keyId="a\\\\",signature="y"').key_id == "a\\\\"


def test_an_unknown_parameter_is_noted_quoted_or_not() -> None:
    read = parse('keyId="x",created=1,opaque="y"')
    assert (read.key_id, read.algorithm, read.headers, read.signature) == ("x", None, None, None)
    assert read.notes == ("Signature: unknown parameter created ignored", "Signature: unknown parameter opaque ignored")


VALUE = st.text(st.characters(codec="utf-8", exclude_characters='"\\'), max_size=20)


@given(VALUE, VALUE, VALUE, VALUE)
def test_any_values_are_read_as_they_stand(a: str, b: str, c: str, d: str) -> None:
    text = f'keyId="{a}",algorithm="{b}", headers="{c}",signature="{d}"'
    assert parse(text) == SignatureHeader(a, b, c, d)
    assert parse(text + ",") == parse(text)


@cases(
    "text",
    [
        'keyId="a"algorithm="b",headers="c",signature="d"',
        'keyId="a",keyId="b",headers="c",signature="d"',
        'keyId="a\\",algorithm="b",headers="c",signature="d"',
    ],
)
def test_odd_texts_are_refused(text: str) -> None:
    with pytest.raises(HeaderUnreadable):
        parse(text)


@given(st.text(max_size=200) | st.text(alphabet='keyId="\\, \tsn=', max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(HeaderUnreadable):
        assert isinstance(parse(text), SignatureHeader)


@cases("text", ['keyId="' + "\\a" * 50_000, "a" * 100_000, "a=" * 50_000, 'a="b"' + " " * 100_000 + "x", '"' * 100_000])
def test_long_nonsense_is_refused_without_delay(text: str) -> None:
    """Quadratic work on 100,000 characters would take minutes."""
    with pytest.raises(HeaderUnreadable):
        parse(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=80), st.sampled_from("BQ"))
def test_wrapped_text_comes_back(text: str, encoding: str) -> None:
    assert unwrap(encoded_word(text, encoding=encoding)) == text


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_categories=["Cc"]), max_size=80),
    st.sampled_from("BQ"),
)
def test_wrapped_text_comes_back_from_iso_8859_1(text: str, encoding: str) -> None:
    assert unwrap(encoded_word(text, charset="iso-8859-1", encoding=encoding)) == text


@cases("charset", ["utf-8", "iso-8859-1"])
def test_several_encoded_words_as_pythons_email_writes_them_are_joined(charset: str) -> None:
    text = FULL.replace("CN=a", "CN=Bjørn") * 2
    folded = Header(text, charset, maxlinelen=75).encode().replace("\n", "")
    assert folded.count("=?") > 1
    assert unwrap(folded) == text


@cases(
    "wrapped, text",
    [
        ("=?UTF-8?b?w7g=?=", "ø"),
        ("=?utf-8?q?=C3=B8_x?=", "ø x"),
        ("=?ISO-8859-1?Q?=F8 x?=", "ø x"),
        ("=?utf-8*en?B?w7g=?=", "ø"),
        ("=?utf-8?Q?a,b=3D=22c=22?=", 'a,b="c"'),
    ],
)
def test_wrappings_of_other_writers_are_read(wrapped: str, text: str) -> None:
    assert unwrap(wrapped) == text


@given(st.text(max_size=100) | st.text(alphabet="=?utf-8BQ ", max_size=100))
def test_no_text_breaks_the_unwrapping(text: str) -> None:
    for attempt in (text, f"=?utf-8?B?{text}?=", f"=?utf-8?Q?{text}?=", f"=?{text}"):
        with contextlib.suppress(HeaderUnreadable):
            assert isinstance(unwrap(attempt), str)


def test_a_long_row_of_encoded_words_is_read_without_delay() -> None:
    assert unwrap("=?utf-8?Q?a?= " * 10_000) == "a" * 10_000
