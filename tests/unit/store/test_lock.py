"""One writer for each directory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.store import StoreDamaged, StoreLocked, open_store
from tests.unit.store.making import KINDS, NOTE

HOLDER = """
import signal, sys
from pathlib import Path
from emulator.store import open_store
from tests.unit.store.making import KINDS, NOTE
store = open_store(Path(sys.argv[1]), KINDS)
store.put(NOTE, {"id": "kept"})
print("open", flush=True)
signal.pause()
"""


def test_a_second_process_is_refused_and_told_who_holds_it(directory: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, directory], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            with pytest.raises(StoreLocked) as locked:
                open_store(directory, KINDS)
            assert f"process {holder.pid} on {socket.gethostname()} since 20" in locked.value.holder
            assert str(directory) in str(locked.value)
        finally:
            holder.send_signal(signal.SIGKILL)
    store = open_store(directory, KINDS)
    assert store.exists(NOTE, "kept")
    store.close()


def test_the_same_process_is_refused_too(directory: Path) -> None:
    store = open_store(directory, KINDS)
    with pytest.raises(StoreLocked, match=f"process {os.getpid()} "):
        open_store(directory, KINDS)
    store.close()
    open_store(directory, KINDS).close()


def test_a_holder_that_left_no_name_is_another_process(directory: Path) -> None:
    store = open_store(directory, KINDS)
    (directory / "lock").write_text("gibberish")
    with pytest.raises(StoreLocked, match="another process"):
        open_store(directory, KINDS)
    store.close()


def test_the_name_of_a_killed_holder_does_not_show_through(directory: Path) -> None:
    directory.mkdir()
    (directory / "lock").write_text('{"pid":1,"host":"' + "x" * 100 + '"}')
    store = open_store(directory, KINDS)
    with pytest.raises(StoreLocked, match=f"process {os.getpid()} "):
        open_store(directory, KINDS)
    store.close()


def test_a_refused_start_lets_go_of_the_directory(directory: Path) -> None:
    directory.mkdir()
    (directory / "documents.json").write_text("{}")
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            open_store(directory, KINDS)


def test_a_forked_child_does_not_hold_the_lock(directory: Path) -> None:
    store = open_store(directory, KINDS)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        store.close()
        open_store(directory, KINDS).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
