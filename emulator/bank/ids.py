"""Ids and randomness: the only module of the core that creates either.

With a seed, an id is a function of the seed, the bank's name, the store's change number and a counter inside that
change. So ids repeat from run to run without a stored generator state, differ between banks, and never repeat after a
reset, because change numbers only grow.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
from binascii import b2a_base64
from functools import partial

from emulator.store import Documents


def _random() -> bytes:
    return os.urandom(32)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _uuid(raw: bytes) -> str:
    """The first 16 bytes as a UUID of version 4; not with the class `UUID`, which takes ten times as long."""
    digits = raw[:16].hex()
    variant = "89ab"[raw[8] >> 4 & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _opaque(raw: bytes) -> str:
    """`enc!!` + URL-safe base64 that ends in `=`, as in production (`--ids opaque`)."""
    return "enc!!" + base64.urlsafe_b64encode(raw[:32]).decode()


def random_uuid() -> str:
    """A random UUID that does not depend on a seed, for things outside a bank."""
    return _uuid(_random())


def fixed_id(name: str, *, opaque: bool = False) -> str:
    """The id for a name in a fixture: the same in every bank and after every reset."""
    raw = hashlib.blake2b(name.encode(), digest_size=32).digest()
    return _opaque(raw) if opaque else _uuid(raw)


def prefix(tpp_id: str) -> str:
    """The beginning of the ids that a TPP chooses itself, escaped so that none is the beginning of another."""
    return tpp_id.replace("%", "%25").replace("|", "%7C") + "|"


class Ids:
    """The id source of one bank: `form` is `uuid` or `opaque`, `seed` makes ids repeat from run to run.

    `stream`: the bank's name, or another name if a deleted bank has used that.
    """

    def __init__(
        self, documents: Documents, *, stream: str = "default", seed: int | None = None, form: str = "uuid"
    ) -> None:
        self._documents = documents
        self.stream = stream
        self.form = form
        self._use(seed)
        self._format = _opaque if form == "opaque" else _uuid
        self._at = -1
        self._count = 0  # ids since change number `_at`, including those of undone changes

    def reseed(self, seed: int | None) -> None:
        """Use this seed for all further ids, unless the open transaction is undone; None: random ids."""
        self._documents.undoing(partial(self._use, self.seed))
        self._use(seed)

    def _use(self, seed: int | None) -> None:
        self.seed = seed
        self._draw = _random if seed is None else self._repeating

    def _repeating(self) -> bytes:
        sequence = self._documents.sequence
        if sequence != self._at:
            self._at, self._count = sequence, 0
        self._count += 1
        name = f"{self.seed}:{self.stream}:{sequence}:{self._count}"
        return hashlib.blake2b(name.encode(), digest_size=32).digest()

    def new(self) -> str:
        """A new resource id in the form of `--ids`."""
        return self._format(self._draw())

    def uuid(self) -> str:
        """A new UUID whatever `--ids` says: psu-id, psu-corporate-id, session ids."""
        return _uuid(self._draw())

    def token(self) -> str:
        """A new URL-safe secret of 256 bits: the last part of a scaRedirect address."""
        # 32 bytes make 43 characters and one "="
        return b2a_base64(self._draw(), newline=False).translate(_URL_SAFE)[:43].decode()

    def fixed(self, name: str) -> str:
        """The id for a name in a fixture, in the form of `--ids`."""
        return fixed_id(name, opaque=self.form == "opaque")

    def random(self, purpose: str) -> random.Random:
        """A random generator for `purpose`; with a seed its numbers repeat from run to run."""
        if self.seed is None:
            return random.Random(os.urandom(32))
        return random.Random(f"{self.seed}:{purpose}")
