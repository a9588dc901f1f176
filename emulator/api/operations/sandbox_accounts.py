"""Sandbox data: accounts and their transactions (SPEC 2.10, 4.6; CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Reply, operation
from emulator.api.paging import SANDBOX_TRANSACTION_LIST, sandbox_window
from emulator.bank.accounts import accounts, transactions
from emulator.bank.documents import Account, Transaction
from emulator.bank.kinds import ACCOUNT, TRANSACTION
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/accounts"
_ONE = "/v1/sandbox/accounts/{mockAccountId}"
_ENTRIES = f"{_ONE}/transactions"
_operation = partial(operation, column="sandbox", tag="Sandbox")


def account_shown(call: Call, account: Account) -> dict[str, Any]:
    """The account in answers."""
    return {**sandbox_accounts.account_view(call.bank, account), "_links": _links(call, account)}


def _links(call: Call, account: Account) -> dict[str, Any]:
    path = f"/v1/sandbox/accounts/{account['id']}"
    return {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }


@_operation(
    "POST", _ALL, {201: f"{_ANSWERS}:SandboxAccount"}, gives=("mockAccountId", "id"), body=f"{_BODY}:PostedAccount"
)
def create_sandbox_account(call: Call) -> Reply:
    """Create an account.

    Returns the posted members, `id` and `_links`.
    """
    return Reply(201, account_shown(call, sandbox_accounts.create_account(call.bank, call.body)))


@_operation("GET", _ALL, {200: f"{_ANSWERS}:SandboxAccountList"})
def list_sandbox_accounts(call: Call) -> Reply:
    """All accounts."""
    return Reply(200, [account_shown(call, account) for account in sandbox.list_documents(call.bank, ACCOUNT)])


@_operation("GET", _ONE, {200: f"{_ANSWERS}:SandboxAccount"})
def get_sandbox_account(call: Call) -> Reply:
    """One account."""
    return Reply(200, account_shown(call, accounts.find(call.bank, call.params["mockAccountId"])))


@_operation("PUT", _ONE, {200: f"{_ANSWERS}:SandboxAccount"}, body=f"{_BODY}:PostedAccount")
def update_sandbox_account(call: Call) -> Reply:
    """Replace an account."""
    replaced = sandbox_accounts.replace_account(call.bank, call.params["mockAccountId"], call.body)
    return Reply(200, account_shown(call, replaced))


@_operation("DELETE", _ONE, {204: None})
def delete_sandbox_account(call: Call) -> Reply:
    """Remove an account and everything that depends on it."""
    return Reply.after(sandbox_accounts.deleting_account(call.bank, call.params["mockAccountId"]))


# Transactions


def _path(transaction: Transaction) -> str:
    return f"/v1/sandbox/accounts/{transaction['accountId']}/transactions/{transaction['id']}"


def _entry_shown(call: Call, transaction: Transaction) -> dict[str, Any]:
    links = {"self": call.link(_path(transaction), "GET")}
    return {**sandbox_accounts.transaction_view(transaction), "_links": links}


@_operation("POST", _ENTRIES, {201: f"{_ANSWERS}:SandboxTransactions"}, body=f"{_BODY}:PostedTransactions")
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


@_operation(
    "GET",
    _ENTRIES,
    {200: f"{_ANSWERS}:SandboxTransactionList"},
    manual="sandbox-data#transactions-of-the-sandbox",
    query=SANDBOX_TRANSACTION_LIST,
)
def list_sandbox_account_transactions(call: Call) -> Reply:
    """The transactions of an account, including those of payments.

    Newest first.
    """
    account = accounts.find(call.bank, call.params["mockAccountId"])
    entries = sandbox.list_entries(call.bank, TRANSACTION, account["id"], **sandbox_window(call))
    return Reply(200, [_entry_shown(call, transaction) for transaction in entries])


@_operation("GET", f"{_ENTRIES}/{{transactionId}}", {200: f"{_ANSWERS}:SandboxTransaction"})
def get_sandbox_account_transaction(call: Call) -> Reply:
    """One transaction."""
    account = accounts.find(call.bank, call.params["mockAccountId"])
    transaction = transactions.stored(call.bank, account["id"], call.params["transactionId"])
    return Reply(200, _entry_shown(call, transaction))


@_operation("DELETE", _ENTRIES, {204: None})
def delete_sandbox_account_transactions(call: Call) -> Reply:
    """Remove the transactions of an account."""
    return Reply.after(sandbox_accounts.deleting_transactions(call.bank, call.params["mockAccountId"]))
