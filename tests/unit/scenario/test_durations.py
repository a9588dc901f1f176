"""Lengths of time as scenarios and the clock take them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from emulator.scenario import durations
from tests.cases import cases


@cases(
    "text, seconds",
    [
        ("10s", 10),
        ("2m", 120),
        ("1h30m", 5400),
        ("3d", 259_200),
        ("1w", 604_800),
        ("500ms", 0.5),
        ("0.25s", 0.25),
        ("1d2h3m4s5ms", 93_784.005),
        ("PT1H", 3600),
        ("P1DT12H", 129_600),
        ("PT0.5S", 0.5),
        ("P2W", 1_209_600),
        ("PT1.5H", 5400),
        ("PT1.5M", 90),
        ("P0.5D", 43_200),
        ("PT1,5S", 1.5),
        ("P1DT0,25H", 87_300),
        ("P0.5W", 302_400),
        ("0s", 0),
    ],
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert durations.exact(text) == timedelta(seconds=seconds)


@cases(
    "text",
    [
        *("", "10", "-1s", "-PT1H", "1", "s", "1s2m", "P", "PT", "P1H", "1 s", " 1s", "1s\n", "١s", "1e3s", "pt1h"),
        *("PT1.5H1M", "P1.5DT1H", "P0.5Y", "P0.5M", "PT1.S", "PT.5S", "PT1.5", "PT1.5H\n", "1,5s"),
        *("36526d", 10, 1.5, None, True, ["1s"]),
    ],
)
def test_what_is_no_length_of_time_is_refused(text: object) -> None:
    assert durations.parse(text) is None


def test_months_and_years_follow_the_calendar_of_oslo() -> None:
    january = datetime(2026, 1, 31, 11, 0, tzinfo=UTC)  # 12:00 in Oslo
    month, year = durations.parse("P1M"), durations.parse("P1Y")
    assert month is not None
    assert year is not None
    assert month.after(january) == datetime(2026, 2, 28, 11, 0, tzinfo=UTC)
    assert year.after(january) == datetime(2027, 1, 31, 11, 0, tzinfo=UTC)
    # Twelve o'clock stays twelve o'clock when summer time begins in between.
    assert month.after(datetime(2026, 3, 15, 11, 0, tzinfo=UTC)) == datetime(2026, 4, 15, 10, 0, tzinfo=UTC)
    assert durations.exact("P1M") is None


@given(st.integers(0, 9), st.integers(0, 99), st.integers(0, 99), st.integers(0, 999))
def test_parts_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    assert durations.exact(f"{days}d{hours}h{minutes}m{seconds}s") == expected
    assert durations.exact(f"P{days}DT{hours}H{minutes}M{seconds}S") == expected


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    duration = durations.exact(text)
    assert duration is None or duration >= timedelta()
