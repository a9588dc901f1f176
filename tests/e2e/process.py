"""A bank that is served by a process of its own: its READY line, its orderly end. And what is asked of it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.request import Request, urlopen

from emulator.cli import main
from tests.warm import Command

# A pytest with our plugin alone: reading every plugin that is installed takes two seconds of processor time.
# One that `pytest_in` starts takes half a second, as it is forked from a process that has imported the bank.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "emulator.testing.plugin"}


@dataclass(slots=True)
class Served:
    """A running `bank-emulator serve`: its addresses and its process."""

    urls: list[str]
    process: Command
    state: Path

    @property
    def url(self) -> str:
        return self.urls[0]

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=15)


def start(state: Path, *flags: str) -> Served:
    """Start `serve` on a free port with `state`; returns when it is ready."""
    line = ("serve", "--port", "0", "--state", str(state), *flags)
    process = Command(*line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if process.stdout is None or process.stderr is None:
        raise RuntimeError("the process has no pipes")
    lines = 2 if "--tls-port" in flags else 1
    urls = [process.stdout.readline().removeprefix("READY ").strip() for _ in range(lines)]
    if not all(urls):
        raise RuntimeError(f"serve did not start: {process.stderr.read()}")
    return Served(urls, process, state)


@contextmanager
def served(state: Path, *flags: str) -> Iterator[Served]:
    """A running bank that is killed at the end, whatever happens."""
    running = start(state, *flags)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()


def control(url: str, method: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
    """What the control interface answers, which must be fine; OSError otherwise. A change sends an empty body as {}."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    content = None if method == "GET" else json.dumps(body or {}).encode()
    with urlopen(Request(f"{url}/_emulator/{path}", content, headers, method=method), timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def command(
    *arguments: str, environment: Mapping[str, str] | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """A command to its end, as a shell would run it with `environment` besides and `given` on stdin.

    It runs in this process, as a process of its own would spend half a second on its imports.
    """
    stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8") for text in (given, "", ""))
    with (
        mock.patch.dict(os.environ, environment or {}),
        mock.patch.object(sys, "stdin", stdin),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        status = main.run(list(arguments))
    texts = []
    for stream in (stdout, stderr):
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(arguments, status, *texts)


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of its own in a project, with our plugin alone."""
    line = ("-q", "-p", "no:cacheprovider", *options)
    environment = {**os.environ, **ALONE}
    with Command(
        *line, program="pytest", cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        out, err = run.communicate(timeout=240)
    return subprocess.CompletedProcess(run.args, run.wait(), out, err)
