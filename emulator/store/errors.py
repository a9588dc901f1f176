"""The errors of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


class StoreError(Exception):
    """Base class of the errors of the store."""


class StoreDamaged(StoreError):
    """The stored documents are damaged: `file`, at byte `offset` (exit status 3, CONTRACT 1).

    `intact`: the checksum there is correct, so that the disk has not changed the data; a repair never removes it.
    """

    def __init__(self, file: Path, offset: int, reason: str, *, intact: bool = False) -> None:
        super().__init__(f"{file} is damaged at byte {offset}: {reason}")
        self.intact = intact
        self.file = file
        self.offset = offset
        self.reason = reason


class StoreExhausted(StoreError):
    """Memory is not sufficient to read the documents, which may be undamaged; nothing was changed."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory} cannot be read: not enough memory")


class StoreTooNew(StoreError):
    """The documents were written by a later version of this program, in a format unknown to this one."""

    def __init__(self, file: Path, version: int, known: int) -> None:
        super().__init__(f"{file} has format {version}; this version reads up to {known}")
        self.file = file
        self.version = version
        self.known = known


class StoreLocked(StoreError):
    """Another process, `holder`, has the directory open (exit status 2, CONTRACT 1)."""

    def __init__(self, directory: Path, holder: str) -> None:
        super().__init__(f"{directory} is in use by {holder}")
        self.directory = directory
        self.holder = holder


class StoreShared(StoreError):
    """The shared store cannot be used: one line with a remedy; `newer`: it was written by a later version."""

    newer = False


class StoreUnwritable(StoreError):
    """The change could not be stored and was undone; reads still work (503 SYSTEM_ERROR, CONTRACT 3.3)."""


Part = Literal["exchanges", "snapshots"]
"""The data of a bank in a shared store besides its documents: the request log, and the list of snapshots."""


class NotFetched(BaseException):
    """A request needs data that is in the shared store but not in memory: its turn fetches it and runs it again.

    `bank`: the bank whose lock is needed, "" for the service as a whole; `part`: the data of that bank besides its
    documents; `snapshot`: one of its snapshots; `numbers`: how many more exchange numbers are needed than reserved.
    Request handlers must not catch it.
    """

    def __init__(
        self, *, bank: str | None = None, part: Part | None = None, snapshot: str | None = None, numbers: int = 0
    ) -> None:
        super().__init__(bank, part, snapshot, numbers)
        self.bank = bank
        self.part = part
        self.snapshot = snapshot
        self.numbers = numbers
