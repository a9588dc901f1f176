"""A client with a bank of its own, which it creates, changes, saves, restores and deletes while things fail.

Nobody else asks for that bank, so what it may be is a small set: each answer leaves those that explain it. A request
without an answer may be carried out once, for as long as a process or a network that stands still may hold it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from http.client import HTTPException
from time import monotonic
from typing import Any, NamedTuple

from tests.postgres.cluster import ask
from tests.postgres.history import Problem

BEGINS = "2026-03-02T09:00:00+01:00"
NEW = {"fixtures": "empty", "now": BEGINS, "clock": "frozen"}
PATIENCE = 20.0  # seconds
ENDING = "the changes made so far remain"  # a process that ends says so of what takes several steps
LATE = 20.0  # seconds in which a request without an answer may still be carried out


class Content(NamedTuple):
    """What the bank may hold: the hours that its clock was advanced by, and those in its snapshot, None for none."""

    hours: int
    saved: int | None = None


Bank = Content | None
"""None: it does not exist."""

World = tuple[Bank, frozenset[int]]
"""What may be: the bank, and the requests without an answer that may still be carried out, by number."""


def step(bank: Bank, kind: str) -> tuple[Bank, tuple[int, int | None]]:
    """What an operation makes of the bank, and the answer: its status and the hours that it shows."""
    if kind == "create":
        return Content(0), (201 if bank is None else 200, None)
    if bank is None:
        return None, (404, None)
    if kind == "delete":
        return None, (204, None)
    if kind == "advance":
        return bank._replace(hours=bank.hours + 1), (200, bank.hours + 1)
    if kind == "save":
        return bank._replace(saved=bank.hours), (201 if bank.saved is None else 200, None)
    if kind == "restore":
        return (bank, (404, None)) if bank.saved is None else (bank._replace(hours=bank.saved), (200, None))
    return bank, (200, bank.hours)


WEIGHTS = {"create": 4, "delete": 6, "advance": 40, "save": 5, "restore": 5, "read": 40}


class Owner(threading.Thread):
    """Asks any process, and notes what no bank of its own can have answered."""

    def __init__(self, number: int, url: Callable[[], str], over: threading.Event, seed: int) -> None:
        super().__init__(name=f"owner {number}", daemon=True)
        self.problems: list[Problem] = []
        self.failure: str | None = None
        self.operations = 0
        self._bank = f"own-{number}"
        self._url = url
        self._over = over
        self._chooser = random.Random(seed)
        self._worlds: set[World] = {(None, frozenset())}
        self._silent: dict[int, tuple[float, str]] = {}  # by number: when a request got no answer, and its kind
        self._done: list[str] = []

    def run(self) -> None:
        """One request after the other until it is over."""
        try:
            while not self._over.is_set():
                known = not any(bank is None for bank, _ in self._worlds)
                kinds = [kind for kind in WEIGHTS if kind != "create" or not known]
                (kind,) = self._chooser.choices(kinds, [WEIGHTS[kind] for kind in kinds])
                self.do(kind if known or self._chooser.random() < 0.3 else "create")
        except Exception as error:  # of the test itself
            self.failure = f"{self.name}: {type(error).__name__}: {error}"
            raise

    def do(self, kind: str) -> None:
        """One operation: which of the possible banks explain its answer?"""
        method, path, body = {
            "create": ("PUT", f"/_emulator/banks/{self._bank}", NEW),
            "delete": ("DELETE", f"/_emulator/banks/{self._bank}", None),
            "advance": ("POST", f"/banks/{self._bank}/_emulator/clock/advance", {"by": "PT1H"}),
            "save": ("PUT", f"/banks/{self._bank}/_emulator/snapshots/kept", {}),
            "restore": ("POST", f"/banks/{self._bank}/_emulator/snapshots/kept/restore", {}),
            "read": ("GET", f"/banks/{self._bank}/_emulator/clock", None),
        }[kind]
        self._forget_old()
        before = self._reachable()
        try:
            status, answer = ask(self._url(), method, path, body, timeout=PATIENCE)
            if ENDING in str(answer):
                raise HTTPException(ENDING)
        except (OSError, HTTPException, ValueError):
            self._over.wait(0.05)
            number = len(self._done)
            self._silent[number] = monotonic(), kind
            self._worlds = {(bank, waiting | {number}) for bank, waiting in before}
            self._note(kind, "no answer", before)
            return
        self.operations += 1
        shown = _hours(answer) if status == 200 and kind in ("advance", "read") else None
        if status == 503:  # nothing was changed
            self._note(kind, f"503 {answer}", before)
            return
        before = self._reachable()
        after = {
            (one, waiting)
            for bank, waiting in before
            for one, expected in [step(bank, kind)]
            if expected == (status, shown)
        }
        self._note(kind, f"{status} {'' if shown is None else shown}", before)
        if not after:
            history = "\n".join(f"  {line}" for line in self._done[-25:])
            text = f"bank {self._bank}: {kind} was answered {status} {answer}, which nothing explains:\n{history}"
            self.problems.append(Problem("history", text))
            self._over.wait()  # it cannot go on from there
        self._worlds = after

    def _forget_old(self) -> None:
        old = {number for number, (at, _) in self._silent.items() if at < monotonic() - LATE}
        self._worlds = {(bank, waiting - old) for bank, waiting in self._worlds}
        self._silent = {number: one for number, one in self._silent.items() if number not in old}

    def _reachable(self) -> set[World]:
        """What may be by now."""
        reached, new = set[World](), list(self._worlds)
        while new:
            world = bank, waiting = new.pop()
            if world not in reached:
                reached.add(world)
                new += [(step(bank, self._silent[number][1])[0], waiting - {number}) for number in waiting]
        return reached

    def _note(self, kind: str, answer: str, before: Iterable[World]) -> None:
        banks = {bank for bank, _ in before}
        shown = sorted("none" if bank is None else f"{bank.hours}/{bank.saved}" for bank in banks)
        self._done.append(f"{kind:<8} {answer[:160]:<20} it was {', '.join(shown)[:100]}")


def _hours(answer: Any) -> int:
    return round((datetime.fromisoformat(answer["now"]) - datetime.fromisoformat(BEGINS)) / timedelta(hours=1))
