"""How a payment is shown in an account's transactions, with the members that apply."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from emulator.bank import products
from emulator.bank.accounts import accounts
from emulator.bank.accounts.accounts import holder, reference
from emulator.bank.accounts.transactions import batch_texts
from emulator.bank.bank import Bank
from emulator.bank.clock import oslo_day
from emulator.bank.documents import Account, BulkEntry, Payment, TransactionDetails, TransactionMembers
from emulator.bank.money import exchange_member, plain
from emulator.bank.scheme.rules import creditor_ref, structured_references

FEE_CODE = "PMNT-ICDT-FEES"


def carried(text: str, most: int) -> str:
    """`text` as payment systems transmit it: ISO-8859-1, other letters without diacritics, else `?` (assumed).

    A letter may become several; the result is cut at `most` characters.
    """
    if text.isascii():
        return text
    return "".join(_carried_letter(letter) for letter in text)[:most]


def _carried_letter(letter: str) -> str:
    if letter <= "\xff":
        return letter
    plain_form = unicodedata.normalize("NFKD", letter)
    latin1 = "".join(part for part in plain_form if part <= "\xff")
    return latin1 or "?"


def changes_text(initiation: Mapping[str, Any]) -> bool:
    """Whether processing changes a text of the payment by re-encoding it; the payment is then ACWC."""
    texts = (initiation.get("creditorName"), initiation.get("remittanceInformationUnstructured"))
    return any(text is not None and carried(text, len(text)) != text for text in texts)


def _texts(initiation: Mapping[str, Any]) -> TransactionDetails:
    shown: TransactionDetails = {}
    if initiation.get("purposeCode"):
        shown["purposeCode"] = initiation["purposeCode"]
    if initiation.get("ultimateDebtor"):
        shown["ultimateDebtor"] = initiation["ultimateDebtor"]
    if initiation.get("endToEndIdentification"):
        shown["endToEndId"] = initiation["endToEndIdentification"]
    text = initiation.get("remittanceInformationUnstructured")
    if text:
        text = carried(text, 140)
        shown["remittanceInformationUnstructured"] = text
        shown["remittanceInformationUnstructuredArray"] = [text]
    references = [structured.copy() for _, structured in structured_references(initiation)]
    if references:
        shown["remittanceInformationStructuredArray"] = references
    return shown


@dataclass(frozen=True, slots=True)
class PaymentPart:
    """What is paid by itself: a single payment, or an entry of a bulk, with the members that it would have alone.

    `state`: the document of the payment, or the entry in it; it has the price and `pendingId`.
    """

    initiation: Mapping[str, Any]
    state: Payment | BulkEntry


def parties(
    bank: Bank, payment: Payment, part: PaymentPart, debtor: Account
) -> tuple[TransactionDetails, Account | None]:
    """Debtor, creditor and texts, the same in the transactions of both sides; the creditor's account in this bank."""
    initiation = part.initiation
    to = accounts.creditor(bank, initiation["creditorAccount"], part.state.get("creditorAccountId"))
    shown: TransactionDetails = {
        "creditorName": carried(initiation["creditorName"], 70),
        "creditorAccount": creditor_ref(initiation, crosses_border=products.of(payment).crosses_border)
        if to is None
        else reference(to),
        "debtorAccount": reference(debtor),
        "debtorAgent": debtor["bic"],
        **_texts(initiation),
    }
    name = holder(bank, debtor)
    if name is not None:
        shown["debtorName"] = name
    agent = to["bic"] if to is not None else initiation.get("creditorAgent")
    if agent:
        shown["creditorAgent"] = agent
    return shown, to


def debit(
    payment: Payment, part: PaymentPart, shown: TransactionDetails, currency: str, date: str
) -> TransactionMembers:
    """The debtor's transaction in the account's `currency`; `shown`: the `parties`."""
    product, price = products.of(payment), part.state
    members: TransactionMembers = {
        **shown,
        "amount": -Decimal(price["amount"]),
        "bookingDate": date,
        "valueDate": date,
        "bankTransactionCode": product.issued,
        "proprietaryBankTransactionCode": product.code,
        "paymentId": payment["id"],
    }
    if "rate" in price:
        instructed = part.initiation["instructedAmount"]["currency"]
        members["currencyExchange"] = exchange_member(
            source=currency, target=instructed, unit=instructed, rate=Decimal(price["rate"]), date=date
        )
    return members


def pending(members: TransactionMembers, execute_at: str) -> TransactionMembers:
    """A debtor's transaction before it is booked: its value date is the day of the planned execution."""
    waiting = members.copy()
    waiting["valueDate"] = max(oslo_day(execute_at), waiting.pop("bookingDate"))
    return waiting


def credit(
    bank: Bank, payment: Payment, part: PaymentPart, shown: TransactionDetails, to: Account, date: str
) -> TransactionMembers:
    """The creditor's transaction in its account's currency, free of charge (assumed)."""
    product, instructed = products.of(payment), part.initiation["instructedAmount"]
    amount, currency = Decimal(instructed["amount"]), instructed["currency"]
    members: TransactionMembers = {
        **shown,
        "amount": amount,
        "bookingDate": date,
        "valueDate": date,
        "bankTransactionCode": product.received,
        "proprietaryBankTransactionCode": product.code,
    }
    if to["currency"] != currency:
        members["amount"], rate = bank.exchange.converted(amount, currency, to["currency"])
        members["currencyExchange"] = exchange_member(
            source=currency, target=to["currency"], unit=currency, rate=rate, date=date
        )
    return members


def fee(payment: Payment, amount: Decimal, date: str) -> TransactionMembers:
    """The bank's fee for a payment, booked as a separate transaction (assumed)."""
    text = f"Gebyr {products.of(payment).code}"
    return {
        "amount": -amount,
        "bookingDate": date,
        "valueDate": date,
        "remittanceInformationUnstructured": text,
        "remittanceInformationUnstructuredArray": [text],
        "bankTransactionCode": FEE_CODE,
        "proprietaryBankTransactionCode": "Gebyr",
        "feeFor": payment["id"],
    }


def batch(
    bank: Bank,
    payment: Payment,
    parts: Sequence[PaymentPart],
    shown: Sequence[TransactionDetails],
    debtor: Account,
    date: str,
) -> TransactionMembers:
    """One transaction for several entries of a bulk (batchBookingPreferred); `shown`: the `parties` of each."""
    product, currency = products.of(payment), debtor["currency"]
    amounts = [-Decimal(part.state["amount"]) for part in parts]
    members: TransactionMembers = {
        "amount": sum(amounts, Decimal(0)),
        "bookingDate": date,
        "valueDate": date,
        "debtorAccount": reference(debtor),
        "debtorAgent": debtor["bic"],
        "bankTransactionCode": product.issued,
        "proprietaryBankTransactionCode": product.code,
        "paymentId": payment["id"],
        "batch": {
            "entries": [
                {"amount": plain(amount, currency), "currency": currency, **batch_texts(texts)}
                for amount, texts in zip(amounts, shown, strict=True)
            ]
        },
    }
    name = holder(bank, debtor)
    if name is not None:
        members["debtorName"] = name
    information_id = payment["initiation"].get("paymentInformationId")
    if information_id:
        members["endToEndId"] = information_id[:35]
    return members
