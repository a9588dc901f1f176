"""What the customer is told about a payment (psuMessage, SPEC 2.8), in the languages of answers."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.bank.documents import Payment, PsuMessage

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


def text(payment: Payment, language: str = "en") -> str | None:
    """The psuMessage of a payment in `en` or `nb`; None if it has none."""
    if "psuMessages" in payment:
        return " ".join(TEXTS[language][message] for message in payment["psuMessages"])
    return payment.get("psuMessage")
