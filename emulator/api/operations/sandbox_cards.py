"""Sandbox data: card accounts and their transactions (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Reply, operation
from emulator.api.paging import SANDBOX_TRANSACTION_LIST, sandbox_window
from emulator.bank.accounts import cards
from emulator.bank.documents import Card, CardTransaction
from emulator.bank.kinds import CARD, CARD_TRANSACTION
from emulator.bank.sandbox import cards as sandbox_cards
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/card-accounts"
_ONE = "/v1/sandbox/card-accounts/{mockCardAccountId}"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def _card_id(call: Call) -> str:
    return call.params["mockCardAccountId"]


def _shown(call: Call, card: Card) -> dict[str, Any]:
    path = f"/v1/sandbox/card-accounts/{card['id']}"
    links = {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }
    return {**sandbox_cards.card_view(call.bank, card), "_links": links}


@_operation(
    "POST",
    _ALL,
    {201: f"{_ANSWERS}:SandboxCardAccount"},
    gives=("mockCardAccountId", "resourceId"),
    body=f"{_BODY}:PostedCardAccount",
)
def create_sandbox_card_account(call: Call) -> Reply:
    """Create a card account.

    Returns the posted members, `resourceId` and `_links`.
    """
    return Reply(201, _shown(call, sandbox_cards.create_card(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxCardAccountList"})
def list_sandbox_card_accounts(call: Call) -> Reply:
    """All card accounts."""
    return Reply(200, [_shown(call, card) for card in sandbox.list_documents(call.bank, CARD)])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxCardAccount"})
def get_sandbox_card_account(call: Call) -> Reply:
    """One card account."""
    return Reply(200, _shown(call, cards.find(call.bank, _card_id(call))))


@_operation("PUT", _ONE, {200: f"{_ANSWERS}:SandboxCardAccount"}, body=f"{_BODY}:PostedCardAccount")
def update_sandbox_card_account(call: Call) -> Reply:
    """Replace a card account."""
    return Reply(200, _shown(call, sandbox_cards.replace_card(call.bank, _card_id(call), call.body)))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_card_account(call: Call) -> Reply:
    """Remove a card account and its transactions."""
    return Reply.after(sandbox_cards.deleting_card(call.bank, _card_id(call)))


def _links(call: Call, entry: CardTransaction) -> dict[str, Any]:
    path = f"/v1/sandbox/card-accounts/{entry['cardId']}/transactions/{entry['id']}"
    return {"self": call.link(path, "GET")}


def _entry_shown(call: Call, entry: CardTransaction) -> dict[str, Any]:
    return {**sandbox_cards.transaction_view(entry), "_links": _links(call, entry)}


@_operation(
    "POST", f"{_ONE}/transactions", {201: f"{_ANSWERS}:SandboxCardTransactions"}, body=f"{_BODY}:PostedCardTransactions"
)
def create_sandbox_card_account_transactions(call: Call) -> Reply:
    """Create past card transactions.

    From an array or one object; returns the posted members, each with `id` and `_links`.
    """
    single = not isinstance(call.body, list)
    bodies = [call.body] if single else call.body
    created = sandbox_cards.create_transactions(call.bank, _card_id(call), bodies, single=single)
    shown = [
        {**body, "cardTransactionId": entry["cardTransactionId"], "id": entry["id"], "_links": _links(call, entry)}
        for body, entry in zip(bodies, created, strict=True)
    ]
    return Reply(201, shown[0] if single else shown)


@_operation(
    "GET", f"{_ONE}/transactions", {200: f"{_ANSWERS}:SandboxCardTransactionList"}, query=SANDBOX_TRANSACTION_LIST
)
def list_sandbox_card_account_transactions(call: Call) -> Reply:
    """The transactions of a card account.

    Newest first.
    """
    card = cards.find(call.bank, _card_id(call))
    entries = sandbox.list_entries(call.bank, CARD_TRANSACTION, card["id"], **sandbox_window(call))
    return Reply(200, [_entry_shown(call, entry) for entry in entries])


@_operation("GET", f"{_ONE}/transactions/{{transactionId}}", {200: f"{_ANSWERS}:SandboxCardTransaction"})
def get_sandbox_card_account_transaction(call: Call) -> Reply:
    """One card transaction."""
    entry = sandbox_cards.find_transaction(call.bank, _card_id(call), call.params["transactionId"])
    return Reply(200, _entry_shown(call, entry))


@_operation("DELETE", f"{_ONE}/transactions", {204: None})
def delete_sandbox_card_account_transactions(call: Call) -> Reply:
    """Remove the transactions of a card account."""
    return Reply.after(sandbox_cards.deleting_transactions(call.bank, _card_id(call)))
