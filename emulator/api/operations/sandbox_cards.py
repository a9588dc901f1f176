"""Sandbox data: card accounts and their transactions (sandbox-data.md#card-accounts-of-the-sandbox)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.api.operation import Call, Reply, operation
from emulator.api.operations.sandbox_accounts import balances_shown
from emulator.api.paging import SANDBOX_TRANSACTION_LIST, sandbox_window
from emulator.bank.accounts import cards
from emulator.bank.documents import Card, CardTransaction
from emulator.bank.kinds import CARD, CARD_TRANSACTION
from emulator.bank.sandbox import cards as sandbox_cards
from emulator.bank.sandbox import data as sandbox

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox_answers

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/card-accounts"
_ONE = "/v1/sandbox/card-accounts/{mockCardAccountId}"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def _card_id(call: Call) -> str:
    return call.params["mockCardAccountId"]


def _shown(call: Call, card: Card) -> sandbox_answers.SandboxCardAccount:
    """The card account in answers: the posted members, with the current balance."""
    path = f"{_ALL}/{card['id']}"
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
    _ALL,
    {201: f"{_ANSWERS}:SandboxCardAccount"},
    gives=("mockCardAccountId", "resourceId"),
    body=f"{_BODY}:PostedCardAccount",
)
def create_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """Create a card account.

    Returns the posted members, `resourceId` and `_links`.
    """
    return Reply(201, _shown(call, sandbox_cards.create_card(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxCardAccountList"})
def list_sandbox_card_accounts(call: Call) -> Reply[sandbox_answers.SandboxCardAccountList]:
    """All card accounts."""
    return Reply(200, [_shown(call, card) for card in sandbox.list_documents(call.bank, CARD)])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxCardAccount"})
def get_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """One card account."""
    return Reply(200, _shown(call, cards.find(call.bank, _card_id(call))))


@_operation("PUT", _ONE, {200: f"{_ANSWERS}:SandboxCardAccount"}, body=f"{_BODY}:PostedCardAccount")
def update_sandbox_card_account(call: Call) -> Reply[sandbox_answers.SandboxCardAccount]:
    """Replace a card account."""
    return Reply(200, _shown(call, sandbox_cards.replace_card(call.bank, _card_id(call), call.body)))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_card_account(call: Call) -> Reply[None]:
    """Remove a card account and its transactions."""
    return Reply.after(sandbox_cards.deleting_card(call.bank, _card_id(call)))


def _own_link(call: Call, entry: CardTransaction) -> sandbox_answers.OwnLink:
    return {"self": call.link(f"{_ALL}/{entry['cardId']}/transactions/{entry['id']}")}


def _entry_shown(call: Call, entry: CardTransaction) -> Any:  # most of its members come from a table in `cards`
    return {"id": entry["id"], **cards.entry_view(entry, swapped=False), "_links": _own_link(call, entry)}


@_operation(
    "POST", f"{_ONE}/transactions", {201: f"{_ANSWERS}:SandboxCardTransactions"}, body=f"{_BODY}:PostedCardTransactions"
)
def create_sandbox_card_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxCardTransactions]:
    """Create past card transactions.

    From an array or one object; returns the posted members, each with `id` and `_links`.
    """
    single = not isinstance(call.body, list)
    bodies = [call.body] if single else call.body
    created = sandbox_cards.create_transactions(call.bank, _card_id(call), bodies, single=single)
    shown: list[Any] = [
        {**body, "cardTransactionId": entry["cardTransactionId"], "id": entry["id"], "_links": _own_link(call, entry)}
        for body, entry in zip(bodies, created, strict=True)
    ]
    return Reply(201, shown[0] if single else shown)


@_operation(
    "GET", f"{_ONE}/transactions", {200: f"{_ANSWERS}:SandboxCardTransactionList"}, query=SANDBOX_TRANSACTION_LIST
)
def list_sandbox_card_account_transactions(call: Call) -> Reply[sandbox_answers.SandboxCardTransactionList]:
    """The transactions of a card account.

    Newest first.
    """
    card = cards.find(call.bank, _card_id(call))
    entries = sandbox.list_entries(call.bank, CARD_TRANSACTION, card["id"], **sandbox_window(call))
    return Reply(200, [_entry_shown(call, entry) for entry in entries])


@_operation("GET", f"{_ONE}/transactions/{{transactionId}}", {200: f"{_ANSWERS}:SandboxCardTransaction"})
def get_sandbox_card_account_transaction(call: Call) -> Reply[sandbox_answers.SandboxCardTransaction]:
    """One card transaction."""
    entry = sandbox_cards.find_transaction(call.bank, _card_id(call), call.params["transactionId"])
    return Reply(200, _entry_shown(call, entry))


@_operation("DELETE", f"{_ONE}/transactions", {204: None})
def delete_sandbox_card_account_transactions(call: Call) -> Reply[None]:
    """Remove the transactions of a card account."""
    return Reply.after(sandbox_cards.deleting_transactions(call.bank, _card_id(call)))
