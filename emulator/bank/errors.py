"""The errors of the bank, raised at any depth and rendered in one place (`api/render.py`).

A code is a member of `Code`, a word of `_BY_STATUS`, a row of the test's `TABLE` (`tests/unit/api/test_statuses.py`),
and a section of errors.md, with *When* and *Next* (the table there is generated). A status of no other code needs a row
of `REFUSALS` (`api/description/openapi.py`) and a refusal in `tests/docs/answers.py`, which records it. The statuses of
redirects are in `authentication/sca.py` (`_STATUSES`; 400 for any other). Texts for TPPs are in English; what a
customer reads in place of a code is `refused_CODE` in `web/pages/wording.json`. A rule's answer takes the usual code of
its status (`BY_STATUS` in `scenario/effects/answer.py`). The schema of scenarios has every code (`python -m
tests.docs.sections`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Category = Literal["ERROR", "WARNING"]
Code = Literal[
    "SYSTEM_ERROR", "BAD_REQUEST", "FORBIDDEN", "NOT_FOUND", "CONFLICT", "HTTP_HEADER_REQUIRED",
    "QUERY_PARAMETER_REQUIRED", "SCA_NOT_FOUND", "SCA_EXPIRED", "SCA_INVALID", "FORMAT_ERROR", "RESOURCE_UNKNOWN",
    "PSU_CREDENTIALS_INVALID", "CONSENT_UNKNOWN", "CONSENT_INVALID", "CONSENT_EXPIRED", "ACCESS_EXCEEDED",
    "PRODUCT_UNKNOWN", "PRODUCT_INVALID", "KID_MISSING", "KID_INVALID", "PAYMENT_FAILED", "EXECUTION_DATE_INVALID",
    "REFERENCE_MIX_INVALID",
]  # fmt: skip
_BY_STATUS: Mapping[int, tuple[Code, ...]] = {
    400: (
        "BAD_REQUEST", "FORMAT_ERROR", "HTTP_HEADER_REQUIRED", "QUERY_PARAMETER_REQUIRED", "KID_MISSING", "KID_INVALID",
        "PAYMENT_FAILED", "EXECUTION_DATE_INVALID", "REFERENCE_MIX_INVALID", "SCA_INVALID",
    ),
    401: (
        "SCA_NOT_FOUND", "SCA_EXPIRED", "CONSENT_UNKNOWN", "CONSENT_INVALID", "CONSENT_EXPIRED",
        "PSU_CREDENTIALS_INVALID",
    ),
    403: ("FORBIDDEN", "PRODUCT_INVALID"),
    404: ("NOT_FOUND", "RESOURCE_UNKNOWN", "PRODUCT_UNKNOWN"),
    409: ("CONFLICT",),
    429: ("ACCESS_EXCEEDED",),
    500: ("SYSTEM_ERROR",),
}  # fmt: skip
# errors.md#all-codes; RESOURCE_UNKNOWN is 400 if the id is in a body.
STATUS: Mapping[Code, int] = {code: status for status, codes in _BY_STATUS.items() for code in codes}

MOST_MESSAGES = 1000  # of one request, to limit the size of the answer (assumed)
MOST_QUOTED = 60  # characters of a refused value that its message quotes


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of `tppMessages`: an error code, the member or header at fault, and a sentence (at most 512)."""

    code: Code
    text: str
    path: str | None = None
    category: Category = "ERROR"


def quoted(value: str) -> str:
    """A refused value as its message quotes it: shortened, and with escapes for invisible characters."""
    shown = shortened(value)
    return f'"{shown}"' if shown.isprintable() else ascii(shown)


def shortened(value: str) -> str:
    """The value, cut after MOST_QUOTED characters."""
    return value if len(value) <= MOST_QUOTED else value[:MOST_QUOTED] + "..."


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun: `1 entry`, `2 entries`; `several` is the plural if it is not `one` with an s."""
    return f"{number} {one if number == 1 else several or one + 's'}"


class BankError(Exception):
    """A refusal by the bank: one or more messages.

    `in_body`: the id at fault is inside a body (RESOURCE_UNKNOWN is then 400).
    `status` overrides the HTTP status of the code, `headers` are further ones of the answer; only `emulator.api` and
    `emulator.control` set them.
    """

    def __init__(
        self,
        code: Code,
        text: str,
        path: str | None = None,
        *,
        in_body: bool = False,
        status: int | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(f"{code}: {text}")
        self.messages: tuple[Message, ...] = (Message(code, text, path),)
        self.in_body = in_body
        self.status = status
        self.headers = headers

    @property
    def code(self) -> Code:
        """The code of the first message, which decides the status."""
        return self.messages[0].code

    @classmethod
    def several(cls, messages: Sequence[Message], *, status: int | None = None) -> BankError:
        """One refusal that reports all of `messages` (at least one) at once, or the first 1,000 of more."""
        first = messages[0]
        error = cls(first.code, first.text, first.path, status=status)
        error.messages = tuple(messages[:MOST_MESSAGES])
        return error


class ScaNeeded(BankError):
    """The customer must authenticate first: 401 with a scaRedirect link."""
