"""`answer: {status, code, text, category, headers, json}`: the bank does not act; this answer replaces its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from emulator.api.messages import Response
from emulator.api.operation import Access, Call, Reply
from emulator.api.render import JSON, TEXT_LIMIT, encode, message_body
from emulator.bank.errors import STATUS, Category, Code, Message, ScaNeeded
from emulator.bank.formats import HEADER_NAME
from emulator.bank.problems import guess
from emulator.bank.validation import Mismatch, Model, Names, Omittable, Reads, filled, matching, one_of, refuse, union
from emulator.scenario.effects import Effect, EffectKind

if TYPE_CHECKING:
    from emulator.api.shapes import answers

LOWEST, HIGHEST = 200, 599
LEAST_FAILURE = 400
MOST_VALUES = 50  # of one header
WITHOUT_BODY = frozenset({204, 205, 304})
# The web server adds these itself; a second one would make the answer invalid.
OWN = frozenset(
    {
        *("content-length", "transfer-encoding", "connection", "date", "server"),
        *("content-encoding", "content-language", "x-request-id"),
    }
)
BY_STATUS: Mapping[int, Code] = {
    401: "PSU_CREDENTIALS_INVALID",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    409: "CONFLICT",
    429: "ACCESS_EXCEEDED",
}

_CODE = re.compile(r"[A-Z][A-Z_]{2,63}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e]{0,2000}", re.ASCII)


def _leads_to_sca(call: Call) -> bool:
    """Whether an SCA is possible for the operation, and the TPP has an address to return to."""
    about_a_customer = call.operation.access is not Access.OPEN or call.operation.before_first_sca
    return about_a_customer and bool(call.tpp.id) and "tpp-redirect-uri" in call.headers


def _header(value: Any) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool) and _VALUE.fullmatch(str(value)):
        return str(value)
    raise Mismatch("one line of ASCII text")


def _not_of_the_bank(headers: dict[str, Any]) -> dict[str, Any]:
    wrong = [
        Mismatch(text=f"{name} is set by the bank itself.", path=(name,)) for name in headers if name.lower() in OWN
    ]
    if wrong:
        refuse(*wrong)
    return headers


_Header = Annotated[str, Reads(_header, {"type": ["string", "integer"], "pattern": f"^{_VALUE.pattern}$"})]
if TYPE_CHECKING:
    HeaderValues = str | list[str]
else:
    HeaderValues = union(
        {"one": _Header, "several": Annotated[list[_Header], Field(min_length=1, max_length=MOST_VALUES)]},
        lambda value: "several" if isinstance(value, list) else "one",
    )


class ScriptedAnswer(Model):
    """The answer: a message of the bank, any JSON value, or no body."""

    model_config = ConfigDict(
        title="answer",
        json_schema_extra={"anyOf": [{"required": [name]} for name in ("status", "code", "json")]},
    )

    status: Omittable[Annotated[int, Field(ge=LOWEST, le=HIGHEST)]] = None
    code: Omittable[Annotated[str, matching(_CODE, "a code of 3 to 64 capital letters and underscores")]] = None
    text: Omittable[Annotated[str, filled(TEXT_LIMIT)]] = None
    category: Omittable[Annotated[str, one_of("category", ("ERROR", "WARNING"))]] = None
    headers: Annotated[
        dict[str, HeaderValues],
        Names(HEADER_NAME, "This is not the name of a header."),
        AfterValidator(_not_of_the_bank),
    ] = Field({}, description="A list of values is sent as several headers.")
    json_body: Any = Field(None, alias="json")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        """Refuse members without effect: those of a message beside json, and content of an answer without a body."""
        given = [name for name in ("code", "text", "category") if name in self.model_fields_set]
        with_json = "json_body" in self.model_fields_set
        wrong = []
        if not with_json and self.status is None and self.code is None:
            wrong.append(Mismatch(text="An answer requires status, code or json."))
        if with_json:
            text = "{} has no effect beside json, which is the whole answer."
            wrong += [Mismatch(text=text.format(name), path=(name,)) for name in given]
        if self.known_status in WITHOUT_BODY:
            text = f"An answer with status {self.known_status} has no body."
            wrong += [Mismatch(text=text, path=(name,)) for name in [*(["json"] if with_json else []), *given]]
        if wrong:
            refuse(*wrong)
        return self

    @property
    def known_status(self) -> int:
        """The given status, or that of the code."""
        if self.status is not None:
            return self.status
        return 200 if self.code is None else STATUS.get(cast(Code, self.code), LEAST_FAILURE)

    @cached_property
    def message(self) -> Message | None:
        """The message of the bank, a warning if the status is a success; None for no message."""
        status = self.known_status
        unsaid = self.code is None and self.text is None and self.category is None and status < LEAST_FAILURE
        if "json_body" in self.model_fields_set or status in WITHOUT_BODY or unsaid:
            return None
        code, category = BY_STATUS.get(status) or ("SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST"), "ERROR"
        if status < LEAST_FAILURE:
            code, category = "FORMAT_ERROR", "WARNING"
        text = self.text or "This answer comes from a scripted rule."
        return Message(cast(Code, self.code or code), text, None, cast(Category, self.category or category))

    @property
    def asks_for_sca(self) -> bool:
        """Whether it is a 401 with scaRedirect."""
        message = self.message
        of_the_bank = message is not None and STATUS.get(message.code) == 401 and message.category == "ERROR"
        return self.known_status == 401 and of_the_bank

    def reply(self, call: Call) -> Reply[answers.Error | bytes | None]:
        """The reply that replaces that of the bank."""
        if self.message is not None:
            if self.asks_for_sca and _leads_to_sca(call):
                raise ScaNeeded(self.message.code, self.message.text)
            return Reply(self.known_status, {"tppMessages": [message_body(self.message)]})
        if "json_body" in self.model_fields_set:
            return Reply(self.known_status, encode(self.json_body))
        return Reply(self.known_status, None if self.known_status in WITHOUT_BODY else encode({}))

    def head(self, response: Response, _dice: Random) -> None:
        """Add the headers of the rule; a Content-Type replaces the usual one."""
        if any(name.lower() == "content-type" for name in self.headers) and JSON in response.headers:
            response.headers.remove(JSON)
        for name, values in self.headers.items():
            response.headers += [(name, value) for value in ([values] if isinstance(values, str) else values)]


def effect(answer: ScriptedAnswer) -> Effect:
    """The bank does not act; the answer replaces its own."""
    code, warnings = answer.code, list[str]()
    if code is not None and code not in STATUS:  # a bank may add it one day
        warnings.append(f"The bank itself has no code {code}{guess(code, STATUS) or '.'}")
    leaves = ("sca",) if answer.asks_for_sca else ()
    return Effect(answer.reply, answer.head, instead=True, leaves=leaves, warnings=warnings)


EFFECT = EffectKind(
    name="answer",
    summary="The bank does not act; the answer is an error with a code, or any JSON.",
    form=ScriptedAnswer,
    effect=effect,
    example={"status": 503, "text": "Closed for maintenance.", "headers": {"Retry-After": "600"}},
)
