"""The customer's message about a payment (psuMessage, SPEC 2.8); stored in English, shown in Norwegian too."""

from __future__ import annotations

DECLINED = "The payment was declined."
NOT_APPROVED = "The payment was not approved within 24 hours."
NOT_APPROVED_TWICE = "The payment was not approved by a second person within 30 days."
NO_MONEY = "The payment was rejected: there was not enough money on the account."
REJECTED = "The payment was rejected."
MOVED = "The payment is executed on another date than requested."
TEXT_CHANGED = "Characters of the text that the payment system does not support were replaced."
CHANGED = "The payment was accepted with a change."

_NORWEGIAN = {
    DECLINED: "Du avviste betalingen.",
    NOT_APPROVED: "Betalingen ble ikke godkjent innen 24 timer.",
    NOT_APPROVED_TWICE: "Betalingen ble ikke godkjent av en person til innen 30 dager.",
    NO_MONEY: "Banken avviste betalingen: det var ikke nok penger på kontoen.",
    REJECTED: "Banken avviste betalingen.",
    MOVED: "Betalingen utføres en annen dato enn den som var ønsket.",
    TEXT_CHANGED: "Tegn i teksten som betalingssystemet ikke kan formidle, er erstattet.",
    CHANGED: "Betalingen ble godtatt med en endring.",
}


def in_norwegian(message: str) -> str:
    """A psuMessage, which may consist of several of the above, in Norwegian."""
    for english, norwegian in _NORWEGIAN.items():
        message = message.replace(english, norwegian)
    return message
