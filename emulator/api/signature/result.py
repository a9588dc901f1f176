"""What the signature gate asks for and answers with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cryptography import x509

from emulator.bank.tpp import Tpp

LONGEST_TEXT = 512  # tppMessages text, SPEC 8


@dataclass(frozen=True, slots=True)
class SignaturePolicy:
    """How strict the gate is (CONTRACT 3.1); `date_skew` in seconds of real time."""

    profile: str = "documented"  # or lenient
    trust: str = "any"  # or sandbox-ca
    date_skew: int = 300

    @property
    def lenient(self) -> bool:
        """Whether the spellings that only `--profile lenient` takes are taken."""
        return self.profile == "lenient"


class Fault(NamedTuple):
    """One thing that is wrong: a code of SPEC 7, the header at fault as SPEC 2.1 spells it, and a sentence."""

    code: str
    path: str
    text: str


def fault(path: str, text: str, *, code: str = "BAD_REQUEST") -> Fault:
    """A Fault with `text` as a sentence that fits into a message (512 characters) and can be encoded."""
    sentence = f"{text}." if len(text) < LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
    return Fault(code, clean(path)[:100], clean(sentence))


def clean(text: str) -> str:
    """`text` with what UTF-8 cannot encode replaced (a lone surrogate of a header value)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(slots=True)
class Verified:
    """A request whose signature holds. `notes`: what was accepted although it is not the documented form."""

    tpp: Tpp
    certificate: x509.Certificate
    notes: tuple[str, ...]
    signing_string: str


class SignatureRefused(Exception):
    """The gate refuses: `messages` holds every fault found, the most telling one first.

    `code`, `path` and `text` are those of the first. `diagnosis` is called when the request log wants the detail;
    it returns a JSON object (see `diagnosis.py`) and remembers it.
    """

    def __init__(self, messages: Sequence[Fault], detail: Callable[[], dict[str, Any]]) -> None:
        super().__init__(messages[0].text)
        self.messages = tuple(messages)
        self._detail = detail
        self._diagnosis: dict[str, Any] | None = None

    @property
    def code(self) -> str:
        """The code of the first message."""
        return self.messages[0].code

    @property
    def path(self) -> str:
        """The header at fault of the first message."""
        return self.messages[0].path

    @property
    def text(self) -> str:
        """The sentence of the first message."""
        return self.messages[0].text

    def diagnosis(self) -> dict[str, Any]:
        """What the bank built, tried and found, as a JSON object."""
        if self._diagnosis is None:
            self._diagnosis = self._detail()
        return self._diagnosis
