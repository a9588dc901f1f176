"""Sandbox data: create, read and delete accounts, card accounts and their transactions (sandbox-data.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal, cast

from emulator.bank.accounts import accounts, ledger, transactions
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import (
    Account,
    Amount,
    Card,
    CardTransaction,
    CardTransactionDetails,
    Customer,
    SandboxIdentity,
    Transaction,
    TransactionDetails,
    TransactionMembers,
)
from emulator.bank.errors import BankError, Message
from emulator.bank.kinds import (
    ACCOUNT,
    AGREEMENT,
    CARD,
    CARD_TRANSACTION,
    CONSENT,
    ENTRIES_OF,
    PAYMENT,
    QUOTA,
    TRANSACTION,
    EntryKind,
    HolderKind,
)
from emulator.bank.money import plain, too_fine
from emulator.bank.payment import flows
from emulator.bank.sandbox import (
    PIECE,
    Body,
    booked_balance,
    customer_named,
    decimal,
    identity_of,
    keep_engagements,
    like,
    new_identity,
    shortening,
)
from emulator.bank.sandbox.patterns import transfer_code
from emulator.bank.scheme.transitions import FINAL
from emulator.store import Kind

INT32 = (-(2**31), 2**31 - 1)
_ISO_TYPES = {old.lower(): iso for iso, old in accounts.OLD_ACCOUNT_TYPES.items()}
_SUMS: tuple[Literal["opening", "booked", "reserved"], ...] = ("opening", "booked", "reserved")
_KEPT = ("lastChange", "demandsKid", "paymentsRemoved")  # when the other members are replaced
_POSTED = ("cashAccountType", "creditLine", "balances", "status")
_COPIED = (
    "remittanceInformationUnstructured", "creditorName", "creditorAccount", "debtorName", "debtorAccount",
    "bankTransactionCode", "ultimateDebtor", "ultimateCreditor", "purposeCode", "creditorId", "endToEndId",
    "proprietaryBankTransactionCode",
)  # fmt: skip
_COPIED_OF_CARD = (
    "terminalId", "merchantCategoryCode", "markupFeePercentage", "cardAcceptorId", "cardAcceptorAddress",
    "transactionDetails", "invoiced", "proprietaryBankTransactionCode",
)  # fmt: skip
_CARD_TEXTS = ("cardId", "cardIdVNo", "expiry", "accountNumber")
_MICROSECOND = timedelta(microseconds=1)


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
    before = bank.find(ACCOUNT, account_id)
    document = _account(bank, identity_of(before), body)
    if document["currency"] != before["currency"]:
        _refuse_another_currency(bank, account_id)
    for name in _SUMS:
        document[name] = plain(Decimal(before[name]), document["currency"])
    document.update(cast(Account, {name: value for name, value in before.items() if name in _KEPT}))
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
    return bank.find(ACCOUNT, account_id)


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
    account.update(cast(Account, identity))
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


def create_card(bank: Bank, body: Body) -> Card:
    """A new card account; RESOURCE_UNKNOWN (400) for the customer."""
    return _put_card(bank, new_identity(bank), body)


def replace_card(bank: Bank, card_id: str, body: Body) -> Card:
    """Replace all members of a card account; its transactions stay. CONFLICT if they are in another currency."""
    before = bank.find(CARD, card_id)
    if body["currency"] != before["currency"] and bank.documents.count(CARD_TRANSACTION, cardId=card_id):
        raise BankError("CONFLICT", "The card account has transactions in another currency.", "currency")
    return _put_card(bank, identity_of(before), body)


def _put_card(bank: Bank, identity: SandboxIdentity, body: Body) -> Card:
    owner = customer_named(bank, body["customerNumber"], "customerNumber")
    currency = body["currency"]
    limit = body.get("creditLimit")  # a number, decimal text, or an Amount in the card's currency
    document: Card = {
        "id": identity["id"],
        "customerId": owner["id"],
        "maskedPan": body["maskedPan"],
        "currency": currency,
        "name": body.get("name") or body.get("product") or "Kort",
        "product": body.get("product") or "Kredittkort",
        "status": body.get("status") or "enabled",
        "usage": accounts.usage(owner),
        "creditLimit": plain(decimal((limit["amount"] if isinstance(limit, Mapping) else limit) or 0), currency),
        "booked": plain(booked_balance(body.get("balances")), currency),
        "lastChange": bank.clock.stamp(),
        "posted": {name: body[name] for name in ("creditLimit", "balances") if name in body},
    }
    document.update(cast(Card, {name: body[name] for name in _CARD_TEXTS if body.get(name)}))
    document.update(cast(Card, identity))
    bank.documents.put(CARD, document)
    return document


# Deletion


def deleting(bank: Bank, kind: Kind[Any], identity: str) -> Iterator[int]:
    """Delete an account or card account in steps, between which the bank may be used; it is there until the last."""
    bank.find(kind, identity)
    if (yield from shortening(bank, kind, identity, [(ENTRIES_OF[kind], identity)])):
        delete(bank, kind, [identity])


def delete(bank: Bank, kind: HolderKind, identities: Collection[str]) -> None:
    """Remove accounts or card accounts with their transactions, and from agreements and consents.

    The payments of an account stay as history.
    """
    gone = frozenset(identities)
    for identity in identities:
        if kind is ACCOUNT:
            _detach_payments(bank, identity)
        _delete_entries(bank, ENTRIES_OF[kind], identity)
        for agreement in bank.documents.find(AGREEMENT, accounts=identity):
            keep_engagements(bank, agreement, lambda engagement: engagement["accountId"] not in gone)
        bank.documents.delete(kind, identity)
    if gone:
        _unshare(bank, gone)


def _delete_entries(bank: Bank, kind: EntryKind, holder_id: str) -> None:
    for status in ("booked", "pending"):  # by their ids: there may be very many
        entries = bank.documents.range_ids(kind, "shelf", group=f"{holder_id}|{status}")
        bank.documents.delete_several(kind, entries)


def _detach_payments(bank: Bank, account_id: str) -> None:
    pending = bank.documents.range(TRANSACTION, "shelf", group=f"{account_id}|pending")
    for payment_id in {transaction["paymentId"] for transaction in pending if "paymentId" in transaction}:
        payment = bank.documents.get(PAYMENT, payment_id)
        if payment is not None:
            flows.without_account(bank, payment)
            bank.documents.put(PAYMENT, payment)


def _unshare(bank: Bank, gone: frozenset[str]) -> None:
    """Remove accounts or cards from consents, with one look at each of these."""
    for consent in bank.documents.all(CONSENT):
        if not gone.isdisjoint((*consent["accounts"], *consent["cards"])):
            consent["accounts"] = [account for account in consent["accounts"] if account not in gone]
            consent["cards"] = [card for card in consent["cards"] if card not in gone]
            bank.documents.put(CONSENT, consent)
    for quota in bank.documents.all(QUOTA):
        if not gone.isdisjoint(quota["id"].split("|")):
            bank.documents.delete(QUOTA, quota["id"])


def deleting_transactions(bank: Bank, kind: Kind[Any], identity: str) -> Iterator[int]:
    """Delete the transactions of an account or card account; its balance and what payments have pending stay.

    In steps, between which the bank may be used; the oldest go first.
    """
    bank.find(kind, identity)
    entries = ENTRIES_OF[kind]
    if not (yield from shortening(bank, kind, identity, [(entries, identity)])):
        return
    if kind is not ACCOUNT:
        _delete_entries(bank, entries, identity)
        return
    ledger.forget_oldest(bank, identity, PIECE)  # all that `shortening` has left
    reserved = Decimal(0)
    for transaction in bank.documents.find(TRANSACTION, accountId=identity):
        if "paymentId" not in transaction and "feeFor" not in transaction:
            reserved += ledger.item_hold(transaction)
            bank.documents.delete(TRANSACTION, transaction["id"])
    if reserved:
        ledger.release(bank, identity, reserved)


# Transactions


def _to_book(
    bank: Bank, kind: EntryKind, holder: Account | Card, bodies: Sequence[Body], other: str, *, single: bool
) -> Iterator[tuple[Body, str, str, str]]:
    """Each body with its booking date, its `other` date, and the moment of its entry; BankError with all problems.

    A missing date defaults to the other one, or to today. `single`: the body was one object, so paths in messages have
    no index.
    """
    messages: list[Message] = []
    for index, body in enumerate(bodies):
        prefix = "" if single else f"[{index}]."
        if kind is TRANSACTION:
            messages += _problems(holder, "account", body, prefix)
        else:
            messages += _problems(holder, "card account", body["transactionAmount"], f"{prefix}transactionAmount.")
    if messages:
        raise BankError.several(messages)
    today = bank.clock.today().isoformat()
    booked = [body.get("bookingDate") or body.get(other) or today for body in bodies]
    moments = _moments_after(bank, kind, holder["id"], booked)
    for body, booking, at in zip(bodies, booked, moments, strict=True):
        yield body, booking, body.get(other) or booking, at


def _problems(holder: Account | Card, what: str, amount: Body, prefix: str) -> Iterator[Message]:
    currency = amount.get("currency") or holder["currency"]
    if currency != holder["currency"]:
        text = f"The currency of the {what} was expected, {holder['currency']}."
        yield Message("FORMAT_ERROR", text, f"{prefix}currency")
    elif (problem := too_fine(decimal(amount["amount"]), currency)) is not None:
        yield Message("FORMAT_ERROR", problem, f"{prefix}amount")


def _moments_after(bank: Bank, kind: EntryKind, holder_id: str, dates: Sequence[str]) -> list[str]:
    """A moment for each entry posted to an account or card, so that lists show entries in the order of posting.

    `dates` are those under which they are listed. The moments are a microsecond apart, and later than those of the
    existing entries even if bank time is frozen.
    """
    first = bank.clock.now()
    for date in set(dates):
        latest: Sequence[Any] = bank.documents.range(
            kind, "shelf", group=f"{holder_id}|booked", low=f"{date}|", high=f"{date}|~", reverse=True, limit=1
        )
        first = max([first, *(moment(entry["order"].partition("|")[2]) + _MICROSECOND for entry in latest)])
    return [stamp(first + number * _MICROSECOND) for number in range(len(dates))]


def create_transactions(bank: Bank, account_id: str, bodies: Sequence[Body], *, single: bool) -> list[Transaction]:
    """Add booked transactions to the history of an account, without changing its balance (assumed)."""
    account = bank.find(ACCOUNT, account_id)
    balance = Decimal(account["booked"])
    entries = []
    for body, booking, value, at in _to_book(bank, TRANSACTION, account, bodies, "valueDate", single=single):
        posted = {name: _as_posted(body.get(name)) for name in _COPIED}
        details = cast(TransactionDetails, {name: one for name, one in posted.items() if one not in (None, "", {})})
        amount = decimal(body["amount"])
        details.setdefault("bankTransactionCode", transfer_code(outgoing=amount < 0))
        members: TransactionMembers = {**details, "amount": amount, "bookingDate": booking, "valueDate": value}
        entries.append(ledger.book(bank, account_id, members, at=at))
    ledger.restate(bank, account_id, balance)
    return entries


def _as_posted(value: Any) -> Any:
    """A member as posted; an account reference without the `""` that lists show for an absent number."""
    return {name: inner for name, inner in value.items() if inner} if isinstance(value, Mapping) else value


def whole_units(amount: str) -> int:
    """The int32 of a listing: whole currency units, rounded half to even, limited to int32."""
    whole = int(Decimal(amount).to_integral_value(ROUND_HALF_EVEN))
    return max(INT32[0], min(INT32[1], whole))


def create_card_transactions(
    bank: Bank, card_id: str, bodies: Sequence[Body], *, single: bool
) -> list[CardTransaction]:
    """Add booked card transactions to the history, without changing the balance (assumed)."""
    card = bank.find(CARD, card_id)
    to_book = _to_book(bank, CARD_TRANSACTION, card, bodies, "transactionDate", single=single)
    entries = [_card_transaction(bank, card, *one) for one in to_book]
    for document in entries:
        bank.documents.put(CARD_TRANSACTION, document)
    card["lastChange"] = bank.clock.stamp()
    bank.documents.put(CARD, card)
    return entries


def _card_transaction(bank: Bank, card: Card, body: Body, booking: str, bought: str, at: str) -> CardTransaction:
    identity = bank.ids.new()
    posted = {name: body[name] for name in _COPIED_OF_CARD if body.get(name) not in (None, "", {})}
    amount = _amount(body["transactionAmount"])
    document: CardTransaction = {
        "id": identity,
        "cardTransactionId": body.get("cardTransactionId") or accounts.reference_of(identity),
        "cardId": card["id"],
        **ledger.shelved(card, "booked", booking, at),
        "transactionDate": bought,
        "transactionAmount": amount,
        "originalAmount": _amount(body["originalAmount"]) if body.get("originalAmount") else amount,
        "maskedPan": body.get("maskedPan") or card["maskedPan"],
        **cast(CardTransactionDetails, posted),
        "bookingDate": booking,
    }
    if body.get("markupFee"):
        document["markupFee"] = _amount(body["markupFee"])
    if "markupFeePercentage" in document:
        document["markupFeePercentage"] = str(document["markupFeePercentage"])
    return document


def _amount(posted: Body) -> Amount:
    return {"amount": plain(decimal(posted["amount"]), posted["currency"]), "currency": posted["currency"]}


def find_card_transaction(bank: Bank, card_id: str, transaction_id: str) -> CardTransaction:
    """A transaction of the card account, by its id or its cardTransactionId; BankError RESOURCE_UNKNOWN.

    A transaction that a drifting feed shows under the id is preferred.
    """
    bank.find(CARD, card_id)
    feed = transactions.drifting_feed(bank, CARD_TRANSACTION, card_id)
    if feed is not None and (shown := feed.find(transaction_id)) is not None:
        return cast(CardTransaction, shown)
    transaction = bank.documents.get(CARD_TRANSACTION, transaction_id)
    if transaction is None or transaction["cardId"] != card_id:
        own = bank.documents.find(CARD_TRANSACTION, cardId=card_id)
        transaction = next((entry for entry in own if entry["cardTransactionId"] == transaction_id), None)
    if transaction is None:
        raise BankError("RESOURCE_UNKNOWN", f"The card account has no transaction {transaction_id}.", "transactionId")
    return transaction
