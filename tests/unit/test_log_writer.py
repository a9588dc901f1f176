"""The log holds up nobody, and clients cannot make it grow without bounds."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from emulator.cli import logs
from emulator.cli.logs import LineWriter, RateLimit


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def record(text: str, *args: object, at: float = 0.0, name: str = "emulator") -> logging.LogRecord:
    record = logging.LogRecord(name, logging.ERROR, __file__, 0, text, args, None)
    record.created = at
    return record


def lines_of(reading: int) -> list[str]:
    with os.fdopen(os.dup(reading), encoding="utf-8") as file:
        return file.read().splitlines()


def test_lines_are_written_in_their_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = LineWriter(writing)
    for number in range(5):
        writer.handle(record(f"line {number}"))
    writer.close()
    os.close(writing)
    assert lines_of(reading) == [f"line {number}" for number in range(5)]


def test_an_unread_log_stops_nobody_and_says_how_much_was_dropped(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "QUEUED_LINES", 4)
    reading, writing = pipe
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    writer = LineWriter(writing)
    for number in range(100):  # would never end if it waited for a reader
        writer.handle(record(f"line {number}"))
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(lines_of, reading)
        writer.close()
        os.close(writing)
        seen = read.result()
    seen[0] = seen[0].lstrip("x")
    notes = [line for line in seen if "dropped" in line]
    assert all(note.endswith("lines of the log were dropped because nobody read them") for note in notes)
    assert notes
    assert sum(int(note.split()[0]) for note in notes) + len(seen) - len(notes) == 100


def test_a_message_that_comes_again_and_again_is_written_some_times_a_minute(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = LineWriter(writing)
    writer.addFilter(RateLimit())
    for number in range(1000):
        writer.handle(record("%s failed", number, at=number / 100))
        writer.handle(record("%s failed", number, at=number / 100, name="other") if number < 2 else record("", at=-1))
    writer.handle(record("%s failed", "again", at=logs.PERIOD))
    writer.close()
    os.close(writing)
    seen = [line for line in lines_of(reading) if line]
    assert len(seen) == logs.REPEATS + 2 + 1
    assert seen[-1] == f"again failed ({1000 - logs.REPEATS} more of these were left out)"


def test_no_line_goes_to_a_file_that_got_the_number_of_a_closed_log(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    number = os.dup(writing)
    writer = LineWriter(number)
    other, others = os.pipe()
    os.dup2(others, number)  # closes it, and opens another file under its number
    writer.handle(record("line"))
    writer.close()
    for descriptor in (number, others, writing):
        os.close(descriptor)
    assert (lines_of(reading), lines_of(other)) == (["line"], [])
    os.close(other)


def test_a_line_has_a_largest_length(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = LineWriter(writing)
    writer.handle(record("x" * 100_000))
    writer.close()
    os.close(writing)
    assert [len(line) for line in lines_of(reading)] == [logs.LINE_LENGTH + 3]
