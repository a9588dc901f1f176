"""A TPP in a process of its own: a command that is started for each run, or a hook that is POSTed to."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from emulator.conformance.claims import MOST_BYTES, TIMEOUT, unreadable
from emulator.conformance.explore.client import Claims, Ending, SearchFailed
from emulator.conformance.explore.play import Run
from emulator.conformance.runner import visit

LOOK = 0.05  # seconds between two looks while nothing happens
SILENCE = 0.5  # seconds without a request after which bank time moves to what is due
OVER = 2.0  # seconds without a request, while nothing is due, after which a run is over
OUTPUT_SHOWN = 2000  # the last characters of the output of a command

_open = build_opener(ProxyHandler({})).open


@dataclass(frozen=True, slots=True)
class TppPlan:
    """How the TPP is run. `{run}` in `claims` stands for the name of the run (BANK_RUN)."""

    command: str | None = None
    hook: str | None = None
    claims: str | None = None
    timeout: float = 30.0
    restarts: bool = False


class Process:
    """A TPP as a client of the search."""

    def __init__(self, plan: TppPlan) -> None:
        self._plan = plan
        self.restarts = plan.restarts

    def play(self, run: Run) -> Ending:
        """Run the TPP, and act as the customer meanwhile, until it has ended or the run is over."""
        with tempfile.TemporaryDirectory(prefix="explore-") as name:
            folder = Path(name)
            environment = {**run.environment, **_files(folder, run)}
            if self._plan.command is not None:
                return self._command(run, environment, folder)
            return self._hook(run, environment)

    def _command(self, run: Run, environment: Mapping[str, str], folder: Path) -> Ending:
        deadline = time.monotonic() + self._plan.timeout
        with (folder / "output").open("w+b") as output:
            while True:
                with _started(self._plan.command or "", environment, output, run.news) as process:
                    over = _drive(run, partial(_has_ended, process), deadline)
                    status = process.poll()
                if run.killed:
                    run.bank.call(run.restarted)
                    continue
                printed = _last(output)
                if over or status == 0 or run.endless is not None:
                    return Ending(None, printed)
                return Ending(_crash(status, self._plan.timeout, printed), printed)

    def _hook(self, run: Run, environment: Mapping[str, str]) -> Ending:
        deadline = time.monotonic() + self._plan.timeout
        body = {name.removeprefix("BANK_").lower(): value for name, value in environment.items()}
        for name in ("certificate", "key"):
            body[name] = Path(environment[f"BANK_{name.upper()}"]).read_text(encoding="ascii")
        pool = ThreadPoolExecutor(1)
        try:
            answer: Future[str | None] = pool.submit(_post, self._plan.hook or "", body, self._plan.timeout)
            answer.add_done_callback(lambda _: run.news.set())
            _drive(run, answer.done, deadline)
            return Ending(answer.result() if answer.done() else None)
        finally:
            pool.shutdown(wait=False)

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims at its address."""
        if self._plan.claims is None:
            return None
        base = self._plan.claims.replace("{run}", run.name).rstrip("/")
        return lambda kind, identity: _asked(f"{base}/{kind}/{quote(identity, safe='')}", kind)


def _files(folder: Path, run: Run) -> dict[str, str]:
    """The certificate, the key, and an empty folder that stays for the whole run, as environment variables."""
    lasting = folder / "lasting"
    lasting.mkdir()
    paths = {"BANK_FOLDER": str(lasting)}
    for name, text in (("certificate", run.bank.credentials.certificate), ("key", run.bank.credentials.key)):
        path = folder / f"{name}.pem"
        path.touch(mode=0o600)
        path.write_text(text, encoding="ascii")
        paths[f"BANK_{name.upper()}"] = str(path)
    return paths


@contextmanager
def _started(
    command: str, environment: Mapping[str, str], output: IO[bytes], news: Event
) -> Iterator[subprocess.Popen[bytes]]:
    try:
        process = subprocess.Popen(
            shlex.split(command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SearchFailed(f"the command cannot be started: {error}") from None
    try:
        Thread(target=_announce_end, args=(process, news), daemon=True).start()
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _announce_end(process: subprocess.Popen[bytes], news: Event) -> None:
    process.wait()
    news.set()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def _drive(run: Run, ended: Callable[[], bool], deadline: float) -> bool:
    """Act as the customer, and move bank time while the TPP waits; returns whether the run is over before the TPP.

    It also returns when the TPP is to be killed, sends for ever, or has no time left.
    """
    last = time.monotonic()
    while not ended():
        news = run.news.wait(LOOK)
        run.news.clear()
        now = time.monotonic()
        if run.killed or run.endless is not None or now > deadline:
            return False
        silent = not news and now - last > SILENCE
        for redirect in run.bank.call(partial(run.act, silent=silent)):
            visit(redirect)
            last = time.monotonic()
        if news:
            last = now
        elif silent and run.requests:
            if not run.bank.call(run.wait):
                if now - last > OVER:
                    return True
            else:
                last = now - SILENCE / 2  # the TPP gets a moment to react
    for redirect in run.bank.call(run.act):
        visit(redirect)
    return False


def _last(output: IO[bytes]) -> str:
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - OUTPUT_SHOWN))
    return output.read().decode("utf-8", "replace").strip()


def _crash(status: int | None, timeout: float, printed: str) -> str:
    last = f"; it printed: {printed.splitlines()[-1]}" if printed else ""
    if status is None:
        return f"the command did not end within {timeout:g} s{last}"
    if status < 0:
        return f"the command ended with signal {-status}{last}"
    return f"the command ended with status {status}{last}"


def _post(hook: str, body: Mapping[str, Any], timeout: float) -> str | None:
    """POST a run to the hook; returns how the TPP crashed, None if it did not. Raises SearchFailed for 4xx."""
    try:
        request = Request(hook, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
        with _open(request, timeout=timeout):
            return None
    except HTTPError as error:
        if error.code < 500:
            raise SearchFailed(f"the hook answered {error.code}") from None
        return f"the hook answered {error.code}"
    except (URLError, OSError, HTTPException, ValueError) as error:
        return f"the hook cannot be reached: {getattr(error, 'reason', error)}"


def _asked(url: str, kind: str) -> Mapping[str, Any] | None:
    """The claim at an address; None for 404. Raises SearchFailed for an answer that is no claim."""
    try:
        with _open(url, timeout=TIMEOUT) as answer:
            text = answer.read(MOST_BYTES + 1)
        value = json.loads(text)
    except HTTPError as error:
        if error.code == 404:
            return None
        raise SearchFailed(f"--claims: {url} answered {error.code}") from None
    except (URLError, OSError, HTTPException) as error:
        raise SearchFailed(f"--claims: {url} cannot be reached: {getattr(error, 'reason', error)}") from None
    except (ValueError, RecursionError):
        raise SearchFailed(f"--claims: {url} answered something that is not JSON") from None
    problem = unreadable(kind, value)
    if problem is not None:
        raise SearchFailed(f"--claims: {url} answered {problem}")
    return dict(value)
