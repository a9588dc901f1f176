"""Banking days, cut-off and execution dates (the setting `calendar`, settings.md#calendar)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.clock import OSLO
from emulator.bank.scheme.execution import (
    ALWAYS_OPEN,
    NORWAY,
    effective_date,
    execution_time,
    is_banking_day,
)
from tests.cases import cases


@cases(
    "day, nok, eur",
    [
        ("2026-03-02", True, True),
        ("2026-03-07", False, False),  # Saturday
        ("2026-03-08", False, False),  # Sunday
        ("2026-04-02", False, True),  # Maundy Thursday
        ("2026-04-03", False, False),  # Good Friday
        ("2026-04-06", False, False),  # Easter Monday
        ("2026-05-01", False, False),  # Labour Day
        ("2026-05-14", False, True),  # Ascension Day
        ("2027-05-17", False, True),  # Constitution Day, a Monday
        ("2026-05-25", False, True),  # Whit Monday
        ("2026-12-24", False, True),  # Christmas Eve
        ("2026-12-25", False, False),
        ("2028-12-26", False, False),
        ("2026-12-31", True, True),
        ("2027-01-01", False, False),
        ("2120-04-11", False, True),  # Maundy Thursday
        ("2198-12-24", False, True),
        ("2198-12-25", False, False),
    ],
)
def test_norges_bank_days_for_nok_and_target2_days_for_eur(day, nok, eur):
    assert is_banking_day(date.fromisoformat(day), "NOK") is nok
    assert is_banking_day(date.fromisoformat(day), "EUR") is eur
    assert is_banking_day(date.fromisoformat(day), "USD") is nok
    assert is_banking_day(date.fromisoformat(day), "NOK", ALWAYS_OPEN)


def test_execution_runs_keep_oslo_time_on_both_sides_of_the_change_to_summer_time():
    assert execution_time(date(2026, 3, 27), NORWAY) == datetime(2026, 3, 27, 13, tzinfo=UTC)
    assert execution_time(date(2026, 3, 30), NORWAY) == datetime(2026, 3, 30, 12, tzinfo=UTC)
    assert execution_time(date(2026, 3, 29), ALWAYS_OPEN) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert execution_time(date(2026, 3, 30), ALWAYS_OPEN) == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert execution_time(date(2026, 10, 26), NORWAY) == datetime(2026, 10, 26, 13, tzinfo=UTC)


def oslo(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=OSLO)


@cases(
    "requested, approved, expected, moved",
    [
        (None, "2026-03-02T13:59:59", "2026-03-02", False),
        (None, "2026-03-02T14:00:00", "2026-03-02", False),
        (None, "2026-03-02T14:00:00.000001", "2026-03-03", False),
        (None, "2026-03-06T15:00:00", "2026-03-09", False),  # Friday after cut-off
        ("2026-03-02", "2026-03-02T15:00:00", "2026-03-03", True),
        ("2026-03-04", "2026-03-02T15:00:00", "2026-03-04", False),
        ("2026-03-07", "2026-03-02T09:00:00", "2026-03-09", True),
        ("2026-04-02", "2026-03-02T09:00:00", "2026-04-07", True),
        ("2026-12-24", "2026-12-01T09:00:00", "2026-12-28", True),
        ("2026-03-01", "2026-03-02T09:00:00", "2026-03-02", True),  # approved a day late
    ],
)
def test_cut_off_and_moves_in_norway(requested, approved, expected, moved):
    wanted = date.fromisoformat(requested) if requested else None
    effective = effective_date(wanted, oslo(approved).astimezone(UTC), "NOK", NORWAY)
    assert effective == (date.fromisoformat(expected), moved)


def test_always_open_has_no_cut_off_and_moves_nothing():
    late_sunday = oslo("2026-03-08T23:30:00")
    assert effective_date(None, late_sunday, "NOK", ALWAYS_OPEN) == (date(2026, 3, 8), False)
    assert effective_date(date(2026, 3, 14), late_sunday, "NOK", ALWAYS_OPEN) == (date(2026, 3, 14), False)


@given(
    st.none() | st.dates(date(2024, 1, 1), date(2028, 12, 31)),
    st.integers(0, 5 * 365 * 86400).map(lambda seconds: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)),
    st.sampled_from(["NOK", "EUR", "USD"]),
    st.sampled_from([NORWAY, ALWAYS_OPEN]),
)
def test_an_execution_date_is_a_banking_day_not_before_what_was_asked_for(requested, approved, currency, calendar):
    day, moved = effective_date(requested, approved, currency, calendar)
    assert is_banking_day(day, currency, calendar)
    assert requested is None or day >= requested
    assert moved is (requested is not None and day != requested)
    assert execution_time(day, calendar) > approved - timedelta(days=1)
