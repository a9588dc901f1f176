"""Transactions made from definitions: the entries of an account or a card that a fixture describes.

Nothing here is drawn at random and nothing depends on the time of day, only on the Oslo date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from emulator.bank.clock import OSLO, stamp
from emulator.bank.holdings.accounts import own_side
from emulator.bank.money import plain, quantum
from emulator.bank.reference.norway import iban_of
from emulator.bank.sandbox.patterns import transfer_code
from emulator.store import Document

if TYPE_CHECKING:
    from emulator.bank.founding import definitions as d

FURTHEST = 9999  # days back that a repeated transaction may reach, as many as `date` can say
BOOKING_HOUR = time(6)  # when a fixture's pending items are booked, Oslo time

Path = tuple[str | int, ...]


class DefinitionError(Exception):
    """A definition contradicts itself or what is there: the path of the member and what was expected."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{'.'.join(map(str, path))}: {text}")
        self.path = path
        self.text = text


class Days:
    """The dates and moments of a founding: offsets from `today`, the Oslo date of bank time."""

    def __init__(self, today: date) -> None:
        self._today = today
        self._count = 0

    def on(self, offset: int) -> date:
        return self._today + timedelta(days=offset)

    def at(self, day: date) -> str:
        """A moment of `day` that no other document of this founding has."""
        self._count += 1
        midnight = datetime.combine(day, time(0), OSLO)
        return stamp(midnight + timedelta(microseconds=self._count))

    def order(self, shown: date) -> str:
        """Where an entry stands in its list, by the date that it shows: bookingDate, or of pending ones another."""
        return f"{shown.isoformat()}|{self.at(shown)}"


def exact(amount: Decimal, currency: str, path: Path) -> str:
    """The amount as documents hold it: in exactly the currency's minor units."""
    try:
        unit = quantum(currency)
    except KeyError:
        raise DefinitionError(path, f"A currency of SPEC 2.6 was expected, and {currency} is none.") from None
    if amount != amount.quantize(unit):
        raise DefinitionError(path, f"An amount in {currency} has fewer decimals.")
    return plain(amount, currency)


def occurrences(definition: d.Transaction | d.CardTransaction, path: Path) -> Iterator[tuple[int, Decimal]]:
    """Day and amount of each transaction that a definition stands for."""
    if (definition.amount is None) == (definition.amounts is None):
        raise DefinitionError(path, "Either amount or amounts was expected.")
    if definition.amounts is None:
        if definition.every is not None:
            raise DefinitionError((*path, "every"), "`every` goes with amounts, one for each time.")
        amounts = [definition.amount or Decimal(0)]
    else:
        amounts = definition.amounts
        if definition.every is None and len(amounts) > 1:
            raise DefinitionError((*path, "amounts"), "`every` was expected: how many days lie between them.")
    for number, amount in enumerate(amounts):
        if not amount:
            raise DefinitionError(path, "An amount other than 0 was expected.")
        offset = (definition.date or 0) - number * (definition.every or 0)
        if offset < -FURTHEST:
            raise DefinitionError((*path, "amounts", number), f"Transactions reach back {FURTHEST} days at most.")
        yield offset, amount


def _check_dates(definition: d.Transaction, offset: int, path: Path) -> None:
    if definition.books is not None and not definition.pending:
        raise DefinitionError((*path, "books"), "`books` goes with `pending: true`.")
    if definition.books is not None and definition.books <= 0:
        raise DefinitionError((*path, "books"), "A day to come was expected, such as +1d.")
    if not definition.pending and offset > 0:
        raise DefinitionError((*path, "date"), "A booked transaction is not in the future: -3d or 0d was expected.")


def account_entry(
    account: Document, owner: str, definition: d.Transaction, offset: int, amount: Decimal, *, days: Days, path: Path
) -> Document:
    """The transaction document, without its id; `owner` is the name of the account's customer."""
    _check_dates(definition, offset, path)
    day, currency = days.on(offset), account["currency"]
    value = definition.value_date if definition.value_date is not None else definition.books
    value_day = days.on(value) if value is not None else day
    status = "pending" if definition.pending else "booked"
    document: Document = {
        "accountId": account["id"],
        "status": status,
        "shelf": f"{account['id']}|{status}",
        "order": days.order(value_day if definition.pending else day),
        "amount": exact(amount, currency, (*path, "amount")),
        "currency": currency,
    }
    if not definition.pending:
        document["bookingDate"] = day.isoformat()
    document["valueDate"] = value_day.isoformat()
    if definition.books is not None:
        document["due"] = stamp(datetime.combine(days.on(definition.books), BOOKING_HOUR, OSLO))
    outgoing = amount < 0
    document |= own_side(account, owner, outgoing=outgoing) | _other_side(definition, currency, outgoing=outgoing)
    document |= _texts(definition) | _codes(definition, outgoing=outgoing)
    if definition.exchange is not None:
        exchange = definition.exchange.model_dump(by_alias=True, exclude_none=True)
        document["currencyExchange"] = {**exchange, "quotationDate": day.isoformat()}
    if definition.batch is not None:
        document["batch"] = {"entries": _batch_entries(definition.batch, amount, currency, path)}
    return document


def _batch_entries(batch: list[d.BatchEntry], amount: Decimal, currency: str, path: Path) -> list[dict[str, Any]]:
    if sum((entry.amount for entry in batch), Decimal(0)) != amount:
        raise DefinitionError((*path, "batch"), f"Entries that add up to {amount} were expected.")
    entries = []
    for index, entry in enumerate(batch):
        amount_text = exact(entry.amount, currency, (*path, "batch", index, "amount"))
        made: dict[str, Any] = {"amount": amount_text, "currency": currency}
        entries.append(made | _other_side(entry, currency, outgoing=entry.amount < 0) | _texts(entry))
    return entries


def _other_side(definition: d.Transaction | d.BatchEntry, currency: str, *, outgoing: bool) -> dict[str, Any]:
    """Name, account and bank of the counterparty: creditor of money that left, debtor of money that came."""
    role = "creditor" if outgoing else "debtor"
    made: dict[str, Any] = {}
    if definition.name is not None:
        made[f"{role}Name"] = definition.name
    account = {"bban": definition.bban, "iban": definition.iban or domestic_iban(definition.bban)}
    account = {name: value for name, value in account.items() if value}
    if account:
        made[f"{role}Account"] = {**account, "currency": currency}
    bic = getattr(definition, "bic", None)
    if bic is not None:
        made[f"{role}Agent"] = bic
    return made


def _texts(definition: d.Transaction | d.BatchEntry) -> dict[str, Any]:
    """The message or structured reference of a transaction (SPEC 2.9)."""
    made: dict[str, Any] = {}
    if definition.text is not None:
        lines = [definition.text] if isinstance(definition.text, str) else definition.text
        made["remittanceInformationUnstructured"] = lines[0]
        made["remittanceInformationUnstructuredArray"] = lines
    references = []
    if definition.kid is not None:
        references.append({"reference": definition.kid, "referenceType": "SCOR"})
    reference = getattr(definition, "reference", None)
    if reference is not None:
        references.append({"reference": reference})
    if references:
        made["remittanceInformationStructuredArray"] = references
    return made


def _codes(definition: d.Transaction, *, outgoing: bool) -> dict[str, Any]:
    """What kind of transaction it is: a domestic transfer where it names no code."""
    further = {
        "endToEndId": definition.end_to_end_id,
        "purposeCode": definition.purpose_code,
        "bankTransactionCode": definition.bank_transaction_code or transfer_code(outgoing=outgoing),
        "proprietaryBankTransactionCode": definition.code,
    }
    return {name: value for name, value in further.items() if value is not None}


def card_entry(
    card: Mapping[str, Any], definition: d.CardTransaction, offset: int, amount: Decimal, *, days: Days, path: Path
) -> Document:
    """The card transaction document, without its ids."""
    day, currency = days.on(offset), card["currency"]
    status = "pending" if definition.pending else "booked"
    purchase = days.on(definition.transaction_date) if definition.transaction_date is not None else day
    document: Document = {
        "cardId": card["id"],
        "status": status,
        "shelf": f"{card['id']}|{status}",
        "order": days.order(purchase if definition.pending else day),
        "transactionDate": purchase.isoformat(),
        "transactionAmount": {"amount": exact(amount, currency, (*path, "amount")), "currency": currency},
        "merchantCategoryCode": definition.merchant_category_code,
        "maskedPan": card["maskedPan"],
        "transactionDetails": definition.name,
        "invoiced": definition.invoiced,
        "proprietaryBankTransactionCode": "PURCHASE" if amount < 0 else "PAYMENT",
    }
    if not definition.pending:
        document["bookingDate"] = day.isoformat()
    original_currency = definition.original_currency or currency
    original = definition.original_amount if definition.original_amount is not None else amount
    paid = exact(original, original_currency, (*path, "originalAmount"))
    document["originalAmount"] = {"amount": paid, "currency": original_currency}
    if definition.markup_fee is not None:
        fee = exact(definition.markup_fee, currency, (*path, "markupFee"))
        document["markupFee"] = {"amount": fee, "currency": currency}
        document["markupFeePercentage"] = definition.markup_fee_percentage or "0"
    address = {"city": definition.city, "country": definition.country}
    if any(address.values()):
        document["cardAcceptorAddress"] = {name: value for name, value in address.items() if value}
    return document


def domestic_iban(bban: str | None) -> str | None:
    """The IBAN of a Norwegian account number (11 digits), else None."""
    return iban_of(bban) if bban is not None and len(bban) == 11 and bban.isdigit() else None
