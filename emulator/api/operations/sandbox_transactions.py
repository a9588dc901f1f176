"""Sandbox data: the transactions of accounts (SPEC 2.10, 4.6; CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Reply, operation
from emulator.api.paging import SANDBOX_TRANSACTION_LIST
from emulator.bank.accounts import accounts, transactions
from emulator.bank.documents import Transaction
from emulator.bank.kinds import TRANSACTION
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox.data import list_entries

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/accounts/{mockAccountId}/transactions"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def _path(transaction: Transaction) -> str:
    return f"/v1/sandbox/accounts/{transaction['accountId']}/transactions/{transaction['id']}"


def _shown(call: Call, transaction: Transaction) -> dict[str, Any]:
    links = {"self": call.link(_path(transaction), "GET")}
    return {**sandbox_accounts.transaction_view(transaction), "_links": links}


@_operation("POST", _ALL, {201: f"{_ANSWERS}:SandboxTransactions"}, body=f"{_BODY}:PostedTransactions")
def create_sandbox_account_transactions(call: Call) -> Reply:
    """Create past transactions.

    From an array or one object; returns the posted members, each with `id` and `_links`.
    """
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


@_operation(
    "GET",
    _ALL,
    {200: f"{_ANSWERS}:SandboxTransactionList"},
    manual="sandbox-data#transactions-of-the-sandbox",
    query=SANDBOX_TRANSACTION_LIST,
)
def list_sandbox_account_transactions(call: Call) -> Reply:
    """The transactions of an account, including those of payments.

    Newest first.
    """
    account = accounts.find(call.bank, call.params["mockAccountId"])
    entries = list_entries(call.bank, TRANSACTION, account["id"], **window(call))
    return Reply(200, [_shown(call, transaction) for transaction in entries])


@_operation("GET", f"{_ALL}/{{transactionId}}", {200: f"{_ANSWERS}:SandboxTransaction"})
def get_sandbox_account_transaction(call: Call) -> Reply:
    """One transaction."""
    account = accounts.find(call.bank, call.params["mockAccountId"])
    transaction = transactions.stored(call.bank, account["id"], call.params["transactionId"])
    return Reply(200, _shown(call, transaction))


@_operation("DELETE", _ALL, {204: None})
def delete_sandbox_account_transactions(call: Call) -> Reply:
    """Remove the transactions of an account."""
    return Reply.after(sandbox_accounts.deleting_transactions(call.bank, call.params["mockAccountId"]))
