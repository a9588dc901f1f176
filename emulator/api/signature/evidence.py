"""What the gate learned about one request, rule by rule: the material of the answer and of the diagnosis."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from emulator.api.certificates import TppCertificate
from emulator.api.signature.result import Fault
from emulator.httpsig.header import SignatureHeader


@dataclass(slots=True)
class Evidence:
    """One request at the gate. `present` maps lower-case names to the first value without outer blanks.

    `body` is None when a capture does not show it. `names` are the listed header names, `signing_string` is None
    when one of them is absent, `signature` when it could not be decoded; `hash_name` is `SHA-256` or `SHA-512`.
    `broken` says that the signature did not verify.
    """

    method: str
    target: str
    headers: Collection[tuple[str, str]]
    body: bytes | None
    present: dict[str, str]
    repeated: frozenset[str]
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    certificate: TppCertificate | None = None
    header: SignatureHeader | None = None
    names: tuple[str, ...] = ()
    signing_string: str | None = None
    signature: bytes | None = None
    hash_name: str = ""
    broken: bool = False
