"""Ids and randomness: the only place of the core that draws either.

With a seed the nth id of a bank is a function of the seed, the store's change number since the last reset and a
counter inside that change, so that a run, a reset or a restart repeats without a stored generator state.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
from binascii import b2a_base64
from struct import Struct

from emulator.bank.documents import IdsDocument
from emulator.bank.kinds import IDS
from emulator.store import Documents

_many = Struct("32s" * 64)  # draws of 32 bytes
_drawn: list[bytes] = []
# or parent and child would draw the same
os.register_at_fork(after_in_child=_drawn.clear)


def _random() -> bytes:
    """Random bytes; the system is asked for many at a time, since asking takes longer than all the rest."""
    try:
        return _drawn.pop()
    except IndexError:
        _drawn.extend(_many.unpack(os.urandom(_many.size)))
        return _drawn.pop()


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _uuid(raw: bytes) -> str:
    """The first 16 bytes as a UUID of version 4, written here because the class `UUID` takes ten times as long."""
    digits = raw[:16].hex()
    variant = "89ab"[raw[8] >> 4 & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _opaque(raw: bytes) -> str:
    """`enc!!` + URL-safe base64 that ends in `=`, the form of production (CONTRACT 1, --ids opaque)."""
    return "enc!!" + base64.urlsafe_b64encode(raw[:32]).decode()


def random_uuid() -> str:
    """A UUID that no seed repeats, for what belongs to no bank."""
    return _uuid(_random())


def fixed_id(name: str, *, opaque: bool = False) -> str:
    """The id of a thing that a fixture names: the same in every bank and after every reset."""
    raw = hashlib.blake2b(name.encode(), digest_size=32).digest()
    return _opaque(raw) if opaque else _uuid(raw)


class Ids:
    """The id source of one bank: `form` is `uuid` or `opaque`, `seed` makes it repeat."""

    def __init__(self, documents: Documents, *, seed: int | None = None, form: str = "uuid") -> None:
        self._documents = documents
        self.form = form
        self.reseed(seed)
        self._written = _opaque if form == "opaque" else _uuid
        self._base = 0
        self._at = -1
        self._counts: dict[int, int] = {}  # by number since the reset, which may be taken back within a change
        IDS.follow(documents, self._take)

    def reseed(self, seed: int | None) -> None:
        """Draw from this seed on; None: at random."""
        self.seed = seed
        self._draw = _random if seed is None else self._repeating

    def _take(self, document: IdsDocument | None) -> None:
        """Count from the change number that the last reset noted; what was drawn in this change is not drawn again."""
        self._base = document["base"] if document else 0

    def restart(self) -> None:
        """After a reset: ids repeat from here on (with a seed)."""
        IDS.write(self._documents, {"id": "ids", "base": self._documents.sequence + 1})
        self._counts.pop(self._documents.sequence - self._base, None)

    def _repeating(self) -> bytes:
        sequence = self._documents.sequence
        if sequence != self._at:
            self._at = sequence
            self._counts.clear()
        number = sequence - self._base
        self._counts[number] = count = self._counts.get(number, 0) + 1
        name = f"{self.seed}:{number}:{count}"
        return hashlib.blake2b(name.encode(), digest_size=32).digest()

    def new(self) -> str:
        """A new resource id in the form of `--ids`."""
        return self._written(self._draw())

    def uuid(self) -> str:
        """A new UUID whatever `--ids` says: psu-id, psu-corporate-id, session ids (CONTRACT 13)."""
        return _uuid(self._draw())

    def token(self) -> str:
        """A new URL-safe secret of 256 bits: the last part of a scaRedirect address."""
        # 32 bytes make 43 characters and one "="
        return b2a_base64(self._draw(), newline=False).translate(_URL_SAFE)[:43].decode()

    def fixed(self, name: str) -> str:
        """The id of a thing that a fixture names, in the form of `--ids`."""
        return fixed_id(name, opaque=self.form == "opaque")

    def random(self, purpose: str) -> random.Random:
        """A generator for `purpose`: repeats with a seed, differs from purpose to purpose."""
        if self.seed is None:
            return random.Random(os.urandom(32))
        return random.Random(f"{self.seed}:{purpose}")
