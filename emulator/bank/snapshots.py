"""Named snapshots of a bank: documents, clock, rules and settings, which can be restored.

`Snapshots` holds them in memory; `emulator.assemble` has the forms that store them, in files or where several processes
share them: a form has `_store`, `_read` and `_drop`. A reset keeps them (assumed); a bank that is created again has
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, real_now
from emulator.bank.errors import BankError
from emulator.bank.kinds import META
from emulator.bank.threads import LASTS, in_thread
from emulator.store import Documents, Image, StoreDeleted, StoreError, StoreUncertain, StoreUnwritable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
MOST = 100
LARGE = 4 << 20  # bytes; a larger image is prepared in a thread, and a snapshot does not stay in memory if it is stored


def deleted_meanwhile() -> BankError:
    """The refusal of work in several steps on a bank that is gone."""
    return BankError("CONFLICT", "The bank was deleted in the meantime.")


@dataclass(slots=True)
class SavedSnapshot:
    """A snapshot: when it was saved, in real time, and its image; None if it must be read where it is stored."""

    created: datetime
    image: Image | None


def prepared(documents: Documents, image: Image, report: Callable[[int, int], None]) -> Generator[object, None, Image]:
    """The image for a short `Documents.restore`: a large one is prepared in a thread, with a report after each part."""
    if image.size <= LARGE:
        return image
    report(1, 2)
    ready = yield from in_thread(lambda: documents.prepare(image))
    report(2, 2)
    return ready


class Snapshots:
    """The snapshots of one bank; `present`: name and time of each that is `stored` already, the oldest first."""

    stored = False

    def __init__(self, present: Iterable[tuple[str, datetime]] = ()) -> None:
        self._saved = {name: SavedSnapshot(created, None) for name, created in present}
        self._under_way: set[str] = set()  # being saved or deleted
        self._cleared = 0  # how often the bank was replaced: what was being saved then is deleted at its end

    def saving(self, bank: Bank, name: str) -> Iterator[object]:
        """Save the bank's current state; a snapshot of the same name is replaced.

        In steps, between which the bank may be used; the state of the first step is saved.
        """
        if not NAME.fullmatch(name):
            text = "The name of a snapshot has letters, digits, dots, dashes and underscores, at most 63."
            raise BankError("FORMAT_ERROR", text, "name")
        if name not in self._saved and len(self._saved) >= MOST:
            raise BankError("CONFLICT", f"There are {MOST} snapshots; delete one first.", "name")
        self._refuse_while_under_way(name)
        image = bank.documents.image().with_document(META, bank.clock.with_moment())
        created, cleared = real_now(), self._cleared
        with self._working_on([name]):
            if self.stored:
                yield None  # after the turn everything in it lasts
                yield from self._store(bank, name, image, created)
            if cleared != self._cleared:
                yield from self._drop([name])
                raise BankError("CONFLICT", "The snapshots of the bank were deleted meanwhile.")
        self._saved.pop(name, None)
        in_memory = not self.stored or image.size <= LARGE
        self._saved[name] = SavedSnapshot(created, image if in_memory else None)

    def restore(self, bank: Bank, name: str, content: Image | None = None) -> None:
        """Restore the bank from a snapshot; RESOURCE_UNKNOWN, CONFLICT.

        `content`: the result of `prepare` for this name.
        """
        content = content or self._image(name, self._find(name))
        with bank.documents.transaction():
            bank.documents.restore(content)
            bank.clock.resume()

    def prepare(self, bank: Bank, name: str, report: Callable[[int, int], None]) -> Generator[object, None, Image]:
        """Prepare a snapshot for `restore`: it is read in a thread, and a large one prepared. Raises as `restore` does.

        `report` is called for a large one after each part of the work.
        """
        saved = self._find(name)
        image = saved.image or (yield from in_thread(lambda: self._image(name, saved)))
        return (yield from prepared(bank.documents, image, report))

    def deleting(self, name: str) -> Iterator[object]:
        """Delete a snapshot, in steps; RESOURCE_UNKNOWN, CONFLICT."""
        self._find(name)
        self._refuse_while_under_way(name)
        with self._working_on([name]):
            yield None  # what was changed before is stored by the next step, or that fails
            yield from self._drop([name])
        self._saved.pop(name, None)

    def _refuse_while_under_way(self, name: str) -> None:
        if name in self._under_way:
            raise BankError("CONFLICT", f"The snapshot {name} is being saved or deleted.", "name")

    def clearing(self) -> Iterator[object]:
        """Delete all snapshots of a bank that was replaced, in steps."""
        if self._saved or self._under_way:
            yield LASTS  # as above
            self._cleared += 1
            for name in self._under_way:
                self._saved.pop(name, None)
            names = list(self._saved)
            try:
                with self._working_on(names):
                    yield from self._drop(names)
            except StoreDeleted:
                raise
            except StoreUnwritable as error:
                raise StoreUncertain(f"the bank is replaced, and its snapshots are there: {error}") from error
            for name in names:
                self._saved.pop(name, None)

    @contextmanager
    def _working_on(self, names: Sequence[str]) -> Iterator[None]:
        """Save or delete these; nobody else may meanwhile. If it fails, what is stored of them may be old or new."""
        self._under_way.update(names)
        try:
            yield
        except BaseException as error:
            if self.stored:
                for saved in filter(None, map(self._saved.get, names)):
                    saved.image = None
                self._failed(error)
            raise
        finally:
            self._under_way.difference_update(names)

    def listing(self) -> list[dict[str, Any]]:
        """`{name, created}` of each, newest first; `created` is real time."""
        return [{"name": name, "created": date_time(saved.created)} for name, saved in reversed([*self._saved.items()])]

    def _find(self, name: str) -> SavedSnapshot:
        saved = self._saved.get(name)
        if saved is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no snapshot {name[:100]}.")
        return saved

    def _image(self, name: str, saved: SavedSnapshot) -> Image:
        """The image of a snapshot, which may be replaced or deleted meanwhile."""
        if saved.image is not None:
            return saved.image
        try:
            image = self._read(name)
        except LookupError:
            if self._saved.get(name) is saved:
                self._saved.pop(name, None)  # this is a thread
            raise BankError("RESOURCE_UNKNOWN", f"The snapshot {name} does not exist any more.") from None
        except StoreUnwritable:
            raise
        except (OSError, StoreError) as error:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {error}") from None
        if image.size <= LARGE:
            saved.image = image
        return image

    # How they are stored

    def _failed(self, _error: BaseException) -> None:
        """Saving or deleting has failed."""

    def _store(self, _bank: Bank, _name: str, _image: Image, _created: datetime) -> Iterator[object]:
        """Store a snapshot of the bank, unless that is deleted meanwhile, in steps."""
        yield from ()

    def _read(self, name: str) -> Image:
        """Read a snapshot, in a thread; LookupError if there is none any more."""
        raise LookupError(name)

    def _drop(self, names: Sequence[str]) -> Iterator[object]:
        """Delete what is stored of snapshots, in steps."""
        del names
        yield from ()
