"""Logins of customers at the bank itself, on the page `/my` (CONTRACT 18): no TPP takes part in them."""

from __future__ import annotations

from datetime import timedelta

from emulator.bank.bank import Bank
from emulator.bank.clock import stamp
from emulator.bank.documents import Login
from emulator.bank.kinds import LOGIN

LIFETIME = timedelta(hours=1)
MOST_KEPT = 1_000  # the oldest are deleted


def start(bank: Bank, national_id: str) -> str:
    """Log a person in for an hour of bank time; the secret that its browser keeps."""
    bank.make_room(LOGIN, MOST_KEPT, passing="yes")
    token = bank.ids.token()
    expires = stamp(bank.clock.now() + LIFETIME)
    bank.documents.put(LOGIN, Login(id=token, nationalId=national_id, expires=expires, passing="yes"))
    return token


def person(bank: Bank, token: str) -> str | None:
    """Who is logged in with this secret; None when the login is unknown, expired or ended."""
    login = bank.documents.get(LOGIN, token)
    if login is None or bank.clock.stamp() >= str(login["expires"]):
        return None
    return str(login["nationalId"])


def end(bank: Bank, token: str) -> None:
    """Log out: the secret is worth nothing from now on."""
    if bank.documents.get(LOGIN, token) is not None:
        bank.documents.delete(LOGIN, token)
