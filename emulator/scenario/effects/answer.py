"""`answer: {status, code, text, category, headers, json}`: the bank does not act, this is answered in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from emulator.api.messages import Response
from emulator.api.operation import Access, Call, Reply
from emulator.api.render import JSON, STATUS, TEXT_LIMIT, encode, message_body
from emulator.bank.errors import Category, Message, ScaNeeded
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part, text_schema

MEMBERS = ("status", "code", "text", "category", "headers", "json")
LOWEST, HIGHEST = 200, 599
LEAST_FAILURE = 400
NOTHING = object()  # where there is no body; None is the JSON value null
WITHOUT_BODY = frozenset({204, 205, 304})
# The web side writes these itself; a second one would break the answer for every client.
OWN_HEADERS = frozenset(
    {
        *("content-length", "transfer-encoding", "connection", "date", "server"),
        *("content-encoding", "content-language", "x-request-id"),
    }
)
BY_STATUS = {
    401: "PSU_CREDENTIALS_INVALID",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    409: "CONFLICT",
    429: "ACCESS_EXCEEDED",
}

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e]{0,2000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answer:
    """A ready answer: what the bank says in a `message`, or any JSON value, or no body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    message: Message | None = None
    json: Any = NOTHING

    def reply(self, call: Call) -> Reply:
        """What is answered in the bank's place."""
        if self.message is None:
            return Reply(self.status, None if self.json is NOTHING else encode(self.json))
        if self.asks_for_sca and _leads_to_sca(call):
            raise ScaNeeded(self.message.code, self.message.text)
        return Reply(self.status, {"tppMessages": [message_body(self.message)]})

    def head(self, response: Response, _dice: Random) -> None:
        """Add the headers of the rule; a Content-Type takes the place of the usual one."""
        if any(name.lower() == "content-type" for name, _ in self.headers) and JSON in response.headers:
            response.headers.remove(JSON)
        response.headers += self.headers

    @property
    def asks_for_sca(self) -> bool:
        """Whether it is a 401 of the bank, which carries scaRedirect (CONTRACT 3.3)."""
        message = self.message
        of_the_bank = message is not None and STATUS.get(message.code) == 401 and message.category == "ERROR"
        return self.status == 401 and of_the_bank


def _leads_to_sca(call: Call) -> bool:
    """Whether an SCA helps, and who asks can be led back."""
    about_a_customer = call.operation.access is not Access.OPEN or call.operation.before_first_sca
    return about_a_customer and bool(call.tpp.id) and "tpp-redirect-uri" in call.headers


def _status(part: Part | None, code: str | None) -> int:
    if part is None:
        return STATUS[code] if code is not None else 200
    return part.whole(LOWEST, HIGHEST) or 500


def _headers(part: Part | None) -> tuple[tuple[str, str], ...]:
    headers = []
    for name, member in part.mapping().items() if part is not None else ():
        if not _NAME.fullmatch(name):
            member.wrong("This is not the name of a header.")
        elif name.lower() in OWN_HEADERS:
            member.wrong(f"{name} is written by the bank itself.")
        value = str(member.value)
        if isinstance(member.value, bool) or not isinstance(member.value, str | int) or not _VALUE.fullmatch(value):
            member.expected("one line of ASCII text")
        headers.append((name, value))
    return tuple(headers)


def _message(members: Mapping[str, Part], status: int, code: str | None) -> Message:
    """What the members say; beside a success a warning, as the bank's own are."""
    usual = BY_STATUS.get(status) or ("SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST")
    category: Category = "ERROR"
    if status < LEAST_FAILURE:
        usual, category = "FORMAT_ERROR", "WARNING"
    if "category" in members:
        category = "WARNING" if members["category"].one_of(("ERROR", "WARNING"), "category") == "WARNING" else "ERROR"
    text = (members["text"].text(longest=TEXT_LIMIT) if "text" in members else None) or "A scripted rule answers this."
    return Message(code or usual, text, None, category)


def _check_body(members: Mapping[str, Part], said: Sequence[str], status: int) -> None:
    """What would not be answered has no use: a message beside json, and either where no body is."""
    for name in said if "json" in members else ():
        members[name].wrong(f"{name} has no use beside json, which is the whole answer.")
    for name in ("json", *said) if status in WITHOUT_BODY else ():
        if name in members:
            members[name].wrong(f"An answer with status {status} has no body.")


def read(part: Part) -> Effect | None:
    """At least one of status, code and json."""
    members = part.members(MEMBERS)
    if not {"status", "code", "json"} & set(members):
        if isinstance(part.value, dict):
            part.wrong("An answer needs a status, a code or a json.")
        return None
    said = [name for name in ("code", "text", "category") if name in members]
    code = members["code"].one_of(KNOWN_CODES, "code") if "code" in members else None
    status = _status(members.get("status"), code)
    _check_body(members, said, status)
    headers = _headers(members.get("headers"))
    if "json" in members:
        answer = Answer(status, headers, json=members["json"].value)
    elif status in WITHOUT_BODY:
        answer = Answer(status, headers)
    elif said or status >= LEAST_FAILURE:
        answer = Answer(status, headers, message=_message(members, status, code))
    else:
        answer = Answer(status, headers, json={})
    return Effect(answer.reply, answer.head, instead=True, leaves=("sca",) if answer.asks_for_sca else ())


KNOWN_CODES = tuple(STATUS)

EFFECT = EffectKind(
    name="answer",
    summary="The bank does not act; this is answered in its place: a refusal of SPEC 7, or any JSON.",
    schema={
        "type": "object",
        "properties": {
            "status": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST},
            "code": {"enum": list(KNOWN_CODES)},
            "text": text_schema(TEXT_LIMIT),
            "category": {"enum": ["ERROR", "WARNING"]},
            "headers": {
                "type": "object",
                "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
                "additionalProperties": {"type": ["string", "integer"], "pattern": f"^{_VALUE.pattern}$"},
            },
            "json": {},
        },
        "anyOf": [{"required": ["status"]}, {"required": ["code"]}, {"required": ["json"]}],
        "additionalProperties": False,
    },
    read=read,
    example={"status": 503, "text": "Closed for maintenance.", "headers": {"Retry-After": "600"}},
)
