"""Bank time stands while a request is answered, and is written so that text order is time order."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.clock import Clock, later, moment, stamp
from emulator.bank.errors import BankError
from emulator.bank.formats import EARLIEST, END
from emulator.bank.kinds import KINDS
from emulator.store import memory_store

NOW = datetime(2026, 3, 2, 8, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock(memory_store(KINDS))


def test_a_held_clock_stands_until_it_is_released(clock):
    held = moment(clock.hold())
    assert [clock.now() for _ in range(100)] == [held] * 100
    clock.release()
    assert clock.now() > held


def test_holding_again_takes_a_new_moment(clock):
    first = clock.hold()
    assert clock.hold() > first


def test_setting_a_held_clock_counts_at_once(clock):
    clock.hold()
    clock.set(now=NOW, mode="frozen")
    assert clock.now() == NOW


def test_a_stamp_is_in_utc_with_microseconds():
    summer = datetime(2026, 7, 2, 1, 30, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(summer) == "2026-07-01T23:30:00.000005+00:00"
    assert moment(stamp(summer)) == summer
    assert stamp(summer - timedelta(microseconds=5)) == "2026-07-01T23:30:00.000000+00:00"


@given(
    at=st.integers(-(10**15), 10**15).map(lambda microseconds: NOW + timedelta(microseconds=microseconds)),
    by=st.integers(-(10**9), 10**9).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_a_stamp_can_be_moved_by_whole_seconds(at, by):
    assert later(stamp(at), by) == stamp(at + by)


@pytest.mark.parametrize("beyond", [END, EARLIEST - timedelta(microseconds=1)])
def test_bank_time_stays_within_its_years_whoever_moves_it(clock, beyond):
    clock.set(now=NOW, mode="frozen")
    with pytest.raises(BankError, match="of the years 1990 to 2200"):
        clock.set(now=beyond)
    if beyond > NOW:
        with pytest.raises(BankError, match="of the years 1990 to 2200"):
            clock.advance(beyond - NOW)
    assert clock.now() == NOW


def test_the_stamp_of_a_clock_is_that_of_its_moment(clock):
    clock.set(now=NOW, mode="frozen")
    assert clock.stamp() == stamp(NOW)
    held = clock.hold()
    assert [clock.stamp(), clock.stamp()] == [held] * 2
    clock.set(now=NOW + timedelta(hours=1))
    assert clock.stamp() == stamp(NOW + timedelta(hours=1))
    clock.set(mode="live")
    stamps = []
    for _ in range(2):
        clock.hold()
        stamps.append(clock.stamp())
        clock.release()
    assert stamps == sorted(set(stamps))
    assert clock.stamp() > stamps[-1]


def test_a_host_clock_that_is_set_back_does_not_move_bank_time_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(memory_store(KINDS))
    first = clock.stamp()
    earlier = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: earlier)
    assert clock.stamp() >= first
    assert clock.hold() >= first


def test_bank_time_of_a_start_is_not_before_what_was_kept() -> None:
    clock = Clock(memory_store(KINDS))
    ahead = time.time() + 3600
    clock.not_before(ahead)
    assert clock.now().timestamp() == pytest.approx(ahead, abs=1)
    clock.set(now=moment("2026-01-01T00:00:00.000000+00:00"))
    assert clock.stamp().startswith("2026-01-01T00:00:00")
