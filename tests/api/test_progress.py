"""How far long work is: one line on a terminal, from the bank's events."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from emulator.cli import bank, control, main, scenario
from emulator.failure import Failed


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, terminal: bool, fails: bool) -> str:
    seen = Event()

    def events() -> Iterator[dict[str, Any]]:
        try:
            if fails:
                raise Failed("no")
            yield {"type": "request", "id": "1"}
            yield {"type": "clock", "id": "default", "status": "frozen"}
            yield {"type": "clock", "id": "default", "status": "advancing", "done": 1, "of": 2}
            yield {"type": "clock", "id": "default", "status": "advancing", "done": 2, "of": 2}
        finally:
            seen.set()

    monkeypatch.setattr(bank, "connecting", lambda: lambda _url: Mock(events=events))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with bank.progress("http://bank", "clock"):
        if terminal:
            assert seen.wait(10)
    return capsys.readouterr().err


def test_a_terminal_shows_how_far_long_work_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, capsys, terminal=True, fails=False) == "\radvancing, 50 %\radvancing, 100 %\n"


def test_programs_and_banks_without_events_get_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, capsys, terminal=False, fails=False) == ""
    assert shown(monkeypatch, capsys, terminal=True, fails=True) == ""


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("clock advance 1h", ["clock"]),
        ("reset", ["reset"]),
        ("snapshot load a", ["reset"]),
        ("banks make x", ["banks"]),
        ("generate", ["customers"]),
        ("scenario apply slow-bank --yes", ["scenario", "scenario"]),
        ("people", []),
    ],
)
def test_a_command_shows_the_progress_of_what_it_asks_for(
    monkeypatch: pytest.MonkeyPatch, command: str, kinds: list[str]
) -> None:
    followed: list[str] = []

    @contextmanager
    def noted(_url: str, kind: str) -> Iterator[None]:
        followed.append(kind)
        yield

    for module in (bank, control, scenario):  # imported before they are changed
        monkeypatch.setattr(module, "progress", noted, raising=False)
        monkeypatch.setattr(module, "ask", lambda *_: defaultdict(str))
    main.run([*command.split(), "--url", "http://127.0.0.1:1", "--output", "json"])
    assert followed == kinds
