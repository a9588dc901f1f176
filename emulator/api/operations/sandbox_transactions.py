"""Sandbox data: the transactions of accounts (SPEC 2.10, 4.6; CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Operation, Reply
from emulator.api.paging import SANDBOX_TRANSACTION_LIST
from emulator.bank.accounts import accounts, transactions
from emulator.bank.documents import Transaction
from emulator.bank.kinds import TRANSACTION
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox.data import list_entries

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"


def _path(transaction: Transaction) -> str:
    return f"/v1/sandbox/accounts/{transaction['accountId']}/transactions/{transaction['id']}"


def _shown(call: Call, transaction: Transaction) -> dict[str, Any]:
    links = {"self": call.link(_path(transaction), "GET")}
    return {**sandbox_accounts.transaction_view(transaction), "_links": links}


def create(call: Call) -> Reply:
    """Create transactions from an array or one object; returns the posted members, each with `id` and `_links`."""
    single = not isinstance(call.body, list)
    bodies = [call.body] if single else call.body
    created = sandbox_accounts.create_transactions(call.bank, call.params["mockAccountId"], bodies, single=single)
    shown = [
        {**body, "id": transaction["id"], "_links": {"self": call.link(_path(transaction), "GET")}}
        for body, transaction in zip(bodies, created, strict=True)
    ]
    return Reply(201, shown[0] if single else shown)


def window(call: Call) -> dict[str, Any]:
    """The dates, offset and limit of a sandbox listing (SPEC 4.6)."""
    query = call.query
    dates = {"first": query.get("fromDate"), "last": query.get("toDate")}
    return {**dates, "offset": query["offset"], "limit": query["limit"]}


def list_all(call: Call) -> Reply:
    """An account's transactions, newest first: posted ones and those of payments."""
    account = accounts.find(call.bank, call.params["mockAccountId"])
    entries = list_entries(call.bank, TRANSACTION, account["id"], **window(call))
    return Reply(200, [_shown(call, transaction) for transaction in entries])


def get(call: Call) -> Reply:
    """One transaction."""
    account = accounts.find(call.bank, call.params["mockAccountId"])
    transaction = transactions.stored(call.bank, account["id"], call.params["transactionId"])
    return Reply(200, _shown(call, transaction))


def delete_all(call: Call) -> Reply:
    """Remove an account's transactions."""
    return Reply.after(sandbox_accounts.deleting_transactions(call.bank, call.params["mockAccountId"]))


_ALL = "/v1/sandbox/accounts/{mockAccountId}/transactions"

_row = partial(Operation, column="sandbox", tag="Sandbox")

OPERATIONS = (
    _row(
        id="createSandboxAccountTransactions",
        method="POST",
        path=_ALL,
        summary="Create past transactions",
        handler=create,
        answers={201: f"{_ANSWERS}:SandboxTransactions"},
        body=f"{_BODY}:PostedTransactions",
    ),
    _row(
        id="listSandboxAccountTransactions",
        method="GET",
        path=_ALL,
        manual="sandbox-data#transactions-of-the-sandbox",
        summary="The transactions of an account, including those of payments",
        handler=list_all,
        answers={200: f"{_ANSWERS}:SandboxTransactionList"},
        query=SANDBOX_TRANSACTION_LIST,
    ),
    _row(
        id="getSandboxAccountTransaction",
        method="GET",
        path=f"{_ALL}/{{transactionId}}",
        summary="One transaction",
        handler=get,
        answers={200: f"{_ANSWERS}:SandboxTransaction"},
    ),
    _row(
        id="deleteSandboxAccountTransactions",
        method="DELETE",
        path=_ALL,
        summary="Remove the transactions of an account",
        handler=delete_all,
        answers={204: None},
    ),
)
