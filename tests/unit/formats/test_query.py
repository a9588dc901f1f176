"""Query parameters (requests.md#query-parameters)."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.query import QueryParameter, parse
from emulator.bank.errors import BankError
from tests.cases import cases

DECLARED = (
    QueryParameter("withBalance", "boolean", default=False),
    QueryParameter("dateFrom", "date"),
    QueryParameter("limit", "int", minimum=1, maximum=500, default=100),
    QueryParameter("offset", "int"),
    QueryParameter("bookingStatus", "enum", values=("booked", "pending", "both"), default="both"),
    QueryParameter("name", "text"),
)
DEFAULTS = {"withBalance": False, "limit": 100, "bookingStatus": "both"}


def mistakes(raw: str, declared=DECLARED) -> list[tuple[str, str | None, str]]:
    with pytest.raises(BankError) as refused:
        parse(declared, raw)
    return [(message.code, message.path, message.text) for message in refused.value.messages]


def test_nothing_sent_gives_the_defaults():
    assert parse(DECLARED, "") == DEFAULTS
    assert parse((), "") == {}


def test_values_are_read_by_their_types():
    raw = "withBalance=true&dateFrom=2026-02-28&limit=500&offset=0&bookingStatus=booked&name=a%20b%C3%A5+c"
    assert parse(DECLARED, raw) == {
        "withBalance": True,
        "dateFrom": "2026-02-28",
        "limit": 500,
        "offset": 0,
        "bookingStatus": "booked",
        "name": "a bå c",
    }
    assert parse(DECLARED, "withBalance")["withBalance"] is True
    assert parse(DECLARED, "withBalance=false")["withBalance"] is False
    assert parse(DECLARED, "%6Cimit=5")["limit"] == 5


def test_unknown_parameters_are_ignored_whatever_they_hold():
    assert parse(DECLARED, "other=1&other=2&&Limit=x&dateFrom2=%41") == DEFAULTS
    assert parse((), "other=1") == {}


@cases(
    "raw, path",
    [
        ("withBalance=1", "withBalance"),
        ("withBalance=", "withBalance"),
        ("withBalance=True", "withBalance"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=", "limit"),
        ("limit=-1", "limit"),
        ("limit=+1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=1_0", "limit"),
        ("limit=%D9%A1", "limit"),
        ("limit=%201", "limit"),
        ("limit=" + "9" * 30, "limit"),
        ("offset=2147483648", "offset"),
        ("dateFrom=2026-02-29", "dateFrom"),
        ("dateFrom=2026-2-1", "dateFrom"),
        ("dateFrom=20260201", "dateFrom"),
        ("dateFrom=2026-W05-1", "dateFrom"),
        ("dateFrom=2026-02-01T00:00:00", "dateFrom"),
        ("dateFrom=0000-01-01", "dateFrom"),
        ("bookingStatus=BOOKED", "bookingStatus"),
        ("name=%00", "name"),
        ("name=%zz", "name"),
        ("name=%C3", "name"),
        ("%zz=1", None),
        ("name=a&name=b", "name"),
        ("limit=5&%6Cimit=6", "limit"),
    ],
)
def test_what_is_malformed_or_there_twice_is_a_format_error_under_its_name(raw, path):
    assert [(code, where) for code, where, _ in mistakes(raw)] == [("FORMAT_ERROR", path)]


def test_all_mistakes_are_told_at_once():
    assert mistakes("limit=x&dateFrom=y&limit2=z&offset=1&offset=1") == [
        ("FORMAT_ERROR", "offset", "The query parameter offset appears more than once."),
        (
            "FORMAT_ERROR",
            "dateFrom",
            'The query parameter dateFrom must be a date of the form YYYY-MM-DD; received "y".',
        ),
        ("FORMAT_ERROR", "limit", 'The query parameter limit must be a whole number from 1 to 500; received "x".'),
    ]


def test_that_the_query_is_malformed_is_told_once():
    assert len(mistakes("&".join(["%"] * 4000))) == 1


@given(st.text(alphabet="0123456789-+%ABC", max_size=12) | st.integers(-9, 999).map(str))
def test_whatever_number_is_accepted_is_in_range(raw):
    try:
        values = parse(DECLARED, f"limit={raw}")
    except BankError:
        return
    assert 1 <= values["limit"] <= 500


@given(st.tuples(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)))
def test_whatever_date_is_accepted_is_one(parts):
    text = "{:04}-{:02}-{:02}".format(*parts)
    try:
        values = parse(DECLARED, f"dateFrom={text}")
    except BankError:
        return
    assert values["dateFrom"] == text == date(*parts).isoformat()
