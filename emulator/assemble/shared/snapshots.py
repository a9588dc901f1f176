"""The snapshots of a bank that several processes share; the store has their content."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.clock import real_now
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS
from emulator.bank.snapshots import SavedSnapshot, Snapshots, is_small
from emulator.bank.threads import in_thread
from emulator.store import Image, NotFetched, StoreError
from emulator.store.snapshot import image_from_bytes, snapshot_bytes


class SharedSnapshots(Snapshots):
    """The snapshots of a bank that several processes share; they are saved and deleted with the changes of a turn.

    `demand` is called before the list of snapshots is read (see NotFetched); an image is fetched when it is restored.
    `stage` stores a large content in advance, outside of any turn; it returns the name by which a turn refers to it.
    """

    def __init__(self, bank: str, demand: Callable[[], None], stage: Callable[[str, bytes], str]) -> None:
        super().__init__()
        self._bank = bank
        self._demand = demand
        self._stage = stage
        self._before: dict[str, SavedSnapshot] | None = None
        self._damaged: dict[str, StoreError] = {}  # of those that were fetched
        self.pending: dict[str, bytes | str | None] = {}
        """The content of the snapshots that this turn has saved, or what stands for it; None: deleted."""

    def saving(self, bank: Bank, name: str) -> Iterator[object]:
        """As for other banks; the last step stores the snapshot with the changes of its turn."""
        self._demand()
        return super().saving(bank, name)

    def clear(self) -> None:
        """Delete all snapshots."""
        self._demand()
        super().clear()

    def listing(self) -> list[dict[str, Any]]:
        """`{name, created}` of each, newest first; `created` is real time."""
        self._demand()
        return super().listing()

    def _find(self, name: str) -> SavedSnapshot:
        self._demand()
        return super()._find(name)

    def stored(self, present: Iterable[tuple[str, datetime]]) -> None:
        """Set the list of stored snapshots, oldest first."""
        before = self._saved
        self._saved = {}
        for name, created in present:
            saved = before.get(name)
            same = saved is not None and saved.created == created
            self._saved[name] = saved if saved is not None and same else SavedSnapshot(created, None)

    def is_fetched(self, name: str) -> bool:
        """Whether the image of a stored snapshot is in memory."""
        return name in self._saved and self._saved[name].image is not None

    async def fetched(self, name: str, created: datetime, content: bytes) -> None:
        """Set the image of a stored snapshot, unless another one has its name meanwhile or it is damaged."""
        read = partial(image_from_bytes, content, KINDS, file=Path(name))
        try:
            image = read() if is_small(len(content)) else await asyncio.to_thread(read)
        except StoreError as error:
            self._damaged[name] = error
            return
        if name in self._saved and self._saved[name].created == created:
            self._saved[name].image = image

    def changes(self) -> list[tuple[str, datetime, bytes | str | None]]:
        """The snapshots that this turn has saved or deleted (content None), to be stored."""
        return [
            (name, real_now() if content is None else self._saved[name].created, content)
            for name, content in self.pending.items()
        ]

    def confirm(self) -> None:
        """The changes of this turn are stored."""
        self._before = None
        self.pending = {}

    def undo(self) -> None:
        """Undo the changes of this turn."""
        if self._before is not None:
            self._saved = self._before
        self.confirm()

    def _keep(self, name: str, image: Image) -> Generator[object, None, Image | None]:
        if is_small(image.size):
            self._change(name, snapshot_bytes(image.tables))
            return image
        self._change(name, (yield from in_thread(lambda: self._stage(self._bank, snapshot_bytes(image.tables)))))
        return None

    def _drop(self, name: str) -> None:
        self._change(name, None)

    def _change(self, name: str, content: bytes | str | None) -> None:
        if self._before is None:
            self._before = dict(self._saved)
        self.pending[name] = content

    def _read(self, name: str) -> Image:
        damage = self._damaged.pop(name, None)
        if damage is not None:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {damage}")
        raise NotFetched(bank=self._bank, snapshot=name)
