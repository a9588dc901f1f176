"""Faults of single answers: lost, late, unreadable, with members that nobody knows, or a refusal of the moment."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from emulator.bank.validation import Omittable
from emulator.conformance.explore.faults import COUNTS, RequestFault


class Lost(RequestFault):
    """`when`: before the bank acts, or after."""

    name = "lost"
    summary = "The connection closes without an answer: before the bank acts, or after it has."
    effects = ("disconnect",)
    draws: ClassVar = {"count": COUNTS}
    example: ClassVar = {"of": "createPayment", "at": 1, "count": 2, "when": "after"}
    spoils = True
    weight = 2

    when: Literal["after", "before"] = "after"

    def then(self) -> dict[str, Any]:
        return {"disconnect": self.when}

    def described(self) -> str:
        return f"{self.numbers()}: the {'answer' if self.when == 'after' else 'request'} is lost"


class Malformed(RequestFault):
    """`form`: what the answer is instead."""

    name = "malformed"
    summary = "The bank acts, but its answer cannot be read."
    effects = ("malformed",)
    draws: ClassVar = {"count": COUNTS}
    example: ClassVar = {"of": "getPaymentStatus", "at": 1, "count": 1, "form": "truncated"}
    spoils = True

    form: Literal["truncated", "not-json", "wrong-type", "empty", "html"] = "truncated"

    def then(self) -> dict[str, Any]:
        return {"malformed": self.form}

    def described(self) -> str:
        return f"{self.numbers()}: the body of the answer is {self.form}"


class NewMembers(RequestFault):
    """Every object of the answer has one more member."""

    name = "new-members"
    summary = "An answer has members that nobody knows, as banks add them without notice."
    effects = ("malformed",)
    example: ClassVar = {"of": "getPaymentStatus", "at": 1}

    def then(self) -> dict[str, Any]:
        return {"malformed": "new-members"}

    def described(self) -> str:
        return f"{self.numbers()}: the answer has new members"


class SlowAnswer(RequestFault):
    """`ms`: the delay in milliseconds."""

    name = "slow"
    summary = "An answer comes late, in real time."
    effects = ("delay",)
    draws: ClassVar = {"ms": (20, 100)}
    example: ClassVar = {"of": "createPayment", "at": 1, "ms": 200}

    ms: Annotated[int, Field(ge=1, le=60_000)] = 100

    def then(self) -> dict[str, Any]:
        return {"delay": f"{self.ms}ms"}

    def described(self) -> str:
        return f"{self.numbers()}: the answer takes {self.ms} ms longer"


class Unavailable(RequestFault):
    """`retry`: the seconds of Retry-After."""

    name = "unavailable"
    summary = "The bank answers 503 or 429, with or without Retry-After."
    effects = ("answer",)
    draws: ClassVar = {"retry": (None, 1, 30), "count": COUNTS}
    example: ClassVar = {"of": "getPaymentStatus", "at": 1, "count": 1, "status": 503}
    spoils = True
    weight = 6

    status: Literal[503, 429] = 503
    retry: Omittable[Annotated[int, Field(ge=1, le=86400)]] = None

    def then(self) -> dict[str, Any]:
        text = "The bank is unavailable for a moment." if self.status == 503 else "Too many requests."
        headers = {} if self.retry is None else {"headers": {"Retry-After": str(self.retry)}}
        return {"answer": {"status": self.status, "text": text, **headers}}

    def described(self) -> str:
        retry = "" if self.retry is None else f" with Retry-After: {self.retry}"
        return f"{self.numbers()}: answered {self.status}{retry}"
