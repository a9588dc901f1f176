"""Execution dates of periodic payments (payments.md#standing-orders)."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.scheme.execution import (
    DAYS,
    FREQUENCIES,
    MONTHS,
    VARIABLE,
    Schedule,
    executions,
    is_banking_day,
    schedule_of,
)
from tests.cases import cases


def norway(day: date) -> bool:
    return is_banking_day(day, "NOK")


def shown(plan: Schedule, count: int = 4, **more) -> list[str]:
    return [day.isoformat() for day in islice(executions(plan, **more), count)]


START = date(2026, 1, 5)  # a Monday


@cases(
    "frequency, dates",
    [
        ("Daily", ["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"]),
        ("Weekly", ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]),
        ("EveryTwoWeeks", ["2026-01-05", "2026-01-19", "2026-02-02", "2026-02-16"]),
        ("Monthly", ["2026-01-05", "2026-02-05", "2026-03-05", "2026-04-05"]),
        ("EveryTwoMonths", ["2026-01-05", "2026-03-05", "2026-05-05", "2026-07-05"]),
        ("Quarterly", ["2026-01-05", "2026-04-05", "2026-07-05", "2026-10-05"]),
        ("SemiAnnual", ["2026-01-05", "2026-07-05", "2027-01-05", "2027-07-05"]),
        ("Annual", ["2026-01-05", "2027-01-05", "2028-01-05", "2029-01-05"]),
    ],
)
def test_each_frequency_counts_from_the_start_date(frequency, dates):
    assert shown(Schedule(START, frequency)) == dates


def test_the_first_execution_is_the_first_fitting_day_from_the_start_date_on():
    assert shown(Schedule(date(2026, 1, 20), "Quarterly", day=15)) == [
        "2026-02-15",
        "2026-05-15",
        "2026-08-15",
        "2026-11-15",
    ]
    assert shown(Schedule(date(2026, 1, 20), "Annual", day=25), 2) == ["2026-01-25", "2027-01-25"]


def test_day_31_and_days_a_month_lacks_are_its_last():
    assert shown(Schedule(date(2028, 1, 1), "Monthly", day=31)) == [
        "2028-01-31",
        "2028-02-29",
        "2028-03-31",
        "2028-04-30",
    ]
    assert shown(Schedule(date(2026, 1, 30), "Monthly"), 3) == ["2026-01-30", "2026-02-28", "2026-03-30"]


def test_a_closed_day_moves_to_the_following_or_the_preceding_banking_day():
    # 5 April 2026 is Easter Sunday; Thursday to Monday are closed.
    following = Schedule(date(2026, 4, 1), "Monthly", day=5)
    assert shown(following, 2, is_open=norway) == ["2026-04-07", "2026-05-05"]
    preceding = Schedule(date(2026, 4, 1), "Monthly", day=5, preceding=True)
    assert shown(preceding, 2, is_open=norway) == ["2026-04-01", "2026-05-05"]


def test_a_date_that_moved_into_the_next_month_is_found_after_the_month_has_begun():
    plan = Schedule(date(2026, 1, 1), "Monthly", day=31)  # Saturday, 31 January moves to Monday
    assert next(executions(plan, date(2026, 2, 1), norway)) == date(2026, 2, 2)


def test_a_move_out_of_the_dates_goes_the_other_way():
    sunday = date(2026, 5, 31)
    assert shown(Schedule(date(2026, 5, 1), "Monthly", end=sunday, day=31), is_open=norway) == ["2026-05-29"]
    assert shown(Schedule(sunday, "Monthly", day=31, preceding=True), 2, is_open=norway) == ["2026-06-01", "2026-06-30"]
    assert shown(Schedule(sunday, "Monthly", end=sunday, day=31), is_open=norway) == []


def test_a_plan_is_read_from_an_initiation():
    initiation = {
        "startDate": "2026-01-05",
        "endDate": "2026-12-31",
        "frequency": VARIABLE,
        "executionRule": "preceeding",
        "dayOfExecution": "31",
        "monthsOfExecution": ["11", "2"],
    }
    assert schedule_of(initiation) == Schedule(START, VARIABLE, date(2026, 12, 31), 31, True, (2, 11))
    assert schedule_of({"startDate": "2026-01-05", "frequency": "Daily"}) == Schedule(START, "Daily")


DATES = st.dates(date(2024, 1, 1), date(2030, 12, 31))
PLANS = st.builds(
    Schedule,
    start=DATES,
    frequency=st.sampled_from(FREQUENCIES),
    end=st.none() | DATES,
    day=st.none() | st.integers(1, 31),
    preceding=st.booleans(),
    months=st.lists(st.integers(1, 12), min_size=1, max_size=11, unique=True).map(tuple),
)
CALENDARS = st.sampled_from([norway, lambda day: True, lambda day: day.weekday() == 2])


@given(PLANS, CALENDARS)
def test_executions_are_banking_days_strictly_increasing_and_inside_the_dates(plan, is_open):
    days = list(islice(executions(plan, is_open=is_open), 20))
    assert all(early < late for early, late in pairwise(days))
    assert all(plan.start <= day and (plan.end is None or day <= plan.end) and is_open(day) for day in days)


@given(PLANS, CALENDARS, DATES)
def test_asking_after_a_date_gives_the_same_dates_as_reading_on(plan, is_open, after):
    """So that no state but the last execution need be kept."""
    horizon = date(2033, 1, 1)
    every = []
    for day in executions(plan, is_open=is_open):
        if day > horizon:
            break
        every.append(day)
    expected = next((day for day in every if day > after), None)
    following = next(executions(plan, after, is_open), None)
    assert following == expected or (expected is None and following is not None and following > horizon)


@given(PLANS)
def test_planned_days_fit_the_frequency(plan):
    days = list(islice(executions(plan), 20))
    for early, late in pairwise(days):
        if plan.frequency in DAYS:
            assert late - early == timedelta(days=DAYS[plan.frequency])
        elif plan.frequency in MONTHS:
            assert (late.year - early.year) * 12 + late.month - early.month == MONTHS[plan.frequency]
        else:
            assert late.month in plan.months
