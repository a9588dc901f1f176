"""`when` of a rule and `match` of requests/count: conditions on the facts of a request (scenario-language.md#rules).

The facts are the same of a request in progress and of one in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import methodcaller
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import parse_qsl

from pydantic import AfterValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from emulator.api.certificates import AuthenticatedTpp, CertificateUnreadable, read_certificate
from emulator.api.gates import likely_context
from emulator.api.headers import IDS, UTF_8, Headers, charset_of, one_spelling
from emulator.api.log import Exchange
from emulator.api.messages import Request
from emulator.api.operation import Call
from emulator.api.operations import OperationVariant, operation_ids, operation_names, variants
from emulator.api.router import split_target
from emulator.bank import products
from emulator.bank.conditions import (
    ABSENT,
    NO_NULL,
    Condition,
    NestedFacts,
    Operators,
    Single,
    fact_matcher,
    is_absence,
    respelled,
    values_of,
    wildcard,
)
from emulator.bank.customers.consents import resource_shown_as
from emulator.bank.errors import BankError
from emulator.bank.formats import HEADER_NAME, NATIONAL_NUMBER, composed, digits_of
from emulator.bank.kinds import ACCOUNT, CARD, PSU
from emulator.bank.validation import Mismatch, Model, Names, Omittable, Reads, refuse
from emulator.scenario.values import CONTEXTS, METHODS, possible_status
from emulator.scenario.variables import leaves


@dataclass(eq=False)
class Facts:
    """The facts of one request, each computed when a rule needs it; `exchange`: its entry in the log, with its answer.

    A fact is a tuple of values of which any may match: a header that is sent twice has two, a person has a national
    identity number and a PSU-ID, and an absent fact has none.
    """

    request: Request
    call: Call | None
    exchange: Exchange | None = None

    def header(self, name: str) -> tuple[Any, ...]:
        """The values of a header, its name in any case."""
        return tuple(self._headers.get(name.lower(), ()))

    def query(self, name: str) -> tuple[Any, ...]:
        return tuple(self._query.get(name, ()))

    @cached_property
    def _headers(self) -> dict[str, list[str]]:
        # before the signature is checked, ids may still be in capitals
        lowered = ((name.lower(), value) for name, value in self.request.headers)
        return _by_name((name, one_spelling(name, value)) for name, value in lowered)

    @cached_property
    def _query(self) -> dict[str, list[str]]:
        text = split_target(self.request.target)[1]
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=None)
        return _by_name((composed(name), composed(value)) for name, value in pairs)

    @cached_property
    def body(self) -> Any:
        """The JSON body; ABSENT if there is none or it cannot be read."""
        try:
            charset = charset_of(Headers(self.request.headers))
        except BankError:  # the bank refuses this content type, but a rule or a count can still read the body
            charset = UTF_8
        try:
            text = self.request.body.decode(charset)
            return composed(json.loads(text)) if text else ABSENT
        except (ValueError, RecursionError):
            return ABSENT

    def _parameter(self, name: str) -> tuple[Any, ...]:
        value = self.call.params.get(name) if self.call else None
        return () if value is None else (value,)

    def _path(self) -> tuple[Any, ...]:
        path = split_target(self.request.target)[0]
        return (path[len(self.request.prefix) :], path) if self.request.prefix else (path,)

    @cached_property
    def _tpp(self) -> AuthenticatedTpp | None:
        """The TPP that signed; before the signature is checked (`unsigned: true`) the TPP of the certificate.

        A request in the log without a valid signature has no TPP.
        """
        if self.call and self.call.tpp.id:
            return self.call.tpp
        if self.exchange is not None:
            return None
        for text in self.header("TPP-Signature-Certificate"):
            try:
                return read_certificate(text).tpp
            except CertificateUnreadable:
                continue
        return None

    def _persons(self) -> tuple[Any, ...]:
        """The persons named in headers, and their identity numbers; those not checked yet are looked up."""
        named = [*self.header("PSU-ID"), *self.header("X-PSU-IDENTITY")]
        call = self.call
        if call is not None and call.caller is not None:
            named.append(call.caller.national_id)
        elif call is not None:
            known = [call.bank.documents.get(PSU, psu_id) for psu_id in self.header("PSU-ID")]
            named += [psu["nationalId"] for psu in known if psu is not None]
        return tuple(named)

    def _context(self) -> tuple[Any, ...]:
        """The context of the caller; if access is not checked yet, the context that the check would find."""
        call = self.call
        if call is None:
            return self.header("PSU-Context")
        if call.caller is not None:
            return (call.caller.context,)
        context = likely_context(call, self._tpp.id if self._tpp else "")
        return () if context is None else (context,)

    def _account(self) -> tuple[Any, ...]:
        """The account in the path: its resourceId, and its one id and its numbers while the bank has it."""
        call, identity = self.call, self._parameter("id")
        if call is None or not identity:
            return ()
        documents, stored = call.bank.documents, resource_shown_as(call.bank, identity[0])
        account, card = documents.get(ACCOUNT, stored), documents.get(CARD, stored)
        numbers = () if account is None else (account["iban"], account["bban"])
        return (*identity, stored, *numbers, *(() if card is None else (card["maskedPan"],)))

    def _payment(self) -> tuple[Any, ...]:
        payment = self.exchange.payment_id if self.exchange else None
        return self._parameter("paymentId") if payment is None else (payment,)


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for name, value in pairs:
        by_name.setdefault(name, []).append(value)
    return by_name


_Values = Callable[[Facts], tuple[Any, ...]]
SINGLE: Mapping[str, _Values] = {
    "operation": lambda facts: operation_names(facts.call.operation.id, facts.call.params) if facts.call else (),
    "service": lambda facts: facts._parameter("payment-service"),
    "product": lambda facts: facts._parameter("payment-product"),
    "payment": Facts._payment,
    "account": Facts._account,
    "method": lambda facts: (facts.request.method,),
    "path": Facts._path,
    "tpp": lambda facts: (facts._tpp.id, facts._tpp.name) if facts._tpp else (),
    "psu": Facts._persons,
    "context": Facts._context,
    "body": lambda facts: (facts.body,),
    "status": lambda facts: (facts.exchange.status,) if facts.exchange else (),
}

# The values that exist of a fact; a rule with any other one could never match, so it is refused.
KNOWN: Mapping[str, Collection[str]] = {
    "operation": operation_ids(),
    "product": tuple(dict.fromkeys(name for _, name in products.table())),
    "service": products.SERVICES,
    "method": METHODS,
    "context": CONTEXTS,
}


@dataclass(frozen=True, slots=True)
class _Existing:
    """Checks that a condition names existing values of a fact, or matches one with `*`."""

    fact: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, stated: Any) -> Any:
        known = KNOWN[self.fact]
        wrong = [
            Mismatch(text=f"There is no {self.fact}", path=path, known=known, value=word)
            for path, word in values_of(stated)
            if not (isinstance(word, str) and (word in known or any(wildcard(word, one) for one in known)))
        ]
        if wrong:
            refuse(*wrong)
        return stated

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema with the existing values in place of any value, in `in` too."""
        union = handler(schema)
        word = {"anyOf": [{"enum": list(KNOWN[self.fact])}, {"type": "string", "pattern": r"\*"}]}
        listed = {"type": "array", "minItems": 1, "items": word}
        narrowed = {"allOf": [union["oneOf"][1], {"properties": {"in": listed}}]}
        return {"anyOf": [*word["anyOf"], narrowed]}


def _no_status(_: Any) -> Any:
    raise Mismatch(text="A rule is evaluated before there is an answer; only requests/count can match status.")


def is_person(stated: Any) -> bool:
    """Whether a condition can be met by a PSU-ID or a national identity number."""
    return not isinstance(stated, str) or "*" in stated or _PERSON.fullmatch(stated) is not None


_NUMBER = re.compile(r"[A-Z]{2}[0-9]{2}[0-9A-Z*]+|[0-9*]+", re.ASCII)  # of an account, perhaps with `*`
_PERSON = re.compile(rf"{NATIONAL_NUMBER}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}", re.ASCII | re.IGNORECASE)

_PREFIX = re.compile(r"(/banks/[^/]+)?(/api-sandbox)?")  # of the addresses of a bank
_BEGINNINGS = ("/v1/", "/api-sandbox/v1/", "/banks/")

# The facts that depend on the operation and its address.
_OF_ROUTES = ("operation", "service", "product", "method", "path", "payment", "account")
_PARAMETERS = {"payment": "{paymentId}", "account": "{id}"}


_Test = Callable[[Sequence[Any]], bool]


def _can_have(variant: OperationVariant, name: str, condition: Condition, test: _Test) -> bool:
    """Whether a request for an operation can have a fact that meets a condition, whose test is `test`."""
    row, product = variant.row, variant.product
    if name == "path":
        return _can_be(variant.path.split("/"), condition)
    if name in _PARAMETERS:
        has = _PARAMETERS[name] in row.path
        return not is_absence(condition) if has else test(())
    known: Mapping[str, tuple[Any, ...]] = {
        "operation": (row.id, variant.id),
        "service": () if product is None else (product.service,),
        "product": () if product is None else (product.name,),
        "method": (row.method,),
    }
    return test(known[name])


def _can_be(address: list[str], condition: Condition) -> bool:
    """Whether a path of this address, with or without the prefix of a bank, may meet a condition; in doubt, yes."""
    if isinstance(condition, Operators) and condition.in_ is not None:
        return any(_can_be(address, one) for one in condition.listed)
    if isinstance(condition, str):
        text, star, _ = condition.partition("*")
        start = text.find("/v1/")
        if star and start < 0:
            return text.startswith("/banks/") or any(begin.startswith(text) for begin in _BEGINNINGS)
        if not _PREFIX.fullmatch(text[: max(start, 0)]):
            return False
        *whole, last = text[max(start, 0) :].split("/")
        if len(whole) >= len(address) or (not star and len(whole) + 1 != len(address)):
            return False
        known = zip(whole, address, strict=False)
        at = address[len(whole)]
        ends = at.startswith("{") or (at.startswith(last) if star else at == last)
        return ends and all(part in ("", one) or one.startswith("{") for part, one in known)
    return not is_absence(condition)


class When(Model):
    """The conditions on a request; all must hold."""

    model_config = ConfigDict(title="when")
    _of_the_log: ClassVar[bool] = False

    operation: Annotated[Omittable[Single], _Existing("operation")] = None
    service: Annotated[Omittable[Single], _Existing("service")] = None
    product: Annotated[Omittable[Single], _Existing("product")] = None
    payment: Omittable[Single] = None
    account: Omittable[Single] = None
    method: Annotated[Omittable[Single], _Existing("method")] = None
    path: Omittable[Single] = None
    tpp: Omittable[Single] = None
    psu: Omittable[Single] = None
    context: Annotated[Omittable[Single], _Existing("context")] = None
    headers: Omittable[Annotated[dict[str, Single], Names(HEADER_NAME, "This is not the name of a header.")]] = None
    query: Omittable[dict[str, Single]] = None
    body: Omittable[NestedFacts] = Field(None, description="Members of the body, nested as in the body.")
    status: Annotated[Any, Reads(_no_status, {"not": {}})] = Field(None, exclude=True)  # not among its members

    def fits(self, facts: Facts) -> bool:
        """Whether all conditions hold."""
        return all(test(values(facts)) for values, test in self._tests)

    @cached_property
    def _tests(self) -> list[tuple[_Values, _Test]]:
        """The test of each condition, with the values of a request that it is about."""
        stated: list[tuple[_Values, Condition]] = []
        for name in (one for one in type(self).model_fields if one in self.model_fields_set):
            value = getattr(self, name)
            if name == "headers":
                spellings = {one: partial(_one_spelling, one.lower()) for one in value}
                stated += [(methodcaller("header", one), respelled(value[one], spellings[one])) for one in value]
            elif name == "query":
                stated += [(methodcaller("query", one), value[one]) for one in value]
            else:
                stated.append((SINGLE[name], respelled(value, _SPELLINGS[name]) if name in _SPELLINGS else value))
        return [(values, fact_matcher(condition)) for values, condition in stated]

    @cached_property
    def variants(self) -> tuple[OperationVariant, ...]:
        """The operations, of payments for each product, to whose requests the conditions can apply."""
        return tuple(self._variants(_OF_ROUTES))

    @cached_property
    def operations(self) -> frozenset[str]:
        """The operationIds of the table for `variants`."""
        return frozenset(one.row.id for one in self.variants)

    def _variants(self, names: Collection[str]) -> Iterator[OperationVariant]:
        """The operations that can have the facts of these names as they are stated."""
        stated = {name: getattr(self, name) for name in names if name in self.model_fields_set}
        tests = {name: fact_matcher(condition) for name, condition in stated.items()}
        for variant in variants().values():
            if all(_can_have(variant, name, condition, tests[name]) for name, condition in stated.items()):
                yield variant

    @model_validator(mode="after")
    def _can_match(self) -> Self:
        """Refuse conditions that no request can meet: nobody would notice that the rule never acts."""
        listed = leaves({name: getattr(self, name) for name in self.model_fields_set})
        nulls = [
            Mismatch(text=NO_NULL, path=(*path, *place))
            for path, one in listed
            for place, word in values_of(one)
            if word is None
        ]
        if nulls:
            refuse(*nulls)
        if not self._of_the_log and not self.variants:
            stated = [name for name in _OF_ROUTES if name in self.model_fields_set]
            alone = next((name for name in stated if not any(self._variants([name]))), None)
            if alone is not None:
                refuse(Mismatch(text="No request meets this condition.", path=(alone,)))
            without = (name for name in reversed(stated) if any(self._variants([o for o in stated if o != name])))
            at_fault = next(without, stated[-1])
            hint = " An account of a payment is a condition on body." if at_fault == "account" else ""
            refuse(Mismatch(text=f"No request meets this condition and the others.{hint}", path=(at_fault,)))
        return self


class Match(When):
    """`match` of requests/count: as `when`, and the status of the answer."""

    model_config = ConfigDict(title="match")
    _of_the_log: ClassVar[bool] = True  # which has requests to unknown addresses too, and the ids of new payments

    status: Annotated[Omittable[Single], AfterValidator(possible_status)] = None


class CountFilter(Model):
    """The body of requests/count."""

    match: Match


def _one_spelling(header: str, stated: Any) -> list[Any]:
    """An id in a header in the one spelling in which rules compare it."""
    if header not in IDS or not isinstance(stated, str):
        return [stated]
    is_pattern = "*" in stated and header != "x-request-id"  # which may also be another text
    return [stated.lower() if is_pattern else one_spelling(header, stated)]


def _account_spellings(stated: Any) -> list[Any]:
    """An account number with blanks, dots or small letters also as the bank writes it."""
    plain = digits_of(stated).upper() if isinstance(stated, str) else ""
    return [stated, plain] if plain != stated and _NUMBER.fullmatch(plain) else [stated]


# The spellings of what a condition on a fact states.
_SPELLINGS: Mapping[str, Callable[[Any], list[Any]]] = {
    "psu": partial(_one_spelling, "psu-id"),
    "account": _account_spellings,
}
