"""What can go wrong with the documents, each as one named error."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


class StoreError(Exception):
    """Anything that the store refuses or cannot do."""


class StoreDamaged(StoreError):
    """The kept documents cannot be trusted: `file` is bad at byte `offset` (exit status 3, CONTRACT 1).

    `intact`: the checksum of what stands there holds, so that no disk has changed it: nothing is ever cut away for it.
    """

    def __init__(self, file: Path, offset: int, reason: str, *, intact: bool = False) -> None:
        super().__init__(f"{file} is damaged at byte {offset}: {reason}")
        self.intact = intact
        self.file = file
        self.offset = offset
        self.reason = reason


class StoreExhausted(StoreError):
    """There is not enough memory to read the documents, which may be whole; nothing was changed."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory} cannot be read: there is not enough memory")


class StoreTooNew(StoreError):
    """The documents were written by a later version of this program, in a format that this one does not know."""

    def __init__(self, file: Path, version: int, known: int) -> None:
        super().__init__(f"{file} has format {version}; this version reads up to {known}")
        self.file = file
        self.version = version
        self.known = known


class StoreLocked(StoreError):
    """Another process has the directory open; `holder` names it (exit status 2, CONTRACT 1)."""

    def __init__(self, directory: Path, holder: str) -> None:
        super().__init__(f"{directory} is in use by {holder}")
        self.directory = directory
        self.holder = holder


class StoreShared(StoreError):
    """The store that processes share cannot be used: one line with what helps; `newer`: a later version wrote it."""

    newer = False


class StoreUnwritable(StoreError):
    """The change could not be kept and was undone; reads go on (503 SYSTEM_ERROR, CONTRACT 3.3)."""


Part = Literal["exchanges", "snapshots"]
"""What a shared store has of a bank besides its documents: the request log, and which snapshots there are."""


class NotFetched(BaseException):
    """What a request needs is in the shared store and not in memory: its turn fetches it and answers the request again.

    `bank`: a name, "" for the service as a whole, whose lock is needed; `part`: what of that bank, besides its
    documents; `snapshot`: one of its snapshots; `numbers`: so many more exchanges than were foreseen. No handler of
    requests may catch it.
    """

    def __init__(
        self, *, bank: str | None = None, part: Part | None = None, snapshot: str | None = None, numbers: int = 0
    ) -> None:
        super().__init__(bank, part, snapshot, numbers)
        self.bank = bank
        self.part = part
        self.snapshot = snapshot
        self.numbers = numbers
