"""Applies the start of a scenario: documents, clock and settings, then its changes (CONTRACT 10, 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from emulator.bank import fixtures
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.conditions import wildcard
from emulator.bank.customers import access, consents, people, sessions
from emulator.bank.documents import Account, Agreement
from emulator.bank.errors import BankError
from emulator.bank.fixtures.entries import DefinitionError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, CUSTOMER, SESSION
from emulator.bank.money import plain, quantum
from emulator.bank.problems import Path, Problem
from emulator.scenario.problems import Misfit
from emulator.scenario.start import AccessChange, AccountChange, AgreementChange, Start

if TYPE_CHECKING:
    from emulator.bank.snapshots import Snapshots
    from emulator.store import Image, PreparedImage


def apply_start(
    start: Start, bank: Bank, snapshots: Snapshots, *, content: Image | PreparedImage | None = None
) -> None:
    """Apply a start to a bank; raises Misfit for changes to something that the bank does not have.

    `content`: the snapshot that it starts from, where that was prepared.
    """
    _base(start, bank, snapshots, content)
    if start.changed_settings:
        bank.change_settings(start.changed_settings)
    if start.add is not None:
        try:
            fixtures.add(bank, start.add)
        except DefinitionError as error:
            problems = (replace(problem, path=("start", "add", *problem.path)) for problem in error.problems)
            raise Misfit(*problems) from None
    for index, change in enumerate(start.change):
        path: Path = ("start", "change", index)
        if isinstance(change, AccountChange):
            _change_accounts(bank, change, path)
        elif isinstance(change, AgreementChange):
            _change_agreements(bank, change, path)
        else:
            _change_access(bank, change)


def _base(start: Start, bank: Bank, snapshots: Snapshots, content: Image | PreparedImage | None) -> None:
    """Set documents and clock; the clock is set back only with the documents (CONTRACT 13)."""
    if not start.resets:
        if start.clock is not None and start.clock < bank.clock.now():
            standing = date_time(bank.clock.now())
            text = f"Bank time is already {standing}; only a start from a fixture or a snapshot sets it back."
            raise Misfit(Problem(("start", "clock"), text))
    elif start.from_snapshot:
        try:
            snapshots.restore(bank, start.snapshot, content)
        except BankError as error:
            raise Misfit(Problem(("start", "from"), error.messages[0].text)) from None
    else:
        fixtures.reset(bank, start.base, now=start.clock, mode=None if start.clock is None else "frozen")
        return
    if start.clock is not None:
        bank.clock.set(now=start.clock, mode="frozen")


def _amount(text: str, currency: str, path: Path) -> Decimal:
    amount = Decimal(text)
    if amount != amount.quantize(quantum(currency)):
        raise Misfit(Problem(path, f"{text} has more decimals than {currency}."))
    return amount


def _change_accounts(bank: Bank, change: AccountChange, path: Path) -> None:
    accounts = find_accounts(bank, change.account)
    if not accounts:
        text = f"There is no account {change.account}; an IBAN, BBAN or resourceId was expected."
        raise Misfit(Problem((*path, "account"), text))
    for account in accounts:
        _change_account(bank, account, change.members(), path)


def _change_account(bank: Bank, account: Account, values: dict[str, Any], path: Path) -> None:
    balance = values.pop("balance", None)
    if "creditLine" in values:
        line = _amount(values["creditLine"], account["currency"], (*path, "creditLine"))
        values["creditLine"] = plain(line, account["currency"])
    bank.documents.put(ACCOUNT, cast(Account, {**account, **values}))
    if balance is not None:
        ledger.restate(bank, account["id"], _amount(balance, account["currency"], (*path, "balance")))


def find_accounts(bank: Bank, name: str) -> list[Account]:
    """The account with this IBAN, BBAN or resourceId; with `*`, every account whose IBAN or BBAN matches."""
    documents = bank.documents
    if "*" in name:
        return [a for a in documents.all(ACCOUNT) if wildcard(name, a["iban"]) or wildcard(name, a["bban"])]
    by_number = documents.first(ACCOUNT, iban=name) or documents.first(ACCOUNT, bban=name)
    account = by_number or documents.get(ACCOUNT, name)
    return [] if account is None else [account]


def _change_agreements(bank: Bank, change: AgreementChange, path: Path) -> None:
    several = "*" in change.agreement
    named = [agreement for agreement in bank.documents.all(AGREEMENT) if _is_named(bank, agreement, change.agreement)]
    if len(named) != 1 and not (several and named):
        there_is = "There is no agreement" if not named else f"There are {len(named)} agreements called"
        text = f"{there_is} {change.agreement}; its name or psuCorporateId was expected."
        raise Misfit(Problem((*path, "agreement"), text))
    for agreement in named:
        changed = cast(Agreement, {**agreement, **change.members()})
        if several and change.persons is None:
            changed["persons"] = _enough_persons(bank, changed)
        _check_persons(bank, changed["persons"], change.members(), path)
        if changed["signatures"] > len(changed["persons"]):
            raise Misfit(Problem((*path, "signatures"), "Two signatures require two persons."))
        bank.documents.put(AGREEMENT, changed)


def _is_named(bank: Bank, agreement: Agreement, name: str) -> bool:
    names = (agreement["id"], agreement["name"], agreement.get("organisationNumber") or "")
    if "*" not in name:
        return name in names
    owner = bank.documents.get(CUSTOMER, agreement["owner"])
    return owner is not None and owner["type"] == "corporate" and any(wildcard(name, one) for one in names)


def _enough_persons(bank: Bank, agreement: Agreement) -> list[str]:
    """The persons of an agreement, with others of the bank if there are fewer than signatures."""
    others = [number for number in people.names(bank) if number not in agreement["persons"]]
    missing = max(0, agreement["signatures"] - len(agreement["persons"]))
    return [*agreement["persons"], *others[:missing]]


def _change_access(bank: Bank, change: AccessChange) -> None:
    documents = bank.documents
    for consent in list(documents.all(CONSENT)):
        valid = consents.status(bank, consent) == "valid"
        if valid and change.quotas is not None:
            access.use_up(bank, consent)
        if valid and change.consents == "revoked":
            consents.revoke(bank, consent["id"])
        elif valid and change.consents == "expired":
            consents.expire(bank, consent)
    for session in list(documents.all(SESSION)) if change.sessions is not None else ():
        sessions.expire(bank, session)


def _check_persons(bank: Bank, persons: Sequence[str], changed: Mapping[str, Any], path: Path) -> None:
    for index, person in enumerate(persons if "persons" in changed else ()):
        if people.person(bank, person) is None:
            raise Misfit(Problem((*path, "persons", index), f"The bank has no person with the number {person}."))
