"""The rules of payment products: each checks one payment draft and reports its problems.

A product lists its rules (`bank/products`); all of them run, so that all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.documents import Account, AccountRef, StructuredReference
from emulator.bank.errors import Code, Message
from emulator.bank.formats import digits_of
from emulator.bank.reference import SEPA_COUNTRIES, iban_of, is_account_number, is_iban, is_kid
from emulator.bank.scheme.execution import next_execution

DAYS_AHEAD = timedelta(days=365)  # the latest execution date
DEPRECATED_FROM = date(2024, 9, 5)  # payments.md#remittance-information


@dataclass(slots=True)
class PaymentDraft:
    """A payment (or an entry of a bulk) that is not accepted yet; `creditor`: the account, if it is in this bank.

    `prefix` is prepended to the paths of messages, such as `payments[2].`.
    """

    bank: Bank
    initiation: Mapping[str, Any]
    creditor: Account | None = None
    prefix: str = ""

    def wrong(self, code: Code, text: str, path: str) -> Message:
        """A problem of the member at `path` of this initiation."""
        return Message(code, text, self.prefix + path)


Check = Callable[[PaymentDraft], Iterable[Message]]


def only_in(currency: str) -> Check:
    """The payment must be in `currency`: straks NOK, SEPA EUR."""

    def check(draft: PaymentDraft) -> Iterable[Message]:
        if draft.initiation["instructedAmount"]["currency"] == currency:
            return ()
        text = f"This product supports {currency} only."
        return (draft.wrong("FORMAT_ERROR", text, "instructedAmount.currency"),)

    return check


def straks_limit(draft: PaymentDraft) -> Iterator[Message]:
    """At most 500 000.00, or what the setting `straks_limit` says."""
    limit = draft.bank.settings.straks_limit
    if Decimal(draft.initiation["instructedAmount"]["amount"]) > Decimal(limit):
        text = f"An instant transfer is at most {limit}."
        yield draft.wrong("FORMAT_ERROR", text, "instructedAmount.amount")


def norwegian_creditor(draft: PaymentDraft) -> Iterator[Message]:
    """11 digits with a MOD-11 check digit, unless the account is at this bank."""
    if draft.creditor is None:
        number = digits_of(draft.initiation["creditorAccount"]["bban"])
        if not (len(number) == 11 and number.isascii() and number.isdigit()):
            text = "A Norwegian account number has 11 digits."
            yield draft.wrong("FORMAT_ERROR", text, "creditorAccount.bban")
        elif not is_account_number(number):
            text = "The check digit of this account number (MOD-11) is wrong."
            yield draft.wrong("FORMAT_ERROR", text, "creditorAccount.bban")


def iban_creditor(draft: PaymentDraft) -> Iterable[Message]:
    """An IBAN has valid check digits (mod-97), unless the account is at this bank (the latter assumed)."""
    iban = draft.initiation["creditorAccount"].get("iban")
    if iban is None or draft.creditor is not None or is_iban(iban.replace(" ", "")):
        return ()
    text = "This is not an IBAN: country, length or check digits (mod-97) are wrong."
    return (draft.wrong("FORMAT_ERROR", text, "creditorAccount.iban"),)


def creditor_in_sepa(draft: PaymentDraft) -> Iterable[Message]:
    """The creditor's account is in a SEPA country."""
    country = draft.initiation["creditorAccount"]["iban"].replace(" ", "")[:2]
    if country in SEPA_COUNTRIES:
        return ()
    return (draft.wrong("FORMAT_ERROR", f"{country} is not a SEPA country.", "creditorAccount.iban"),)


_STRUCTURED, _STRUCTURED_ARRAY = "remittanceInformationStructured", "remittanceInformationStructuredArray"


def creditor_ref(initiation: Mapping[str, Any], *, crosses_border: bool) -> AccountRef:
    """The creditor's AccountRef as the payment names it.

    The IBAN of a Norwegian account number is added; the BBAN of a cross-border payment may be of any country.
    """
    requested: Mapping[str, str] = initiation["creditorAccount"]
    currency = requested["currency"]
    if "iban" in requested:
        return {"iban": requested["iban"].replace(" ", ""), "currency": currency}
    number = digits_of(requested["bban"])
    if len(number) == 11 and number.isdigit() and not crosses_border:
        return {"bban": number, "iban": iban_of(number), "currency": currency}
    return {"bban": requested["bban"], "currency": currency}


def structured_references(initiation: Mapping[str, Any]) -> list[tuple[str, StructuredReference]]:
    """The structured references with their paths, from the object and from the array."""
    references: list[tuple[str, StructuredReference]] = []
    if _STRUCTURED in initiation:
        references.append((_STRUCTURED, initiation[_STRUCTURED]))
    if _STRUCTURED_ARRAY in initiation:
        for index, one in enumerate(initiation[_STRUCTURED_ARRAY]):
            references.append((f"{_STRUCTURED_ARRAY}[{index}]", one))
    return references


def says_kid(reference: StructuredReference) -> bool:
    """Whether a structured reference is a KID, which is the default (payments.md#kid)."""
    return reference.get("referenceType") in (None, "SCOR")


def norwegian_reference(draft: PaymentDraft) -> Iterator[Message]:
    """A reference sent as a KID must be valid; some creditors require one (payments.md#kid)."""
    has_kid = False
    for path, reference in structured_references(draft.initiation):
        if says_kid(reference):
            has_kid = True
            if not is_kid(reference["reference"]):
                text = "A KID has 2 to 25 digits and ends in a MOD-10 or MOD-11 check digit (which may be -)."
                yield draft.wrong("KID_INVALID", text, f"{path}.reference")
    if draft.creditor is not None and draft.creditor.get("demandsKid") and not has_kid:
        text = "This creditor account accepts only payments with a KID."
        yield draft.wrong("KID_MISSING", text, "remittanceInformationStructured")


def execution_date(draft: PaymentDraft) -> Iterable[Message]:
    """requestedExecutionDate is not in the past and at most 365 days ahead."""
    name = "requestedExecutionDate"
    return _near_future(draft, name) if name in draft.initiation else ()


def _near_future(draft: PaymentDraft, member: str) -> Iterator[Message]:
    today, requested = draft.bank.clock.today(), date.fromisoformat(draft.initiation[member])
    if requested < today:
        yield draft.wrong("EXECUTION_DATE_INVALID", f"{member} is in the past: today is {today}.", member)
    elif requested > (latest := today + DAYS_AHEAD):
        yield draft.wrong("EXECUTION_DATE_INVALID", f"{member} is over 365 days ahead, after {latest}.", member)


def period(draft: PaymentDraft) -> Iterator[Message]:
    """startDate as an execution date; at least one execution up to endDate (assumed: EXECUTION_DATE_INVALID)."""
    yield from _near_future(draft, "startDate")
    end = draft.initiation.get("endDate")
    if end is not None and end < draft.initiation["startDate"]:
        yield draft.wrong("EXECUTION_DATE_INVALID", "endDate is before startDate.", "endDate")
    elif next_execution(draft.bank, draft.initiation) is None:
        text = "There is no execution between startDate and endDate."
        yield draft.wrong("EXECUTION_DATE_INVALID", text, "endDate")


def deprecations(bank: Bank, initiation: Mapping[str, Any], prefix: str = "") -> list[Message]:
    """The WARNINGs for members that are deprecated since 05-Sep-2024."""
    messages: list[Message] = []
    if "remittanceInformationStructured" in initiation and bank.clock.today() >= DEPRECATED_FROM:
        text = "remittanceInformationStructured is deprecated: use remittanceInformationStructuredArray."
        messages.append(Message("FORMAT_ERROR", text, f"{prefix}remittanceInformationStructured", "WARNING"))
    if "payments" in initiation:
        for index, entry in enumerate(initiation["payments"]):
            messages += deprecations(bank, entry, f"{prefix}payments[{index}].")
    return messages
