"""Accounts and card accounts: looking them up, references, owners and balances (accounts.md).

The answers of GET accounts are built in `api/operations/accounts.py`, of the form `api/shapes/answers.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeVar

from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.documents import Account, AccountRef, Card, Customer, TransactionDetails, Usage
from emulator.bank.formats import digits_of
from emulator.bank.kinds import ACCOUNT, CARD_TRANSACTION, CUSTOMER, TRANSACTION

BIC = "BEMUNO22XXX"  # the emulator's own; no bank has it (assumed)

# ISO 20022 code -> cashAccountType before the fix cash-account-type-iso.
OLD_ACCOUNT_TYPES: Mapping[str, str] = {
    "CACC": "Current",
    "SVGS": "Savings",
    "LOAN": "Loan",
    "TRAN": "Transaction",
    "TAXE": "Tax",
}

ENABLED, BLOCKED, DELETED = STATUSES = ("enabled", "blocked", "deleted")  # of Berlin Group

Listed = TypeVar("Listed", bound=Mapping[str, Any])

BalanceType = Literal["closingBooked", "expected", "interimAvailable", "forwardAvailable"]


def usage(customer: Customer) -> Usage:
    """`ORGA` for a corporate customer's account, else `PRIV`."""
    return "ORGA" if customer["type"] == "corporate" else "PRIV"


def reference(account: Account) -> AccountRef:
    """The AccountRef of an account of this bank."""
    return {"bban": account["bban"], "iban": account["iban"], "currency": account["currency"]}


def holder(bank: Bank, account: Account) -> str | None:
    """The name of the customer who owns an account."""
    owner = bank.documents.get(CUSTOMER, account["customerId"])
    return owner["name"] if owner is not None else None


def holders(bank: Bank, account: Account) -> list[str]:
    """The names of all who own an account, the customer of `holder` first."""
    owners = (bank.documents.get(CUSTOMER, name) for name in (account["customerId"], *account.get("owners", ())))
    return [owner["name"] for owner in owners if owner is not None]


def own_side(account: Account, owner: str, *, outgoing: bool) -> TransactionDetails:
    """The members of a transaction that name the account itself: the debtor if `outgoing`, else the creditor."""
    own, bic = reference(account), account["bic"]
    if outgoing:
        return {"debtorName": owner, "debtorAccount": own, "debtorAgent": bic}
    return {"creditorName": owner, "creditorAccount": own, "creditorAgent": bic}


def payer(bank: Bank, account_id: str) -> Account | None:
    """The account from which a payment is paid; None if there is none any more, or its status is `deleted`."""
    account = bank.documents.get(ACCOUNT, account_id)
    return None if account is None or account["status"] == DELETED else account


def named(bank: Bank, reference: Mapping[str, str]) -> Account | None:
    """The account of this bank with this IBAN or BBAN, None if it has none."""
    if "iban" in reference:
        return bank.documents.first(ACCOUNT, iban=reference["iban"].replace(" ", ""))
    return bank.documents.first(ACCOUNT, bban=digits_of(reference["bban"])) if "bban" in reference else None


def newest_first(documents: Iterable[Listed]) -> list[Listed]:
    """Sort accounts, customers, cards or agreements for a list.

    Those created since the fixture was loaded come first, the newest at the top, then those of the fixture, in its
    order (assumed).
    """
    listed = list(documents)
    return [*(d for d in reversed(listed) if "created" in d), *(d for d in listed if "created" not in d)]


def balances(bank: Bank, account: Account) -> dict[BalanceType, Decimal]:
    """closingBooked, expected and interimAvailable of an account (accounts.md#balances).

    expected is booked plus pending; interimAvailable is booked - reserved + credit line.
    """
    booked = Decimal(account["booked"])
    pending = bank.documents.range(TRANSACTION, "shelf", group=f"{account['id']}|pending")
    expected = sum((Decimal(transaction["amount"]) for transaction in pending), booked)
    return {"closingBooked": booked, "expected": expected, "interimAvailable": ledger.available(account)}


CARD_SCHEME: Literal["creditCardAccount"] = "creditCardAccount"  # the only schemeNameProprietary

_SHOWN = (
    "cardTransactionId", "terminalId", "transactionDate", "bookingDate", "transactionAmount", "originalAmount",
    "markupFee", "markupFeePercentage", "cardAcceptorId", "cardAcceptorAddress", "merchantCategoryCode", "maskedPan",
    "transactionDetails", "invoiced", "proprietaryBankTransactionCode",
)  # fmt: skip


def reference_of(identity: str) -> str:
    """The cardTransactionId of an entry posted without one: at most 35 characters, for both forms of ids."""
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()


def card_balances(bank: Bank, card: Card) -> dict[BalanceType, Decimal]:
    """closingBooked, expected and forwardAvailable of a card account; a debt is negative.

    forwardAvailable is the amount that may still be spent: the credit limit minus debt and pending entries (assumed).
    """
    booked = Decimal(card["booked"])
    pending = bank.documents.range(CARD_TRANSACTION, "shelf", group=f"{card['id']}|pending")
    expected = sum((Decimal(entry["transactionAmount"]["amount"]) for entry in pending), booked)
    available = expected + Decimal(card["creditLimit"])
    return {"closingBooked": booked, "expected": expected, "forwardAvailable": available}


def entry_view(entry: Mapping[str, Any], *, swapped: bool) -> dict[str, Any]:
    """A card transaction; `swapped`: transactionAmount and originalAmount change places."""
    shown = {name: entry[name] for name in _SHOWN if entry.get(name) not in (None, "")}
    if "unidentified" in entry:
        del shown["cardTransactionId"]
    if swapped:
        amounts = {"transactionAmount": shown["originalAmount"], "originalAmount": shown["transactionAmount"]}
        shown |= amounts
    return shown
