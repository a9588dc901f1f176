"""Account information: lists, balances, transactions and their details (SPEC 4.5, 4.7; CONTRACT 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from emulator.api import accept_fix
from emulator.api.accept_fix import Fixes, amounts, fixes
from emulator.api.operation import Access, Call, Reply, link, operation
from emulator.api.paging import EARLIEST, TRANSACTION_LIST, WITH_BALANCE, page_links, unattended, window
from emulator.api.render import RENDERERS, list_renderer
from emulator.bank.accounts import accounts, transactions
from emulator.bank.customers import people
from emulator.bank.customers.access import Caller, shared_accounts
from emulator.bank.documents import Account, Transaction
from emulator.bank.errors import BankError

AISP = frozenset({"AISP"})

_ANSWERS = "emulator.api.shapes.account_answers"
_operation = partial(operation, column="details", roles=AISP, access=Access.ACCOUNT, tag="Accounts")


def caller_of(call: Call) -> Caller:
    """The customer whom the access gate has admitted."""
    if call.caller is None:
        raise LookupError("the access gate must have set the customer")
    return call.caller


@_operation("GET", "/v1/accounts", {200: f"{_ANSWERS}:Accounts"}, query=WITH_BALANCE)
def get_accounts(call: Call) -> Reply:
    """The accounts that the PSU shares."""
    fix = fixes(call)
    shown = [
        _account(call, account, fix) for account in accounts.newest_first(shared_accounts(call.bank, caller_of(call)))
    ]
    return Reply(200, amounts({"accounts": shown}, fix))


@_operation("GET", "/v1/accounts/{id}", {200: f"{_ANSWERS}:AccountDetails"}, query=WITH_BALANCE)
def get_account(call: Call) -> Reply:
    """One account."""
    fix = fixes(call)
    account = accounts.find(call.bank, call.params["id"])
    return Reply(200, amounts({"account": _account(call, account, fix)}, fix))


def _account(call: Call, account: Account, fix: Fixes) -> dict[str, Any]:
    shown = accounts.view(account)
    if accept_fix.ISO_ACCOUNT_TYPE not in fix:
        shown["cashAccountType"] = accounts.OLD_ACCOUNT_TYPES[shown["cashAccountType"]]
    if call.query["withBalance"]:
        shown["balances"] = accounts.balances(call.bank, account)
    path = f"/v1/accounts/{account['id']}"
    shown["_links"] = {
        "self": call.link(path),
        "balances": call.link(f"{path}/balances"),
        "transactions": call.link(f"{path}/transactions"),
    }
    return shown


@_operation("GET", "/v1/accounts/{id}/balances", {200: f"{_ANSWERS}:Balances"}, quota="balances")
def get_balances(call: Call) -> Reply:
    """The balances of an account."""
    account = accounts.find(call.bank, call.params["id"])
    body = {"account": accounts.reference(account), "balances": accounts.balances(call.bank, account)}
    return Reply(200, amounts(body, fixes(call)))


@_operation(
    "GET",
    "/v1/accounts/{id}/transactions",
    {200: f"{_ANSWERS}:Transactions"},
    query=TRANSACTION_LIST,
    quota="transactions",
)
def get_transactions(call: Call) -> Reply:
    """The transactions of an account, page by page.

    Newest first, with links to the neighbouring pages.
    """
    fix = fixes(call)
    account = accounts.find(call.bank, call.params["id"])
    requested = window(
        call,
        grouped=accept_fix.GROUPED_BATCHES in fix,
        all_pending=call.bank.settings.pending == "unfiltered",
    )
    page = transactions.page(call.bank, account["id"], requested)
    corporate = caller_of(call).context == people.CORPORATE
    rendered = _renderer(fix, call.links_base if corporate else None)
    listed: dict[str, Any] = {
        shelf: rendered(page.texts[shelf])
        for shelf in (transactions.BOOKED, transactions.PENDING)
        if shelf in page.texts
    }
    listed["_links"] = page_links(call, requested, f"/v1/accounts/{account['id']}", more=page.more)
    return Reply(200, amounts({"account": accounts.reference(account), "transactions": listed}, fix))


@lru_cache(maxsize=RENDERERS)
def _renderer(fix: Fixes, links_base: str | None) -> Callable[[Sequence[bytes]], Any]:
    """Renders lists of transactions; `links_base` for corporate callers."""
    return list_renderer(lambda entry: amounts(_entry(entry, links_base), fix))


def _entry(entry: Transaction, links_base: str | None) -> dict[str, Any]:
    shown = transactions.view(entry, corporate=links_base is not None)
    if links_base is not None:
        shown["_links"] = {"transactionDetails": _details_link(links_base, entry, entry["id"])}
    return shown


def _details_link(links_base: str, entry: Transaction, transaction_id: str) -> dict[str, Any]:
    return link(links_base, f"/v1/accounts/{entry['accountId']}/transactions/{transaction_id}")


@_operation(
    "GET",
    "/v1/accounts/{id}/transactions/{transactionId}",
    {200: f"{_ANSWERS}:TransactionDetails"},
    manual="accounts#transaction-details",
    quota="details",
)
def get_transaction_details(call: Call) -> Reply:
    """One transaction in full.

    With all its members (SPEC 2.9); a batch with its entries.
    """
    account = accounts.find(call.bank, call.params["id"])
    entry = transactions.find(call.bank, account["id"], call.params["transactionId"])
    booked_or_valued = entry.get("bookingDate") or entry["valueDate"]
    if unattended(call) and booked_or_valued < (call.bank.clock.today() - EARLIEST).isoformat():
        text = "Without the PSU present, transactions of the last 90 days may be read; this one is older."
        raise BankError("RESOURCE_UNKNOWN", text, "transactionId")
    corporate = caller_of(call).context == people.CORPORATE
    shown = _entry(entry, call.links_base if corporate else None)
    if corporate and "batch" in entry:
        details = transactions.batch_entries(entry)
        for number, detail in enumerate(details, 1):
            detail["_links"] = {"transactionDetails": _details_link(call.links_base, entry, f"{entry['id']}.{number}")}
        shown = {**shown, "entryDetails": details}
    return Reply(200, amounts({"transactionsDetails": shown}, fixes(call)))
