"""Commands of the bank in processes forked from one that has imported it: three quarters of a start are imports.

    test or shell --arguments, environment, folder; its stdin, stdout, stderr--> origin, one for a process of tests
        ^                                                                          | forks
        '--------------------- the command's process id, then its status ------ keeper --forks--> command

`Command` is to a test what Popen is; a shell has the `bank-emulator` of `folder()` on its PATH. With `program="pytest"`
the command is a pytest, whose plugin imports the bank. Tests about a start run an interpreter of their own. The origin
ends with the process of tests; a command goes on, as a child would.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import IO

from tests import in_shell

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What no command or few import, with libraries that take long.
SELDOM = ("emulator.__main__", "emulator.agents", "emulator.testing", "emulator.explore")
# Of this, what a command has by its first words is imported before the first such command is forked.
FOR_SOME = {
    "mcp": ("emulator.agents.server",),
    "pytest": ("pytest", "emulator.testing.running"),
    "explore": ("emulator.explore.search",),
}


class Command:
    """`bank-emulator` with these arguments; of a Popen it has what tests use. Its pipes are read as text."""

    def __init__(
        self,
        *arguments: str,
        stdout: int | IO[str] | None = None,
        stderr: int | IO[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        program: str = "bank-emulator",
    ) -> None:
        self.args = [program, *arguments]
        self.returncode: int | None = None
        self.stdout, out = _end(stdout, 1)
        self.stderr, err = _end(stderr, 2)
        origin = os.path.join(folder(), "origin")
        environment = dict(os.environ if env is None else env)
        self._keeper = in_shell.asked(
            origin, tuple(self.args), environment, (0, out, err), os.fspath(cwd or os.getcwd())
        )
        for pipe, end in ((self.stdout, out), (self.stderr, err)):
            if pipe is not None:
                os.close(end)
        self.pid = in_shell.number(self._keeper)

    def poll(self) -> int | None:
        """The status, once it has ended."""
        if self.returncode is None:
            try:
                self.returncode = self.wait(0)
            except subprocess.TimeoutExpired:
                return None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self.returncode = in_shell.number(self._keeper)
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._keeper.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has written to its pipes, to its end."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(2) as readers:  # one for each pipe, so that neither fills up
            texts = readers.map(_rest, (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            finally:
                self.kill()
            out, err = texts
        return out, err

    def __enter__(self) -> Command:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Wait, as Popen does; but for a test that has failed meanwhile, which may be why the command never ends."""
        if error is not None:
            self.kill()
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def folder() -> str:
    """Where the origin listens, and the `bank-emulator` of shells lies."""
    from tests import keys

    environment = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_CONFIG"}
    line = [sys.executable, "-m", "tests.warm"]
    origin = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True)
    assert origin.stdin is not None
    assert origin.stdout is not None
    print(json.dumps(keys.shared()), file=origin.stdin, flush=True)
    # More is not written to its stdin: that closes when this process ends, however that comes about.
    atexit.register(origin.wait)
    atexit.register(origin.stdin.close)
    return origin.stdout.readline().strip()


def _end(wanted: int | IO[str] | None, own: int) -> tuple[IO[str] | None, int]:
    """What a test reads of a stream of the command, and the descriptor that the command gets."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return open(reading, encoding="utf-8"), writing
    if wanted is None:
        return None, own
    return None, wanted if isinstance(wanted, int) else wanted.fileno()


def _rest(pipe: IO[str] | None) -> str:
    if pipe is None or pipe.closed:
        return ""
    with pipe:
        return pipe.read()


def origin() -> None:
    """Import the bank and fork commands until stdin is closed; returns in each command."""
    import gc
    import pkgutil
    import select
    import shlex
    import shutil
    import tempfile
    from importlib import import_module

    import emulator
    from tests import keys

    shared = json.loads(sys.stdin.readline())
    keys.share(shared)
    for module in pkgutil.walk_packages(emulator.__path__, "emulator."):
        if not module.name.startswith(SELDOM):
            with suppress(ImportError):  # of a library in an extra
                import_module(module.name)
    gc.freeze()
    here = tempfile.mkdtemp(prefix="bank-")
    listening = socket.create_server(os.path.join(here, "origin"), family=socket.AF_UNIX)
    script = os.path.join(here, "bank-emulator")
    line = [sys.executable, "-IS", in_shell.__file__, os.path.join(here, "origin")]
    with open(script, "w") as file:
        file.write(f'#!/bin/sh\nexec {shlex.join(line)} "$@"\n')
    os.chmod(script, 0o755)
    ended, ending = socket.socketpair()
    ending.setblocking(False)
    signal.set_wakeup_fd(ending.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print(here, flush=True)
    forks = 0
    asking: dict[int, socket.socket] = {}  # by the process id of the command
    while True:
        ready, _, _ = select.select([0, listening.fileno(), ended.fileno()], [], [])
        if ended.fileno() in ready:
            ended.recv(4096)
            while asking:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                with asking.pop(pid) as asker, suppress(OSError):  # who asked may have ended
                    asker.sendall(in_shell.as_bytes(os.waitstatus_to_exitcode(status)))
        if 0 in ready:
            shutil.rmtree(here)
            sys.exit()
        if listening.fileno() in ready:
            asker, _ = listening.accept()
            _, streams, _, _ = socket.recv_fds(asker, 1, 3)
            with asker.makefile() as text:
                line, environment, where = json.loads(text.readline())
            for module in (module for word in line[:3] for module in FOR_SOME.pop(word, ())):
                with suppress(ImportError):
                    import_module(module)
                gc.freeze()
            forks += 1
            pid = os.fork()
            if pid == 0:
                keys.share(shared, forks)
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (listening, ended, ending, asker, *asking.values()):
                    other.close()
                return _become(streams, line, environment, where)
            asking[pid] = asker
            asker.sendall(in_shell.as_bytes(pid))
            for stream in streams:
                os.close(stream)


def _become(streams: list[int], line: list[str], environment: dict[str, str], where: str) -> None:
    """Make this process what a shell would have started."""
    # Where the tests run under nohup or in the background, these are ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for own, stream in enumerate(streams):
        os.dup2(stream, own)
        os.close(stream)
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = line


def run() -> int:
    """The command that this process has become."""
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        import coverage

        coverage.process_startup()
    try:
        if sys.argv[0] == "pytest":
            import pytest

            sys.path.insert(0, os.getcwd())
            return int(pytest.main(sys.argv[1:]))
        from emulator.__main__ import main

        main()
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else 0
    return 0


def end(status: list[int]) -> None:
    """Exit without taking down all that was imported, which takes as long as the rest of a short command."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status[0])


if __name__ == "__main__":
    status = [1]
    atexit.register(end, status)  # before the imports, so that it is called after what they register
    origin()
    status[0] = run()
