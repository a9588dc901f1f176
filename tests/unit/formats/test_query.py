"""Query parameters (requests.md#query-parameters)."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.query import QueryParameter, parse
from emulator.bank.errors import BankError

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


def test_all_mistakes_are_told_at_once():
    assert mistakes("limit=x&dateFrom=y&limit2=z&offset=1&offset=1&name=%00") == [
        ("FORMAT_ERROR", "offset", "The query parameter offset appears more than once."),
        (
            "FORMAT_ERROR",
            "dateFrom",
            'The query parameter dateFrom must be a date of the form YYYY-MM-DD; received "y".',
        ),
        ("FORMAT_ERROR", "limit", 'The query parameter limit must be a whole number from 1 to 500; received "x".'),
        (
            "FORMAT_ERROR",
            "name",
            "The query parameter name must be text without control characters; received '\\x00'.",
        ),
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
