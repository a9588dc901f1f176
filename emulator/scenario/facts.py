"""The facts of a request, by which rules and counts match it: the same for one in progress and for one in the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from emulator.api.certificates import CertificateUnreadable, read_certificate
from emulator.api.gates import likely_context
from emulator.api.headers import UTF_8, Headers, charset_of, one_spelling
from emulator.api.log import Exchange
from emulator.api.messages import Request
from emulator.api.operation import Call
from emulator.api.operations import operation_names
from emulator.api.router import split_target
from emulator.bank.conditions import ABSENT
from emulator.bank.customers.consents import resource_shown_as
from emulator.bank.errors import BankError
from emulator.bank.formats import composed
from emulator.bank.kinds import ACCOUNT, CARD, PSU
from emulator.bank.request import AuthenticatedTpp


class Facts:
    """The facts of one request, each computed when a rule needs it; `exchange`: its entry in the log, with its answer.

    A fact is a tuple of values of which any may match: a header that is sent twice has two, a person has a national
    identity number and a PSU-ID, and an absent fact has none.
    """

    def __init__(self, request: Request, call: Call | None, exchange: Exchange | None = None) -> None:
        self._request = request
        self._call = call
        self._exchange = exchange

    def header(self, name: str) -> tuple[Any, ...]:
        """The values of a header, its name in any case."""
        return tuple(self._headers.get(name.lower(), ()))

    def query(self, name: str) -> tuple[Any, ...]:
        return tuple(self._query.get(name, ()))

    @cached_property
    def _headers(self) -> dict[str, list[str]]:
        # before the signature is checked, ids may still be in capitals
        lowered = ((name.lower(), value) for name, value in self._request.headers)
        return _by_name((name, one_spelling(name, value)) for name, value in lowered)

    @cached_property
    def _query(self) -> dict[str, list[str]]:
        text = split_target(self._request.target)[1]
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=None)
        return _by_name((composed(name), composed(value)) for name, value in pairs)

    @cached_property
    def body(self) -> Any:
        """The JSON body; ABSENT if there is none or it cannot be read."""
        try:
            text = self._request.body.decode(self._charset())
            return composed(json.loads(text)) if text else ABSENT
        except (ValueError, RecursionError):
            return ABSENT

    def _charset(self) -> str:
        try:
            return charset_of(Headers(self._request.headers))
        except BankError:  # the bank refuses this content type, but a rule or a count can still read the body
            return UTF_8

    def _operation(self) -> tuple[Any, ...]:
        return operation_names(self._call.operation.id, self._call.params) if self._call else ()

    def _parameter(self, name: str) -> tuple[Any, ...]:
        value = self._call.params.get(name) if self._call else None
        return () if value is None else (value,)

    def _path(self) -> tuple[Any, ...]:
        path = split_target(self._request.target)[0]
        return (path[len(self._request.prefix) :], path) if self._request.prefix else (path,)

    @cached_property
    def _tpp(self) -> AuthenticatedTpp | None:
        """The TPP that signed; before the signature is checked (`unsigned: true`) the TPP of the certificate.

        A request in the log without a valid signature has no TPP.
        """
        if self._call and self._call.tpp.id:
            return self._call.tpp
        if self._exchange is not None:
            return None
        for text in self.header("TPP-Signature-Certificate"):
            try:
                return read_certificate(text).tpp
            except CertificateUnreadable:
                continue
        return None

    def _tpps(self) -> tuple[Any, ...]:
        return () if self._tpp is None else (self._tpp.id, self._tpp.name)

    def _persons(self) -> tuple[Any, ...]:
        """The persons named in headers, and their identity numbers; those not checked yet are looked up."""
        named = [*self.header("PSU-ID"), *self.header("X-PSU-IDENTITY")]
        call = self._call
        if call is not None and call.caller is not None:
            named.append(call.caller.national_id)
        elif call is not None:
            known = [call.bank.documents.get(PSU, psu_id) for psu_id in self.header("PSU-ID")]
            named += [psu["nationalId"] for psu in known if psu is not None]
        return tuple(named)

    def _context(self) -> tuple[Any, ...]:
        """The context of the caller; if access is not checked yet, the context that the check would find."""
        call = self._call
        if call is None:
            return self.header("PSU-Context")
        if call.caller is not None:
            return (call.caller.context,)
        context = likely_context(call, self._tpp.id if self._tpp else "")
        return () if context is None else (context,)

    def _account(self) -> tuple[Any, ...]:
        """The account in the path: its resourceId, and its one id and its numbers while the bank has it."""
        call, identity = self._call, self._parameter("id")
        if call is None or not identity:
            return ()
        documents, stored = call.bank.documents, resource_shown_as(call.bank, identity[0])
        account, card = documents.get(ACCOUNT, stored), documents.get(CARD, stored)
        numbers = () if account is None else (account["iban"], account["bban"])
        return (*identity, stored, *numbers, *(() if card is None else (card["maskedPan"],)))

    def _payment(self) -> tuple[Any, ...]:
        payment = self._exchange.payment_id if self._exchange else None
        return self._parameter("paymentId") if payment is None else (payment,)

    def _answered(self) -> tuple[Any, ...]:
        return () if self._exchange is None else (self._exchange.status,)


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for name, value in pairs:
        by_name.setdefault(name, []).append(value)
    return by_name


SINGLE: Mapping[str, Callable[[Facts], tuple[Any, ...]]] = {
    "operation": Facts._operation,
    "service": lambda facts: facts._parameter("payment-service"),
    "product": lambda facts: facts._parameter("payment-product"),
    "payment": Facts._payment,
    "account": Facts._account,
    "method": lambda facts: (facts._request.method,),
    "path": Facts._path,
    "tpp": Facts._tpps,
    "psu": Facts._persons,
    "context": Facts._context,
    "body": lambda facts: (facts.body,),
    "status": Facts._answered,
}
