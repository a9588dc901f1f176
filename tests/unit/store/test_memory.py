"""Too little memory is never taken for damage: a start names the reason, a repair cuts nothing, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from emulator.store import StoreExhausted, loaded, open_store, snapshot
from emulator.store.check import repair, verify
from emulator.store.kinds import Keys
from tests.unit.store.making import BOOK, KINDS, NOTE, book, copy_of, with_books


@pytest.fixture
def killed(directory: Path) -> Path:
    """A directory with a snapshot and a journal, as a kill leaves it."""
    store = with_books(directory)
    store.log.compact()
    for number in range(4):
        store.put(BOOK, book(f"later {number}", author="x"))
    store.put(NOTE, {"id": "n"})
    store.delete(BOOK, "b1")
    return copy_of(directory)


def failing_at(call: int, function: Any, error: Exception) -> Any:
    calls = count()

    def tried(*given: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise error
        return function(*given, **named)

    return tried


def starved(call: int, step: str, patch: pytest.MonkeyPatch) -> None:
    """Let one step of the next reading find no memory."""
    if step == "orjson.loads":  # which has no error of its own for it
        patch.setattr(orjson, "loads", failing_at(call, orjson.loads, orjson.JSONDecodeError("no memory", "", 0)))
        patch.setattr(json, "loads", failing_at(0, json.loads, MemoryError()))
    elif step == "encoded":
        patch.setattr(loaded, "encoded", failing_at(call, loaded.encoded, MemoryError()))
    elif step == "of":
        patch.setattr(Keys, "of", failing_at(call, Keys.of, MemoryError()))
    else:
        patch.setattr(snapshot, "crc32", failing_at(call, snapshot.crc32, MemoryError()))


def opened(directory: Path) -> None:
    open_store(directory, KINDS).log.discard()


def repaired(directory: Path) -> None:
    assert repair(directory, KINDS).sound


@pytest.mark.parametrize("action", [opened, repaired])
@pytest.mark.parametrize("step", ["orjson.loads", "encoded", "of", "crc32"])
def test_wherever_memory_ends_no_document_is_lost(
    killed: Path, step: str, action: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path.name: path.read_bytes() for path in killed.iterdir() if path.name != "lock"}
    for call in count():
        with monkeypatch.context() as patch:
            starved(call, step, patch)
            try:
                action(killed)
            except StoreExhausted:
                pass
            else:
                break
        assert {path.name: path.read_bytes() for path in killed.iterdir() if path.name != "lock"} == files
    assert call > 0
    assert verify(killed, KINDS).sound
    store = open_store(killed, KINDS)
    later = [f"later {number}" for number in range(4)]
    assert {document["id"] for document in store.all(BOOK)} == {"b0", "b2", "b3", "b4", *later}
    assert store.count(NOTE) == 1
    store.log.discard()


OPENS = """
import resource, sys
from pathlib import Path
from emulator.store import StoreError, open_store
from tests.unit.store.making import KINDS
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
for room in (100 << 20, 45 << 20, 0):
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    try:
        open_store(Path(sys.argv[1]), KINDS).log.discard()
    except StoreError as error:
        print(room, type(error).__name__, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the address space")
def test_a_bounded_address_space_is_no_damage(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "large", "text": "x" * (30 << 20)})
    store.log.discard()
    command = [sys.executable, "-c", OPENS, str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert {*ran.stdout.split()[1::2]} == {"StoreExhausted"}, ran
    assert verify(directory, KINDS).sound
