"""The input, the working data and the result of the signature gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cryptography import x509

from emulator.api.certificates import TppCertificate
from emulator.bank.errors import Code
from emulator.bank.request import AuthenticatedTpp
from emulator.httpsig.signing import REQUEST_TARGET, SignatureHeader, request_target

LONGEST_TEXT = 512  # characters of a tppMessages text


@dataclass(frozen=True, slots=True)
class SignaturePolicy:
    """How strict the gate is; `date_skew` in seconds of real time."""

    profile: str = "documented"  # or lenient
    trust: str = "any"  # or sandbox-ca
    date_skew: int = 300

    @property
    def lenient(self) -> bool:
        """Whether spellings are accepted that only `--profile lenient` allows."""
        return self.profile == "lenient"


class Terms(NamedTuple):
    """The bank's requirements; `instant` is real time in seconds since 1970, `trusted_ca` the sandbox CA."""

    digest_required: bool
    policy: SignaturePolicy
    instant: float
    trusted_ca: x509.Certificate | None


class Fault(NamedTuple):
    """One problem: an error code, the header at fault as the header matrix spells it, and a sentence."""

    code: Code
    path: str
    text: str


def fault(path: str, text: str, *, code: Code = "BAD_REQUEST") -> Fault:
    """A Fault with `text` as a sentence of at most 512 characters that can be encoded."""
    sentence = f"{text}." if len(text) < LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
    return Fault(code, encodable(path)[:100], encodable(sentence))


def encodable(text: str) -> str:
    """`text` with characters replaced that UTF-8 cannot encode (lone surrogates of a header value)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(slots=True)
class Verified:
    """A request with a valid signature. `notes`: what was accepted although it is not the documented form."""

    tpp: AuthenticatedTpp
    certificate: TppCertificate
    notes: tuple[str, ...]
    signing_string: str

    def diagnosis(self) -> dict[str, Any]:
        """Its TPP and signing string, as a JSON object."""
        return {
            "valid": True,
            "tpp": self.tpp.id,
            "roles": sorted(self.tpp.roles),
            "signingString": self.signing_string,
            "notes": list(self.notes),
        }


class SignatureRefused(Exception):
    """The gate refuses the request: `messages` has every fault, the most specific one first.

    `diagnosis` computes the details for the request log, a JSON object (see `diagnosis.py`), at its first call.
    """

    def __init__(self, messages: Sequence[Fault], detail: Callable[[], dict[str, Any]]) -> None:
        super().__init__(messages[0].text)
        self.messages = tuple(messages)
        self._detail = detail
        self._diagnosis: dict[str, Any] | None = None

    def diagnosis(self) -> dict[str, Any]:
        """The signing string, what was tried and the cause, as a JSON object."""
        if self._diagnosis is None:
            self._diagnosis = self._detail()
        return self._diagnosis


@dataclass(slots=True)
class Inspection:
    """One request at the gate, and what the rules have read from it.

    `present` maps lower-case header names to the first value, stripped of blanks. `body` is None if a capture does not
    contain it. `names` are the listed header names. `signing_string` is None if one of them is absent, `signature` if
    it could not be decoded; `hash_name` is `SHA-256` or `SHA-512`. `holds`: the signature is valid; `broken`: it is
    not. `outside` is the part of the public address's path that a proxy removes from the target.
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
    holds: bool = False
    broken: bool = False
    outside: str = ""

    def refuse(self, path: str, text: str) -> None:
        """Add a fault: the header at `path` is wrong, for the reason in the sentence `text`."""
        self.faults.append(fault(path, text))

    def lines(self, target: str) -> list[tuple[str, str]]:
        """The signed lines of a request to `target`, as names and values; without listed headers that are absent."""
        return [
            (name, request_target(self.method, target) if name == REQUEST_TARGET else self.present[name])
            for name in self.names
            if name == REQUEST_TARGET or name in self.present
        ]
