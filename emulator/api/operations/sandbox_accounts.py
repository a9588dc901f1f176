"""Sandbox data: accounts (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Operation, Reply
from emulator.bank.accounts import accounts
from emulator.bank.documents import Account
from emulator.bank.kinds import ACCOUNT
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"


def account_shown(call: Call, account: Account) -> dict[str, Any]:
    """The account in answers."""
    return {**sandbox_accounts.account_view(call.bank, account), "_links": _links(call, account)}


def _links(call: Call, account: Account) -> dict[str, Any]:
    path = f"/v1/sandbox/accounts/{account['id']}"
    return {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }


def create(call: Call) -> Reply:
    """A new account: the posted members, `id` and `_links`."""
    return Reply(201, account_shown(call, sandbox_accounts.create_account(call.bank, call.body)))


def list_all(call: Call) -> Reply:
    """All accounts."""
    return Reply(200, [account_shown(call, account) for account in sandbox.list_documents(call.bank, ACCOUNT)])


def get(call: Call) -> Reply:
    """One account."""
    return Reply(200, account_shown(call, accounts.find(call.bank, call.params["mockAccountId"])))


def update(call: Call) -> Reply:
    """Replace an account."""
    replaced = sandbox_accounts.replace_account(call.bank, call.params["mockAccountId"], call.body)
    return Reply(200, account_shown(call, replaced))


def delete(call: Call) -> Reply:
    """Remove an account and everything that depends on it."""
    return Reply.after(sandbox_accounts.deleting_account(call.bank, call.params["mockAccountId"]))


_ALL = "/v1/sandbox/accounts"
_ONE = "/v1/sandbox/accounts/{mockAccountId}"

_row = partial(Operation, column="sandbox", tag="Sandbox")

OPERATIONS = (
    _row(
        id="createSandboxAccount",
        gives=("mockAccountId", "id"),
        method="POST",
        path=_ALL,
        summary="Create an account",
        handler=create,
        answers={201: f"{_ANSWERS}:SandboxAccount"},
        body=f"{_BODY}:PostedAccount",
    ),
    _row(
        id="listSandboxAccounts",
        method="GET",
        path=_ALL,
        summary="All accounts",
        handler=list_all,
        answers={200: f"{_ANSWERS}:SandboxAccountList"},
    ),
    _row(
        id="getSandboxAccount",
        method="GET",
        path=_ONE,
        summary="One account",
        handler=get,
        answers={200: f"{_ANSWERS}:SandboxAccount"},
    ),
    _row(
        id="updateSandboxAccount",
        method="PUT",
        path=_ONE,
        summary="Replace an account",
        handler=update,
        answers={200: f"{_ANSWERS}:SandboxAccount"},
        body=f"{_BODY}:PostedAccount",
    ),
    _row(
        id="deleteSandboxAccount",
        method="DELETE",
        path=_ONE,
        summary="Remove an account and everything that depends on it",
        handler=delete,
        answers={204: None},
    ),
)
