"""Usual bodies are read and checked in one go, to the same end as in two steps; all others are left to these."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.headers import Headers
from emulator.api.json_body import is_plain, read_json
from emulator.api.validate import read_usual, shape, validate
from emulator.bank.errors import BankError
from tests.unit.shapes.bodies import PAYMENTS, SEPA

JSON = Headers((("Content-Type", "application/json"),))


def shape_of(name: str) -> str:
    return f"emulator.api.shapes.payments:{name}"


def in_two_steps(name: str, body: bytes) -> Any:
    """The value with its members in their order, as text; None where there is anything to say of it."""
    try:
        value, warnings = validate(shape_of(name), read_json(body, JSON), plain=is_plain(body))
    except BankError:
        return None
    return None if warnings else repr(value)


@pytest.mark.parametrize("name", PAYMENTS)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_good_body_is_usual(name: str, separators: tuple[str, str]) -> None:
    body = json.dumps(PAYMENTS[name], separators=separators, ensure_ascii=False).encode()
    assert repr(read_usual(shape_of(name), body)) == in_two_steps(name, body)


SEPA_TEXT = json.dumps(SEPA, ensure_ascii=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"creditorName"', '"creditorName": "First", "creditorName"'),
        ('"creditorName"', '"debtorName": "Kari", "creditorName"'),
        ('"creditorName": "', '"creditorName": "\\u0041'),
        ('"creditorName": "', '"creditorName": "\x7f'),
        ('"creditorName": "', '"creditorName": "\u0085'),
        ('"creditorName": "', '"creditorName": "\U0001f600'),
        ('"creditorName": "', '"creditorName": "\t'),
        ('"amount": "', '"amount": "-'),
        ('"creditorName": "', '"creditorName": 17, "endToEndIdentification": "'),
        ("{", "\ufeff{"),
        ("}", "}}"),
        ("{", "[{"),
        (SEPA_TEXT, ""),
        (SEPA_TEXT, "null"),
    ],
)
def test_what_is_unusual_is_left_to_the_two_steps(old: str, new: str) -> None:
    assert old in SEPA_TEXT
    assert read_usual(shape_of("SepaTransfer"), SEPA_TEXT.replace(old, new, 1).encode()) is None


def test_a_body_that_is_not_utf_8_is_unusual() -> None:
    assert read_usual(shape_of("SepaTransfer"), SEPA_TEXT.replace("{", "{ ").encode("utf-16")) is None
    assert read_usual(shape_of("SepaTransfer"), b"\xff" + SEPA_TEXT.encode()) is None


@pytest.mark.parametrize("path", [*map(shape_of, PAYMENTS), "emulator.api.shapes.baskets:SigningBasket"])
def test_the_shapes_that_say_so_have_no_numbers(path: str) -> None:
    wanted = shape(path)
    types = set(re.findall(r'"type": "(\w+)"', json.dumps(wanted.types.json_schema())))
    assert wanted.no_numbers
    assert types <= {"array", "boolean", "object", "string"}


def test_shapes_with_numbers_are_left_to_the_decoder_that_keeps_their_digits() -> None:
    body = b'{"transactions": [{"amount": 10000000000000000.01}]}'
    assert read_usual("emulator.api.shapes.sandbox:PostedTransactions", body) is None


_PUT_IN = st.sampled_from(
    [
        "",
        '"',
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        " ",
        "\n",
        "1",
        "0.10",
        "-",
        "null",
        "true",
        "\u00e5",
        "\\",
        "\x1f",
        '"":"",',
    ],
) | st.sampled_from(['"creditorName":"A",', '"a":1,', "NaN", "\ufeff", "\u2028", "\U0001f600", "\ud800"])


@given(
    name=st.sampled_from(list(PAYMENTS)),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]),
    cut=st.integers(0, 900),
    dropped=st.integers(0, 3),
    put_in=_PUT_IN,
    twice=st.booleans(),
)
def test_the_short_way_ends_where_the_long_way_ends(
    name: str, separators: tuple[str, str], cut: int, dropped: int, put_in: str, twice: bool
) -> None:
    text = json.dumps(PAYMENTS[name], separators=separators, ensure_ascii=False)
    text = text[:cut] + put_in + text[cut + dropped :]
    if twice:
        text = text.replace("{", '{"creditorName":"A",', 1)
    body = text.encode("utf-8", "surrogatepass")
    found = read_usual(shape_of(name), body)
    assert found is None or repr(found) == in_two_steps(name, body)
