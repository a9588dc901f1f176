"""Sandbox data: card accounts and their transactions (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Operation, Reply
from emulator.api.operations.sandbox_transactions import window
from emulator.api.paging import SANDBOX_TRANSACTION_LIST
from emulator.bank.accounts import cards
from emulator.bank.documents import Card, CardTransaction
from emulator.bank.kinds import CARD, CARD_TRANSACTION
from emulator.bank.sandbox import cards as sandbox_cards
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"


def _card_id(call: Call) -> str:
    return call.params["mockCardAccountId"]


def _shown(call: Call, card: Card) -> dict[str, Any]:
    path = f"/v1/sandbox/card-accounts/{card['id']}"
    links = {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }
    return {**sandbox_cards.card_view(call.bank, card), "_links": links}


def create(call: Call) -> Reply:
    """A new card account: the posted members, `resourceId` and `_links`."""
    return Reply(201, _shown(call, sandbox_cards.create_card(call.bank, call.body)))


def list_all(call: Call) -> Reply:
    """All card accounts."""
    return Reply(200, [_shown(call, card) for card in sandbox.list_documents(call.bank, CARD)])


def get(call: Call) -> Reply:
    """One card account."""
    return Reply(200, _shown(call, cards.find(call.bank, _card_id(call))))


def update(call: Call) -> Reply:
    """Replace a card account."""
    return Reply(200, _shown(call, sandbox_cards.replace_card(call.bank, _card_id(call), call.body)))


def delete(call: Call) -> Reply:
    """Remove a card account and its transactions."""
    return Reply.after(sandbox_cards.deleting_card(call.bank, _card_id(call)))


def _links(call: Call, entry: CardTransaction) -> dict[str, Any]:
    path = f"/v1/sandbox/card-accounts/{entry['cardId']}/transactions/{entry['id']}"
    return {"self": call.link(path, "GET")}


def _entry_shown(call: Call, entry: CardTransaction) -> dict[str, Any]:
    return {**sandbox_cards.transaction_view(entry), "_links": _links(call, entry)}


def create_transactions(call: Call) -> Reply:
    """Create transactions from an array or one object; returns the posted members, each with `id` and `_links`."""
    single = not isinstance(call.body, list)
    bodies = [call.body] if single else call.body
    created = sandbox_cards.create_transactions(call.bank, _card_id(call), bodies, single=single)
    shown = [
        {**body, "cardTransactionId": entry["cardTransactionId"], "id": entry["id"], "_links": _links(call, entry)}
        for body, entry in zip(bodies, created, strict=True)
    ]
    return Reply(201, shown[0] if single else shown)


def list_transactions(call: Call) -> Reply:
    """A card account's transactions, newest first."""
    card = cards.find(call.bank, _card_id(call))
    entries = sandbox.list_entries(call.bank, CARD_TRANSACTION, card["id"], **window(call))
    return Reply(200, [_entry_shown(call, entry) for entry in entries])


def get_transaction(call: Call) -> Reply:
    """One card transaction."""
    entry = sandbox_cards.find_transaction(call.bank, _card_id(call), call.params["transactionId"])
    return Reply(200, _entry_shown(call, entry))


def delete_transactions(call: Call) -> Reply:
    """Remove a card account's transactions."""
    return Reply.after(sandbox_cards.deleting_transactions(call.bank, _card_id(call)))


_ALL = "/v1/sandbox/card-accounts"
_ONE = "/v1/sandbox/card-accounts/{mockCardAccountId}"

_row = partial(Operation, column="sandbox", tag="Sandbox")

OPERATIONS = (
    _row(
        id="createSandboxCardAccount",
        gives=("mockCardAccountId", "resourceId"),
        method="POST",
        path=_ALL,
        summary="Create a card account",
        handler=create,
        answers={201: f"{_ANSWERS}:SandboxCardAccount"},
        body=f"{_BODY}:PostedCardAccount",
    ),
    _row(
        id="listSandboxCardAccounts",
        method="GET",
        path=_ALL,
        summary="All card accounts",
        handler=list_all,
        answers={200: f"{_ANSWERS}:SandboxCardAccountList"},
    ),
    _row(
        id="getSandboxCardAccount",
        method="GET",
        path=_ONE,
        summary="One card account",
        handler=get,
        answers={200: f"{_ANSWERS}:SandboxCardAccount"},
    ),
    _row(
        id="updateSandboxCardAccount",
        method="PUT",
        path=_ONE,
        summary="Replace a card account",
        handler=update,
        answers={200: f"{_ANSWERS}:SandboxCardAccount"},
        body=f"{_BODY}:PostedCardAccount",
    ),
    _row(
        id="deleteSandboxCardAccount",
        method="DELETE",
        path=_ONE,
        summary="Remove a card account and its transactions",
        handler=delete,
        answers={204: None},
    ),
    _row(
        id="createSandboxCardAccountTransactions",
        method="POST",
        path=f"{_ONE}/transactions",
        summary="Create past card transactions",
        handler=create_transactions,
        answers={201: f"{_ANSWERS}:SandboxCardTransactions"},
        body=f"{_BODY}:PostedCardTransactions",
    ),
    _row(
        id="listSandboxCardAccountTransactions",
        method="GET",
        path=f"{_ONE}/transactions",
        summary="The transactions of a card account",
        handler=list_transactions,
        answers={200: f"{_ANSWERS}:SandboxCardTransactionList"},
        query=SANDBOX_TRANSACTION_LIST,
    ),
    _row(
        id="getSandboxCardAccountTransaction",
        method="GET",
        path=f"{_ONE}/transactions/{{transactionId}}",
        summary="One card transaction",
        handler=get_transaction,
        answers={200: f"{_ANSWERS}:SandboxCardTransaction"},
    ),
    _row(
        id="deleteSandboxCardAccountTransactions",
        method="DELETE",
        path=f"{_ONE}/transactions",
        summary="Remove the transactions of a card account",
        handler=delete_transactions,
        answers={204: None},
    ),
)
