"""Sandbox data: accounts (CONTRACT 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.operation import Call, Reply, operation
from emulator.bank.accounts import accounts
from emulator.bank.documents import Account
from emulator.bank.kinds import ACCOUNT
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import data as sandbox

_BODY = "emulator.api.shapes.sandbox"
_ANSWERS = "emulator.api.shapes.sandbox_answers"

_ALL = "/v1/sandbox/accounts"
_ONE = "/v1/sandbox/accounts/{mockAccountId}"
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
