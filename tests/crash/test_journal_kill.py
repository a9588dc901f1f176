"""SIGKILL at random moments of a process that changes, restores and compacts as fast as it can."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.store import open_store
from emulator.store.check import verify
from tests.unit.store.making import KINDS, NOTE

WRITER = """
import sys, threading
from pathlib import Path
from emulator.store import journal_log, open_store
from tests.unit.store.making import BOOK, KINDS, NOTE, book
journal_log.SMALL_JOURNAL = 20000
store = open_store(Path(sys.argv[1]), KINDS, sys.argv[2])
image, thread, compaction = store.image(), None, None
say = sys.stdout.write
while True:
    number = store.sequence + 1
    with store.transaction():
        store.put(NOTE, {"id": "counter", "number": number})
        store.put(BOOK, book(f"b{number % 50}", author=f"a{number % 7}", year=number, text="x" * (number % 900)))
        store.delete(BOOK, f"b{number * 7 % 50}")
    if number % 101 == 0:
        with store.transaction():
            store.restore(image)
            store.put(NOTE, {"id": "counter", "number": number + 1})
    store.log.sync()
    say(f"{store.sequence}\\n")
    sys.stdout.flush()
    if compaction is None and store.log.compaction_due:
        compaction = store.log.begin_compaction()
        thread = threading.Thread(target=compaction.run)
        thread.start()
    elif compaction is not None and not thread.is_alive():
        store.log.finish_compaction(compaction)
        compaction = None
"""


@pytest.mark.crash
@pytest.mark.parametrize("durability", ["process", "power"])
def test_every_acknowledged_change_is_found_after_a_kill(tmp_path: Path, durability: str) -> None:
    directory = tmp_path / "bank"
    draw = random.Random(durability)
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, directory, durability], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(draw.randrange(1, 500))]
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        acknowledged = max(int(line) for line in lines if line.endswith("\n"))
        report = verify(directory, KINDS)
        assert report.sound, report
        store = open_store(directory, KINDS)
        assert store.sequence >= acknowledged
        counter = store.get(NOTE, "counter")
        assert counter is not None
        assert counter["number"] in (store.sequence, store.sequence - 1)
        store.log.discard()
