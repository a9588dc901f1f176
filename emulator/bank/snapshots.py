"""Named snapshots of a bank: documents, clock, rules and settings, which can be restored.

A snapshot is a content that the log of the bank has stored, and a document of the store that names it: it comes, and
goes, with a change like every other. A reset keeps them (assumed); a bank that is created again has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, real_now
from emulator.bank.errors import BankError
from emulator.bank.kinds import META
from emulator.bank.threads import in_thread
from emulator.store import SNAPSHOTS, Documents, Image, NamedContent, StoreError, StoreUnwritable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
LARGE = 4 << 20  # bytes; a larger image is prepared in a thread, and that of a snapshot does not stay in memory


def prepared(documents: Documents, image: Image, report: Callable[[int, int], None]) -> Generator[object, None, Image]:
    """The image for a short `Documents.restore`: a large one is prepared in a thread, with a report after each part."""
    if image.size <= LARGE:
        return image
    report(1, 2)
    ready = yield from in_thread(lambda: documents.prepare(image))
    report(2, 2)
    return ready


def named(name: str, created: datetime, content: str) -> NamedContent:
    """The document of a snapshot."""
    return {"id": name, "created": created.isoformat(timespec="microseconds"), "content": content}


class Snapshots:
    """The snapshots of one bank."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._images: dict[str, Image] = {}  # small ones, by the names of their contents

    def saving(self, bank: Bank, name: str) -> Iterator[object]:
        """Save the bank's current state; a snapshot of the same name is replaced.

        In steps, between which the bank may be used; the state of the first step is saved.
        """
        documents = self._documents
        if not NAME.fullmatch(name):
            text = "The name of a snapshot has letters, digits, dots, dashes and underscores, at most 63."
            raise BankError("FORMAT_ERROR", text, "name")
        image = documents.image().with_document(META, bank.clock.with_moment())
        created = real_now()
        with bank.preparing():
            yield None  # after the turn everything in it lasts
            stored = yield from in_thread(lambda: documents.log.store_content(image))
        with documents.transaction():
            self._remove(name)
            documents.put(SNAPSHOTS, named(name, created, stored.file))
        stored.keep()
        if image.size <= LARGE:
            self._images[stored.file] = image

    def restore(self, bank: Bank, name: str, content: Image | None = None) -> None:
        """Restore the bank from a snapshot; RESOURCE_UNKNOWN, CONFLICT.

        `content`: the result of `prepare` for this name.
        """
        content = content or self._image(self._find(name))
        with bank.documents.transaction():
            bank.documents.restore(content)
            bank.clock.resume()

    def prepare(self, bank: Bank, name: str, report: Callable[[int, int], None]) -> Generator[object, None, Image]:
        """Prepare a snapshot for `restore`: it is read in a thread, and a large one prepared. Raises as `restore` does.

        `report` is called for a large one after each part of the work.
        """
        while True:
            saved = self._find(name)
            try:
                image = self._images.get(saved["content"]) or (yield from in_thread(partial(self._image, saved)))
                break
            except BankError:
                if self._documents.get(SNAPSHOTS, name) == saved:  # it was not replaced or deleted meanwhile
                    raise
        return (yield from prepared(bank.documents, image, report))

    def delete(self, name: str) -> None:
        """Delete a snapshot; RESOURCE_UNKNOWN."""
        self._find(name)
        self._remove(name)

    def clear(self) -> None:
        """Delete all snapshots of a bank that is replaced."""
        for saved in self._documents.all(SNAPSHOTS):
            self._remove(saved["id"])

    def _remove(self, name: str) -> None:
        """Delete a snapshot if there is one, and its content once that lasts."""
        documents = self._documents
        saved = documents.get(SNAPSHOTS, name)
        if saved is not None:
            with documents.transaction():
                documents.delete(SNAPSHOTS, name)
                documents.undoing(documents.log.stored(saved["content"]).keep)
            self._images.pop(saved["content"], None)

    def listing(self) -> list[dict[str, Any]]:
        """`{name, created}` of each, newest first; `created` is real time."""
        return [
            {"name": saved["id"], "created": date_time(datetime.fromisoformat(saved["created"]))}
            for saved in reversed([*self._documents.all(SNAPSHOTS)])
        ]

    def _find(self, name: str) -> NamedContent:
        saved = self._documents.get(SNAPSHOTS, name)
        if saved is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no snapshot {name[:100]}.")
        return saved

    def _image(self, saved: NamedContent) -> Image:
        """The image of a snapshot, which may be replaced or deleted meanwhile; for any thread."""
        name, content = saved["id"], saved["content"]
        if content in self._images:
            return self._images[content]
        try:
            image = self._documents.log.content(content)
        except (LookupError, FileNotFoundError):
            raise BankError("RESOURCE_UNKNOWN", f"The snapshot {name} does not exist any more.") from None
        except StoreUnwritable:
            raise
        except (OSError, StoreError) as error:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {error}") from None
        if image.size <= LARGE:
            self._images[content] = image
        return image
