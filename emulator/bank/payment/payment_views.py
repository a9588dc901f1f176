"""Views of a payment: on the page where it is approved, and in the control interface; psuMessage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict

from emulator.bank import settlement
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.documents import PartyNameMatch, Payment, PsuMessage
from emulator.bank.kinds import ACCOUNT, PAYMENT
from emulator.bank.payment import flows
from emulator.bank.scheme.rules import says_kid, structured_references

# psuMessage, a text for the customer, in the languages of answers.
TEXTS: Mapping[str, Mapping[PsuMessage, str]] = {
    "en": {
        "declined": "The payment was declined.",
        "notApproved": "The payment was not approved within 24 hours.",
        "notApprovedTwice": "The payment was not approved by a second person within 30 days.",
        "noMoney": "The payment was rejected: there was not enough money on the account.",
        "rejected": "The payment was rejected.",
        "dateChanged": "The payment is executed on another date than requested.",
        "textChanged": "Characters of the text that the payment system does not support were replaced.",
        "changed": "The payment was accepted with a change.",
    },
    "nb": {
        "declined": "Du avviste betalingen.",
        "notApproved": "Betalingen ble ikke godkjent innen 24 timer.",
        "notApprovedTwice": "Betalingen ble ikke godkjent av en annen person innen 30 dager.",
        "noMoney": "Banken avviste betalingen: det var ikke nok penger på kontoen.",
        "rejected": "Banken avviste betalingen.",
        "dateChanged": "Betalingen utføres på en annen dato enn ønsket.",
        "textChanged": "Tegn i teksten som betalingssystemet ikke støtter, er erstattet.",
        "changed": "Betalingen ble godtatt med en endring.",
    },
}


def psu_message(payment: Payment, language: str = "en") -> str | None:
    """The psuMessage of a payment in `en` or `nb`; None if it has none."""
    if "psuMessages" not in payment:
        return None
    return " ".join(TEXTS[language][message] for message in payment["psuMessages"])


class ApprovalItem(flows.PaymentDates, TypedDict):
    """A payment, or an entry of a bulk, as the customer approves it."""

    service: str
    product: str
    amount: str
    currency: str
    creditorName: str
    creditorAccount: str
    debtorAccount: str
    debtorAccountName: str
    fee: NotRequired[str]
    message: NotRequired[str]
    kid: NotRequired[str]
    reference: NotRequired[str]
    payee: NotRequired[PartyNameMatch]
    payeeName: NotRequired[str]


def summary(bank: Bank, payment: Payment) -> list[ApprovalItem]:
    """The items that the customer approves, one per payment or entry of a bulk."""
    if "entries" not in payment:
        return [_item(bank, payment, payment["initiation"], payment.get("fee"))]
    whole = payment["initiation"]
    return [
        _item(bank, payment, {**whole, **settlement.item(payment, index)}, entry.get("fee"))
        for index, entry in enumerate(payment["entries"])
    ]


def _item(bank: Bank, payment: Payment, initiation: Mapping[str, Any], fee: str | None) -> ApprovalItem:
    account = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    creditor = initiation["creditorAccount"]
    amount = initiation["instructedAmount"]
    item: ApprovalItem = {
        "service": payment["service"],
        "product": payment["product"],
        "amount": amount["amount"],
        "currency": amount["currency"],
        "creditorName": initiation["creditorName"],
        "creditorAccount": creditor.get("iban") or creditor.get("bban") or "",
        "debtorAccount": account["iban"] or account["bban"] if account is not None else "",
        "debtorAccountName": account["name"] if account is not None else "",
    }
    item.update(cast(ApprovalItem, flows.of(payment).dates(bank, payment)))
    if fee is not None:
        item["fee"] = f"{fee} {payment['currency']}"
    if "payeeVerification" in payment:
        item["payee"] = payment["payeeVerification"]["partyNameMatch"]
        item["payeeName"] = payment["payeeVerification"].get("matchedName", "")
    if message := initiation.get("remittanceInformationUnstructured"):
        item["message"] = message
        return item
    references = [reference for _, reference in structured_references(initiation)]
    if kids := [one["reference"] for one in references if says_kid(one)]:
        item["kid"] = ", ".join(kids)
    if others := [one["reference"] for one in references if not says_kid(one)]:
        item["reference"] = ", ".join(others)
    return item


def view(bank: Bank, payment: Payment) -> dict[str, Any]:
    """A payment as the control interface and the console show it."""
    initiation = payment["initiation"]
    instructed = initiation.get("instructedAmount") or {"amount": payment["amount"], "currency": payment["currency"]}
    shown = {
        "paymentId": payment["id"],
        "service": payment["service"],
        "product": payment["product"],
        "tpp": payment["tpp"],
        "nationalId": payment["nationalId"],
        "context": payment["context"],
        "agreement": payment["agreement"],
        "transactionStatus": payment["status"],
        "fundsAvailable": settlement.funds_available(bank, payment) if "fundsAvailable" in payment else None,
        "instructedAmount": instructed,
        "creditorName": initiation.get("creditorName"),
        "debtorAccountId": payment["debtorAccountId"],
        "psuMessage": psu_message(payment),
        "payeeVerification": payment.get("payeeVerification"),
        "basketId": payment.get("basketId"),
        "created": date_time(payment["created"]),
        "due": date_time(payment["due"]) if "due" in payment else None,
        "history": [{"status": one["status"], "at": date_time(one["at"])} for one in payment["history"]],
    }
    return {name: value for name, value in shown.items() if value is not None}


def listing(bank: Bank, limit: int | None = None) -> list[dict[str, Any]]:
    """All payments, newest first."""
    return [view(bank, payment) for payment in bank.documents.range(PAYMENT, "created", reverse=True, limit=limit)]
