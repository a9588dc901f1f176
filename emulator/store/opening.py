"""Opening a store: of a directory, or of nothing but memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from emulator.store.disk import Disk
from emulator.store.kinds import Kind, by_name
from emulator.store.storage import JournalStorage, VolatileStorage
from emulator.store.store import Store

Durability = Literal["process", "power"]


def memory_store(kinds: Sequence[Kind[Any]]) -> Store:
    """A store that keeps nothing beyond the process."""
    return Store(VolatileStorage(), kinds)


def open_store(
    directory: Path, kinds: Sequence[Kind[Any]], durability: Durability = "process", *, disk: Disk | None = None
) -> Store:
    """The store of a directory, which is made (0700) when missing.

    `durability`: `process` survives the death of the process, `power` also that of the machine (see `sync`).
    Raises StoreDamaged, StoreTooNew, StoreLocked, OSError.
    """
    with _without_collection():
        storage = JournalStorage(directory, by_name(kinds), power=durability == "power", disk=disk)
        try:
            return Store(storage, kinds)
        except BaseException:
            storage.close()
            raise


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collections meanwhile: hundreds of thousands of new objects would set off many, all in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
