"""A state directory that is replaced holds all of the old or all of the new, whenever the process is killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from emulator.assemble.copying import CONTENT, complete, replacement

OLD = {
    "banks/default/log": "old",
    "banks/other/log": "old",
    "bank/key.pem": "old",
    "ca.pem": "old",
    "private/ca-key.pem": "old",
}
NEW = {"banks/default/log": "new", "banks/more/log": "new", "tpps/demo/key.pem": "new", "ca.pem": "new",
       "private/ca-key.pem": "new"}  # fmt: skip


class Killed(BaseException):
    """What nothing catches."""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def content(state: Path) -> dict[str, str]:
    """All files of the directory, those of an unfinished replacement too."""
    return {str(file.relative_to(state)): file.read_text() for file in state.rglob("*") if file.is_file()}


def replace(state: Path) -> None:
    with replacement(state) as folder:
        for name in CONTENT[:3]:
            (folder / name).mkdir()
        write(folder, NEW)


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Counts the steps that change folders; the process is killed instead of the one that is numbered."""
    steps = [0, -1]

    def counted(module: object, name: str) -> None:
        original = getattr(module, name)

        def step(*arguments: object, **options: object) -> object:
            steps[0] += 1
            if steps[0] >= steps[1] >= 0:
                raise Killed
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, step)

    for name in ("rename", "replace", "mkdir", "rmdir"):
        counted(os, name)
    counted(os, "unlink")
    yield steps
    monkeypatch.undo()


def test_whenever_it_is_killed_the_old_or_the_new_content_is_there(tmp_path: Path, killing: list[int]) -> None:
    seen = []
    for number in count(1):
        killing[:] = [0, -1]
        state = tmp_path / str(number)
        state.mkdir(mode=0o700)
        write(state, OLD)
        killing[:] = [0, number]
        try:
            replace(state)
        except Killed:
            killing[:] = [0, -1]
            complete(state)
            there = {name: text for name, text in content(state).items() if not name.startswith(".")}
            assert there in (OLD, NEW), number
            seen.append(there == NEW)
            replace(state)  # and it can be done again
            assert content(state) == NEW
        else:
            break
        finally:
            killing[:] = [0, -1]
            shutil.rmtree(state)
    assert seen == sorted(seen)  # the old until the one rename, the new from then on
    assert {True, False} == set(seen)


def test_what_fails_leaves_the_old_content(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    with suppress(ValueError), replacement(tmp_path) as folder:
        write(folder, NEW)
        raise ValueError
    assert content(tmp_path) == OLD
