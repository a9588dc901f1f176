"""Sandbox data: create, read and delete accounts and their transactions (sandbox-data.md#accounts-of-the-sandbox)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, cast

from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.documents import (
    Account,
    Customer,
    SandboxIdentity,
    Transaction,
    TransactionDetails,
    TransactionMembers,
)
from emulator.bank.errors import BankError, Message
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, PAYMENT, TRANSACTION
from emulator.bank.money import plain, too_fine
from emulator.bank.payment import lifecycle
from emulator.bank.sandbox import (
    Body,
    booked_balance,
    check_each,
    customer_named,
    decimal,
    identity_of,
    like,
    moments_after,
    new_identity,
    shortening,
    unshare,
)
from emulator.bank.sandbox.agreements import keep_engagements
from emulator.bank.sandbox.patterns import transfer_code
from emulator.bank.scheme.transitions import FINAL

INT32 = (-(2**31), 2**31 - 1)
_ISO_TYPES = {old.lower(): iso for iso, old in accounts.OLD_ACCOUNT_TYPES.items()}
_POSTED = ("cashAccountType", "creditLine", "balances", "status")
_COPIED = (
    "remittanceInformationUnstructured",
    "creditorName",
    "creditorAccount",
    "debtorName",
    "debtorAccount",
    "bankTransactionCode",
    "ultimateDebtor",
    "ultimateCreditor",
    "purposeCode",
    "creditorId",
    "endToEndId",
    "proprietaryBankTransactionCode",
)


def create_account(bank: Bank, body: Body) -> Account:
    """A new account; RESOURCE_UNKNOWN (400) for an unknown customer, CONFLICT if the BBAN or IBAN is in use."""
    document = _account(bank, new_identity(bank), body)
    document["opening"] = document["booked"] = plain(booked_balance(body.get("balances")), document["currency"])
    bank.documents.put(ACCOUNT, document)
    return document


def replace_account(bank: Bank, account_id: str, body: Body) -> Account:
    """Replace all members of an account; its transactions and payments stay.

    CONFLICT for another currency than that of its transactions, or of its payments that are not final.
    """
    before = accounts.find(bank, account_id)
    document = _account(bank, identity_of(before), body)
    if document["currency"] != before["currency"]:
        _refuse_another_currency(bank, account_id)
    document["opening"] = plain(Decimal(before["opening"]), document["currency"])
    document["booked"] = plain(Decimal(before["booked"]), document["currency"])
    document["reserved"] = plain(Decimal(before["reserved"]), document["currency"])
    document["lastChange"] = before["lastChange"]
    if "demandsKid" in before:
        document["demandsKid"] = before["demandsKid"]
    if "paymentsRemoved" in before:
        document["paymentsRemoved"] = before["paymentsRemoved"]
    bank.documents.put(ACCOUNT, document)
    ledger.restate(bank, account_id, booked_balance(body.get("balances")))
    for card in bank.documents.find(CARD, accountNumber=before["bban"]):
        card["accountNumber"] = document["bban"]
        bank.documents.put(CARD, card)
    for agreement in bank.documents.find(AGREEMENT, accounts=account_id):
        for engagement in agreement["engagements"]:
            if engagement["accountId"] == account_id:
                engagement["iban"] = document["iban"]
        bank.documents.put(AGREEMENT, agreement)
    return accounts.find(bank, account_id)


def _refuse_another_currency(bank: Bank, account_id: str) -> None:
    if bank.documents.count(TRANSACTION, accountId=account_id):
        raise BankError("CONFLICT", "The account has transactions in another currency.", "currency")
    for payment in bank.documents.all(PAYMENT):
        if payment["debtorAccountId"] == account_id and payment["status"] not in FINAL:
            raise BankError("CONFLICT", "An unfinished payment from the account has another currency.", "currency")


def _account(bank: Bank, identity: SandboxIdentity, body: Body) -> Account:
    owner = customer_named(bank, body["customerNumber"], "customerNumber")
    currency = body["currency"]
    for index in ("bban", "iban"):
        other = bank.documents.first(ACCOUNT, **{index: body[index]})
        if other is not None and other["id"] != identity["id"]:
            raise BankError("CONFLICT", f"The account {body[index]} already exists.", index)
    kind = body.get("cashAccountType") or "CACC"
    product = body.get("product") or "Brukskonto"
    zero = plain(Decimal(0), currency)
    account: Account = {
        "id": identity["id"],
        "customerId": owner["id"],
        "bban": body["bban"],
        "iban": body["iban"],
        "currency": currency,
        "name": body.get("accountName") or product,
        "product": product,
        "cashAccountType": _ISO_TYPES.get(kind.lower(), kind.upper()),
        "bic": accounts.BIC,
        "usage": accounts.usage(owner),
        "status": (body.get("status") or accounts.ENABLED).lower(),
        "creditLine": plain(decimal(body.get("creditLine") or 0), currency),
        "opening": zero,
        "booked": zero,
        "reserved": zero,
        "lastChange": bank.clock.stamp(),
        "posted": {name: body[name] for name in _POSTED if name in body},
    }
    if owners := _other_owners(bank, owner, body.get("owners") or ()):
        account["owners"] = owners
    if "created" in identity:
        account["created"] = identity["created"]
    return account


def _other_owners(bank: Bank, owner: Customer, named: Sequence[str]) -> list[str]:
    """The ids of the other owners of a joint account, which belongs to private customers."""
    owners = [customer_named(bank, name, f"owners[{index}]") for index, name in enumerate(named)]
    for index, other in enumerate(owners):
        if other["type"] != "private" or owner["type"] != "private":
            raise BankError("FORMAT_ERROR", "Only private customers have joint accounts.", f"owners[{index}]")
    return list(dict.fromkeys(other["id"] for other in owners if other["id"] != owner["id"]))


def credit_line(account: Account) -> Any:
    """The credit line as posted, or the current one if a scenario has changed it."""
    line, posted = account["creditLine"], account.get("posted", {}).get("creditLine")
    if posted is None:
        return line
    return posted if plain(decimal(posted), account["currency"]) == line else like(posted, line)


def deleting_account(bank: Bank, account_id: str) -> Iterator[int]:
    """Delete an account in steps, between which the bank may be used; the account is there until the last one."""
    accounts.find(bank, account_id)
    if (yield from shortening(bank, ACCOUNT, account_id, [(TRANSACTION, account_id)])):
        delete_accounts(bank, [account_id])


def delete_accounts(bank: Bank, account_ids: Collection[str]) -> None:
    """Remove accounts with their transactions, and from agreements and consents; their payments stay as history."""
    for account_id in account_ids:
        _delete_account(bank, account_id)
    unshare(bank, "accounts", account_ids)


def _delete_account(bank: Bank, account_id: str) -> None:
    pending = bank.documents.range(TRANSACTION, "shelf", group=f"{account_id}|pending")
    for payment_id in {transaction["paymentId"] for transaction in pending if "paymentId" in transaction}:
        _detach(bank, payment_id)
    for status in ("booked", "pending"):  # by their ids: there may be very many
        entries = bank.documents.range_ids(TRANSACTION, "shelf", group=f"{account_id}|{status}")
        bank.documents.delete_several(TRANSACTION, entries)
    for agreement in bank.documents.find(AGREEMENT, accounts=account_id):
        keep_engagements(bank, agreement, lambda engagement: engagement["accountId"] != account_id)
    bank.documents.delete(ACCOUNT, account_id)


def _detach(bank: Bank, payment_id: str) -> None:
    payment = bank.documents.get(PAYMENT, payment_id)
    if payment is not None:
        lifecycle.without_account(bank, payment, bank.clock.stamp())
        bank.documents.put(PAYMENT, payment)


def create_transactions(bank: Bank, account_id: str, bodies: Sequence[Body], *, single: bool) -> list[Transaction]:
    """Add booked transactions to the history of an account, without changing its balance (assumed).

    `single`: the body was one object, so paths in messages have no index.
    """
    account = accounts.find(bank, account_id)
    check_each(bodies, lambda body, prefix: _problems(account, body, prefix), single=single)
    dates = [_dates(bank, body) for body in bodies]
    moments = moments_after(bank, TRANSACTION, account, [booking for booking, _ in dates])
    balance = Decimal(account["booked"])
    entries = []
    for body, (booking, value), at in zip(bodies, dates, moments, strict=True):
        posted = {name: _as_posted(body.get(name)) for name in _COPIED}
        details = cast(
            TransactionDetails, {name: value for name, value in posted.items() if value not in (None, "", {})}
        )
        amount = decimal(body["amount"])
        details.setdefault("bankTransactionCode", transfer_code(outgoing=amount < 0))
        members: TransactionMembers = {**details, "amount": amount, "bookingDate": booking, "valueDate": value}
        entries.append(ledger.book(bank, account_id, members, at=at))
    ledger.restate(bank, account_id, balance)
    return entries


def _as_posted(value: Any) -> Any:
    """A member as posted; an account reference without the `""` that lists show for an absent number."""
    return {name: inner for name, inner in value.items() if inner} if isinstance(value, Mapping) else value


def _dates(bank: Bank, body: Body) -> tuple[str, str]:
    """Booking and value date; a missing date defaults to the other one, or to today."""
    today = bank.clock.today().isoformat()
    booking = body.get("bookingDate") or body.get("valueDate") or today
    return booking, body.get("valueDate") or booking


def _problems(account: Account, body: Body, prefix: str) -> list[Message]:
    wrong = []
    currency = body.get("currency") or account["currency"]
    if currency != account["currency"]:
        text = f"The currency of the account was expected, {account['currency']}."
        wrong.append(Message("FORMAT_ERROR", text, f"{prefix}currency"))
    elif (problem := too_fine(format(decimal(body["amount"]), "f"), currency)) is not None:
        wrong.append(Message("FORMAT_ERROR", problem, f"{prefix}amount"))
    return wrong


def deleting_transactions(bank: Bank, account_id: str) -> Iterator[int]:
    """Delete an account's transactions; its balance and the pending transactions of payments stay.

    In steps, between which the bank may be used; the oldest go first.
    """
    accounts.find(bank, account_id)
    if not (yield from shortening(bank, ACCOUNT, account_id, [(TRANSACTION, account_id)])):
        return
    ledger.forget(bank, account_id)
    reserved = Decimal(0)
    for transaction in bank.documents.find(TRANSACTION, accountId=account_id):
        if "paymentId" not in transaction and "feeFor" not in transaction:
            reserved += ledger.item_hold(transaction)
            bank.documents.delete(TRANSACTION, transaction["id"])
    if reserved:
        ledger.release(bank, account_id, reserved)


def whole_units(amount: str) -> int:
    """The int32 of a listing: whole currency units, rounded half to even, limited to int32."""
    whole = int(Decimal(amount).to_integral_value(ROUND_HALF_EVEN))
    return max(INT32[0], min(INT32[1], whole))
