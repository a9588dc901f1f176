"""What the gate learned about one request, rule by rule: the material of the answer and of the diagnosis."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from emulator.api.certificates import TppCertificate
from emulator.api.signature.result import Fault
from emulator.httpsig.header import SignatureHeader
from emulator.httpsig.message import REQUEST_TARGET, request_target


@dataclass(slots=True)
class Evidence:
    """One request at the gate. `present` maps lower-case names to the first value without outer blanks.

    `body` is None when a capture does not show it. `names` are the listed header names, `signing_string` is None
    when one of them is absent, `signature` when it could not be decoded; `hash_name` is `SHA-256` or `SHA-512`.
    `broken` says that the signature did not verify. `outside` is the path in front of the target at the bank's public
    address, where a proxy takes it off.
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
    outside: str = ""

    def lines(self, target: str) -> list[tuple[str, str]]:
        """What is signed of a request to `target`, by name; without headers that are listed and not there."""
        return [
            (name, request_target(self.method, target) if name == REQUEST_TARGET else self.present[name])
            for name in self.names
            if name == REQUEST_TARGET or name in self.present
        ]
