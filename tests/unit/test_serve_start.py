"""How `serve` starts, and ends while it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.cli import serve
from emulator.settings import ServeSettings
from tests.cases import cases


def test_a_start_goes_on_where_nobody_can_read_that_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        serve.ready(["http://127.0.0.1:8080"])


TOLD = """
import os, signal, socket, sys
made = socket.socketpair
def told(*given):
    os.kill(os.getpid(), signal.Signals[sys.argv[1]])
    return made(*given)
socket.socketpair = told
from emulator.cli.main import run
sys.exit(run(["serve", "--port", "0", "--ephemeral", "--state", sys.argv[2]]))
"""


def test_told_to_end_while_the_loop_is_made_it_leaves_with_0(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TOLD, "SIGTERM", tmp_path], capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if " INFO " not in line]) == (0, [])


TOLD_EARLY = """
import os, signal, sys
class Telling:
    def find_spec(self, name, *rest):
        if name == "emulator.cli.main":
            os.kill(os.getpid(), signal.Signals[sys.argv.pop()])
sys.meta_path.insert(0, Telling())
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from emulator.__main__ import main
main()
"""


@cases(
    "command, number, status",
    [("serve", "SIGTERM", 0), ("people", "SIGTERM", -signal.SIGTERM), ("people", "SIGINT", 130)],
)
def test_told_to_end_while_it_is_imported_it_leaves_without_a_word(command: str, number: str, status: int) -> None:
    done = subprocess.run([sys.executable, "-c", TOLD_EARLY, "--debug", command, number], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


# Python passes over exceptions in the callbacks of weak references, and each import has some.
TOLD_IN_A_CALLBACK = """
import os, signal, sys, weakref
class Telling:
    def find_spec(self, name, *rest):
        if name == "emulator.cli.main":
            passing = Telling()
            kept = weakref.ref(passing, lambda _: os.kill(os.getpid(), signal.Signals[sys.argv.pop()]))
            del passing
sys.meta_path.insert(0, Telling())
from emulator.__main__ import main
main()
"""


def test_told_to_end_in_a_callback_of_an_import_it_leaves_too() -> None:
    command = [sys.executable, "-c", TOLD_IN_A_CALLBACK, "serve", "--port", "none", "SIGINT"]
    done = subprocess.run(command, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


TOLD_WITH_A_STORE = """
import os, signal, sys, weakref
from contextlib import contextmanager
from types import ModuleType
@contextmanager
def server(directory):
    yield "postgresql://127.0.0.1:1/none"
    os.write(1, b"stopped")
class Telling:
    def find_spec(self, name, *rest):
        if name == "emulator.assemble.joining":
            passing = Telling()
            kept = weakref.ref(passing, lambda _: os.kill(os.getpid(), signal.SIGTERM))
            del passing
sys.meta_path.insert(0, Telling())
embedded = sys.modules["emulator.store.postgres.embedded"] = ModuleType("embedded")
embedded.server = server
from emulator.cli.main import run
sys.exit(run(["serve", "--port", "0", "--store", "postgresql", "--state", sys.argv[1]]))
"""


def test_told_to_end_there_it_also_stops_its_own_store(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TOLD_WITH_A_STORE, tmp_path], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"stopped", b"")


WARN = """
import warnings
from emulator.cli import logs
logs.configure("json")
warnings.warn("Parsed a serial number", DeprecationWarning, stacklevel=1)
"""


def test_a_warning_of_a_library_is_a_line_of_the_log_like_any_other() -> None:
    done = subprocess.run([sys.executable, "-W", "always", "-c", WARN], capture_output=True, text=True, check=True)
    entry = json.loads(done.stderr)
    assert (entry["level"], entry["logger"]) == ("warning", "py.warnings")
    assert entry["message"] == "DeprecationWarning: Parsed a serial number"


def test_people_at_a_terminal_are_told_what_to_do_next(tmp_path: Path) -> None:
    text = serve.first_steps("http://127.0.0.1:8080", ServeSettings(state=tmp_path / "a state"))
    assert "http://127.0.0.1:8080/console" in text
    assert "http://127.0.0.1:8080/docs" in text
    assert f"request GET /v1/accounts --state '{tmp_path}/a state'\n" in text, "the usual address is not named"
    assert text.isprintable() or "\n" in text
    other = serve.first_steps("http://127.0.0.1:9", ServeSettings(state=tmp_path))
    assert f"--state {tmp_path} --url http://127.0.0.1:9\n" in other


def test_a_script_reads_paths_in_their_own_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    export = b"export BANK_EMULATOR_STATE=/state-of-\xe5"
    serve.ready(["http://127.0.0.1:8080"], [os.fsdecode(export)])
    assert capfdbinary.readouterr().out.splitlines() == [export, b"# READY http://127.0.0.1:8080"]
