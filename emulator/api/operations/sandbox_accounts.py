"""Sandbox data: accounts and card accounts, and their transactions (sandbox-data.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.api.operation import Call, Reply, operation
from emulator.api.paging import SANDBOX_TRANSACTION_LIST, sandbox_window
from emulator.bank import sandbox
from emulator.bank.accounts import accounts, transactions
from emulator.bank.documents import Account, AccountRef, Card, CardTransaction, Transaction
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION, TRANSACTION
from emulator.bank.money import plain
from emulator.bank.sandbox import accounts as sandbox_accounts

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox_answers
    from emulator.api.shapes.parts import Links
    from emulator.api.shapes.sandbox import PostedBalance

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/accounts"
_ONE = "/v1/sandbox/accounts/{mockAccountId}"
_ENTRIES = f"{_ONE}/transactions"
_ALL_CARDS = "/v1/sandbox/card-accounts"
_CARD = "/v1/sandbox/card-accounts/{mockCardAccountId}"
_CARD_ENTRIES = f"{_CARD}/transactions"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def account_shown(call: Call, account: Account) -> sandbox_answers.SandboxAccount:
    """The account in answers: the posted members, with the current balance."""
    posted = account.get("posted", {})
    more: sandbox_answers.SandboxAccountExtras = {}
    if "status" in posted or account["status"] != accounts.ENABLED:
        more["status"] = account["status"]
    if account.get("owners"):
        more["owners"] = [sandbox.number_of(call.bank, owner) for owner in account["owners"]]
    return {
        "customerNumber": sandbox.number_of(call.bank, account["customerId"]),
        "accountName": account["name"],
        "bban": account["bban"],
        "iban": account["iban"],
        "currency": account["currency"],
        "product": account["product"],
        "cashAccountType": posted.get("cashAccountType", account["cashAccountType"]),
        "creditLine": sandbox_accounts.credit_line(account),
        "balances": balances_shown(posted.get("balances"), account["booked"], account["currency"]),
        **more,
        "id": account["id"],
        "_links": _links(call, account),
    }


def balances_shown(posted: Sequence[PostedBalance] | None, booked: str, currency: str) -> list[PostedBalance]:
    """The balances of an account or card: as posted, or after bookings the posted types with the booked amount."""
    if not posted:
        return [{"balanceType": "closingBooked", "balanceAmount": {"amount": booked, "currency": currency}}]
    if plain(sandbox.booked_balance(posted), currency) == booked:
        return list(posted)
    return [
        {
            **balance,
            "balanceAmount": {"amount": sandbox.like(balance["balanceAmount"]["amount"], booked), "currency": currency},
        }
        for balance in posted
    ]


def _links(call: Call, account: Account) -> Links:
    path = f"/v1/sandbox/accounts/{account['id']}"
    return {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }


@_operation(
    "POST", _ALL, {201: f"{_ANSWERS}:SandboxAccount"}, gives=("mockAccountId", "id"), body=f"{_BODY}:PostedAccount"
)
def create_sandbox_account(call: Call) -> Reply[sandbox_answers.SandboxAccount]:
    """Create an account.

    Returns the posted members, `id` and `_links`.
    """
    return Reply(201, account_shown(call, sandbox_accounts.create_account(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxAccountList"})
def list_sandbox_accounts(call: Call) -> Reply[sandbox_answers.SandboxAccountList]:
    """All accounts."""
    return Reply(200, [account_shown(call, account) for account in sandbox.list_documents(call.bank, ACCOUNT)])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxAccount"})
def get_sandbox_account(call: Call) -> Reply[sandbox_answers.SandboxAccount]:
    """One account."""
    return Reply(200, account_shown(call, accounts.find(call.bank, call.params["mockAccountId"])))


@_operation("PUT", _ONE, {200: f"{_ANSWERS}:SandboxAccount"}, body=f"{_BODY}:PostedAccount")
def update_sandbox_account(call: Call) -> Reply[sandbox_answers.SandboxAccount]:
    """Replace an account."""
    replaced = sandbox_accounts.replace_account(call.bank, call.params["mockAccountId"], call.body)
    return Reply(200, account_shown(call, replaced))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_account(call: Call) -> Reply[None]:
    """Remove an account and everything that depends on it."""
    return Reply.after(sandbox_accounts.deleting(call.bank, ACCOUNT, call.params["mockAccountId"]))


# Transactions


def _entry_shown(call: Call, transaction: Transaction) -> sandbox_answers.SandboxTransaction:
    """A transaction as sandbox listings show it: whole currency units, absent text is ``""``."""
    return {
        "id": transaction["id"],
        "amount": sandbox_accounts.whole_units(transaction["amount"]),
        "currency": transaction["currency"],
        "valueDate": transaction.get("valueDate") or "",
        "remittanceInformationUnstructured": transaction.get("remittanceInformationUnstructured") or "",
        "creditorName": transaction.get("creditorName") or "",
        "creditorAccount": _both_numbers(transaction.get("creditorAccount")),
        "debtorName": transaction.get("debtorName") or "",
        "debtorAccount": _both_numbers(transaction.get("debtorAccount")),
        "bankTransactionCode": transaction.get("bankTransactionCode") or "",
        "ultimateDebtor": transaction.get("ultimateDebtor") or "",
        "ultimateCreditor": transaction.get("ultimateCreditor") or "",
        "purposeCode": transaction.get("purposeCode") or "",
        "bookingDate": transaction.get("bookingDate") or "",
        "_links": _own_link(call, transaction),
    }


def _both_numbers(reference: AccountRef | None) -> sandbox_answers.BothNumbers:
    reference = reference or {}
    return {"iban": reference.get("iban") or "", "bban": reference.get("bban") or ""}


def _own_link(call: Call, transaction: Transaction) -> sandbox_answers.OwnLink:
    return {"self": call.link(f"{_ALL}/{transaction['accountId']}/transactions/{transaction['id']}")}


def _created(
    call: Call, create: Callable[..., Sequence[Any]], link: Callable[[Call, Any], sandbox_answers.OwnLink], *ids: str
) -> Reply[Any]:
    """Create the transactions of a body, an array or one object; returns the posted members, `ids` and `_links`."""
    single = not isinstance(call.body, list)
    bodies = [call.body] if single else call.body
    shown = [
        {**body, **{name: entry[name] for name in ids}, "_links": link(call, entry)}
        for body, entry in zip(bodies, create(bodies, single=single), strict=True)
    ]
    return Reply(201, shown[0] if single else shown)


@_operation("POST", _ENTRIES, {201: f"{_ANSWERS}:SandboxTransactions"}, body=f"{_BODY}:PostedTransactions")
def create_sandbox_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxTransactions]:
    """Create past transactions.

    From an array or one object; returns the posted members, each with `id` and `_links`.
    """
    create = partial(sandbox_accounts.create_transactions, call.bank, call.params["mockAccountId"])
    return _created(call, create, _own_link, "id")


@_operation(
    "GET",
    _ENTRIES,
    {200: f"{_ANSWERS}:SandboxTransactionList"},
    manual="sandbox-data#transactions-of-the-sandbox",
    query=SANDBOX_TRANSACTION_LIST,
)
def list_sandbox_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxTransactionList]:
    """The transactions of an account, including those of payments.

    Newest first.
    """
    account = accounts.find(call.bank, call.params["mockAccountId"])
    entries = sandbox.list_entries(call.bank, TRANSACTION, account["id"], **sandbox_window(call))
    return Reply(200, [_entry_shown(call, transaction) for transaction in entries])


@_operation("GET", f"{_ENTRIES}/{{transactionId}}", {200: f"{_ANSWERS}:SandboxTransaction"})
def get_sandbox_account_transaction(call: Call) -> Reply[sandbox_answers.SandboxTransaction]:
    """One transaction."""
    account = accounts.find(call.bank, call.params["mockAccountId"])
    transaction = transactions.stored(call.bank, account["id"], call.params["transactionId"])
    return Reply(200, _entry_shown(call, transaction))


@_operation("DELETE", _ENTRIES, {204: None})
def delete_sandbox_account_transactions(call: Call) -> Reply[None]:
    """Remove the transactions of an account."""
    return Reply.after(sandbox_accounts.deleting_transactions(call.bank, ACCOUNT, call.params["mockAccountId"]))


# Card accounts


def _card_id(call: Call) -> str:
    return call.params["mockCardAccountId"]


def _card_shown(call: Call, card: Card) -> sandbox_answers.SandboxCardAccount:
    """The card account in answers: the posted members, with the current balance."""
    path = f"{_ALL_CARDS}/{card['id']}"
    posted = card.get("posted", {})
    return {
        "customerNumber": sandbox.number_of(call.bank, card["customerId"]),
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "creditLimit": posted.get("creditLimit", card["creditLimit"]),
        "balances": balances_shown(posted.get("balances"), card["booked"], card["currency"]),
        "cardId": card.get("cardId", ""),
        "cardIdVNo": card.get("cardIdVNo", ""),
        "accountNumber": card.get("accountNumber", ""),
        "expiry": card.get("expiry", ""),
        "name": card["name"],
        "product": card["product"],
        "status": card["status"],
        "resourceId": card["id"],
        "_links": {
            "self": call.link(path, "GET", "PUT", "DELETE"),
            "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
        },
    }


@_operation(
    "POST",
    _ALL_CARDS,
    {201: f"{_ANSWERS}:SandboxCardAccount"},
    gives=("mockCardAccountId", "resourceId"),
    body=f"{_BODY}:PostedCardAccount",
)
def create_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """Create a card account.

    Returns the posted members, `resourceId` and `_links`.
    """
    return Reply(201, _card_shown(call, sandbox_accounts.create_card(call.bank, call.body)))


@_operation("GET", _ALL_CARDS, {200: f"{_ANSWERS}:SandboxCardAccountList"})
def list_sandbox_card_accounts(call: Call) -> Reply[sandbox_answers.SandboxCardAccountList]:
    """All card accounts."""
    return Reply(200, [_card_shown(call, card) for card in sandbox.list_documents(call.bank, CARD)])


@_operation("GET", _CARD, {200: f"{_ANSWERS}:SandboxCardAccount"})
def get_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """One card account."""
    return Reply(200, _card_shown(call, accounts.find_card(call.bank, _card_id(call))))


@_operation("PUT", _CARD, {200: f"{_ANSWERS}:SandboxCardAccount"}, body=f"{_BODY}:PostedCardAccount")
def update_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """Replace a card account."""
    return Reply(200, _card_shown(call, sandbox_accounts.replace_card(call.bank, _card_id(call), call.body)))


@_operation("DELETE", _CARD, {204: None})
def delete_sandbox_card_account(call: Call) -> Reply[None]:
    """Remove a card account and its transactions."""
    return Reply.after(sandbox_accounts.deleting(call.bank, CARD, _card_id(call)))


def _card_entry_link(call: Call, entry: CardTransaction) -> sandbox_answers.OwnLink:
    return {"self": call.link(f"{_ALL_CARDS}/{entry['cardId']}/transactions/{entry['id']}")}


def _card_entry_shown(call: Call, entry: CardTransaction) -> Any:  # most of its members come from a table in `cards`
    return {"id": entry["id"], **accounts.entry_view(entry, swapped=False), "_links": _card_entry_link(call, entry)}


@_operation(
    "POST",
    _CARD_ENTRIES,
    {201: f"{_ANSWERS}:SandboxCardTransactions"},
    body=f"{_BODY}:PostedCardTransactions",
)
def create_sandbox_card_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxCardTransactions]:
    """Create past card transactions.

    From an array or one object; returns the posted members, each with `id` and `_links`.
    """
    create = partial(sandbox_accounts.create_card_transactions, call.bank, _card_id(call))
    return _created(call, create, _card_entry_link, "cardTransactionId", "id")


@_operation("GET", _CARD_ENTRIES, {200: f"{_ANSWERS}:SandboxCardTransactionList"}, query=SANDBOX_TRANSACTION_LIST)
def list_sandbox_card_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxCardTransactionList]:
    """The transactions of a card account.

    Newest first.
    """
    card = accounts.find_card(call.bank, _card_id(call))
    entries = sandbox.list_entries(call.bank, CARD_TRANSACTION, card["id"], **sandbox_window(call))
    return Reply(200, [_card_entry_shown(call, entry) for entry in entries])


@_operation("GET", f"{_CARD_ENTRIES}/{{transactionId}}", {200: f"{_ANSWERS}:SandboxCardTransaction"})
def get_sandbox_card_account_transaction(call: Call) -> Reply[sandbox_answers.SandboxCardTransaction]:
    """One card transaction."""
    entry = sandbox_accounts.find_card_transaction(call.bank, _card_id(call), call.params["transactionId"])
    return Reply(200, _card_entry_shown(call, entry))


@_operation("DELETE", _CARD_ENTRIES, {204: None})
def delete_sandbox_card_account_transactions(call: Call) -> Reply[None]:
    """Remove the transactions of a card account."""
    return Reply.after(sandbox_accounts.deleting_transactions(call.bank, CARD, _card_id(call)))
