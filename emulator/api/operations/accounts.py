"""Account information: lists, balances, transactions and their details (accounts.md).

The members of the answers are declared in `shapes/account_answers.py`; their values come from `bank/accounts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from emulator.api.operation import Access, Call, Reply, link, operation
from emulator.api.paging import EARLIEST, TRANSACTION_LIST, WITH_BALANCE, page_links, unattended, window
from emulator.api.render import GROUPED_BATCHES, ISO_ACCOUNT_TYPE, RENDERERS, Fixes, amounts, fixes, list_renderer
from emulator.bank.accounts import accounts, transactions
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.customers import people
from emulator.bank.customers.access import Caller, shared_accounts
from emulator.bank.documents import Account, Card, Transaction
from emulator.bank.errors import BankError
from emulator.bank.money import plain

if TYPE_CHECKING:
    from emulator.api.shapes import account_answers
    from emulator.api.shapes.parts import Link, Links

AISP = frozenset({"AISP"})

_ANSWERS = "emulator.api.shapes.account_answers"
_operation = partial(operation, column="details", roles=AISP, access=Access.ACCOUNT, tag="Accounts")


def caller_of(call: Call) -> Caller:
    """The customer whom the access gate has admitted."""
    if call.caller is None:
        raise LookupError("the access gate must have set the customer")
    return call.caller


@_operation("GET", "/v1/accounts", {200: f"{_ANSWERS}:Accounts"}, query=WITH_BALANCE)
def get_accounts(call: Call) -> Reply[account_answers.Accounts]:
    """The accounts that the PSU shares."""
    fix = fixes(call)
    shown = [
        _account(call, account, fix) for account in accounts.newest_first(shared_accounts(call.bank, caller_of(call)))
    ]
    body: account_answers.Accounts = {"accounts": shown}
    return Reply(200, amounts(body, fix))


@_operation("GET", "/v1/accounts/{id}", {200: f"{_ANSWERS}:AccountDetails"}, query=WITH_BALANCE)
def get_account(call: Call) -> Reply[account_answers.AccountDetails]:
    """One account."""
    fix = fixes(call)
    account = accounts.find(call.bank, caller_of(call).resource)
    body: account_answers.AccountDetails = {"account": _account(call, account, fix)}
    return Reply(200, amounts(body, fix))


def _account(call: Call, account: Account, fix: Fixes) -> account_answers.Account:
    iso_type, resource_id = account["cashAccountType"], caller_of(call).shown(call.bank, account["id"])
    shown: account_answers.AccountMembers = {
        "resourceId": resource_id,
        "bban": account["bban"],
        "iban": account["iban"],
        "currency": account["currency"],
        "name": account["name"],
        "product": account["product"],
        "cashAccountType": iso_type if ISO_ACCOUNT_TYPE in fix else accounts.OLD_ACCOUNT_TYPES[iso_type],
        "bic": account["bic"],
        "usage": account["usage"],
        "status": account["status"],
    }
    if call.query["withBalance"] and account["status"] != accounts.DELETED:
        shown["balances"] = balances_shown(call.bank, account, accounts.balances(call.bank, account))
    return {**shown, "_links": account_links(call, f"/v1/accounts/{resource_id}")}


def account_links(call: Call, path: str) -> Links:
    """The links of an account or card account."""
    return {
        "self": call.link(path),
        "balances": call.link(f"{path}/balances"),
        "transactions": call.link(f"{path}/transactions"),
    }


def balances_shown(
    bank: Bank, holder: Account | Card, by_type: Mapping[accounts.BalanceType, Decimal]
) -> list[account_answers.Balance]:
    """The balances of an account or card account, as of the Oslo date of bank time."""
    currency = holder["currency"]
    return [
        {
            "balanceAmount": {"amount": plain(amount, currency), "currency": currency},
            "balanceType": name,
            "referenceDate": bank.clock.today().isoformat(),
            "lastChangeDateTime": date_time(holder["lastChange"]),
        }
        for name, amount in by_type.items()
    ]


@_operation("GET", "/v1/accounts/{id}/balances", {200: f"{_ANSWERS}:Balances"}, quota="balances")
def get_balances(call: Call) -> Reply[account_answers.Balances]:
    """The balances of an account."""
    account = accounts.find(call.bank, caller_of(call).resource)
    body: account_answers.Balances = {
        "account": accounts.reference(account),
        "balances": balances_shown(call.bank, account, accounts.balances(call.bank, account)),
    }
    return Reply(200, amounts(body, fixes(call)))


@_operation(
    "GET",
    "/v1/accounts/{id}/transactions",
    {200: f"{_ANSWERS}:Transactions"},
    query=TRANSACTION_LIST,
    quota="transactions",
)
def get_transactions(call: Call) -> Reply[account_answers.Transactions]:
    """The transactions of an account, page by page.

    Newest first, with links to the neighbouring pages.
    """
    fix = fixes(call)
    account = accounts.find(call.bank, caller_of(call).resource)
    requested = window(
        call,
        grouped=GROUPED_BATCHES in fix,
        all_pending=call.bank.settings.pending == "unfiltered",
    )
    page = transactions.page(call.bank, account["id"], requested)
    corporate = caller_of(call).context == people.CORPORATE
    rendered = _renderer(fix, _details_base(call) if corporate else None)
    shelves: account_answers.TransactionShelves = {}
    if transactions.BOOKED in page.texts:
        shelves["booked"] = rendered(page.texts[transactions.BOOKED])
    if transactions.PENDING in page.texts:
        shelves["pending"] = rendered(page.texts[transactions.PENDING])
    links = page_links(call, requested, f"/v1/accounts/{call.params['id']}", more=page.more)
    body: account_answers.Transactions = {
        "account": accounts.reference(account),
        "transactions": {**shelves, "_links": links},
    }
    return Reply(200, amounts(body, fix))


@lru_cache(maxsize=RENDERERS)
def _renderer(fix: Fixes, details: tuple[str, str | None] | None) -> Callable[[Sequence[bytes]], Any]:
    """Renders lists of transactions; `details`: see `_details_base`, for corporate callers."""
    return list_renderer(lambda entry: amounts(_entry(entry, details), fix))


def _details_base(call: Call) -> tuple[str, str | None]:
    """What links to details depend on beside the entry: the base of links, and the resourceId if it is not the id."""
    shown = call.params["id"]
    return call.links_base, None if shown == caller_of(call).resource else shown


def _entry(entry: Transaction, details: tuple[str, str | None] | None) -> dict[str, Any]:
    shown = transactions.view(entry, corporate=details is not None)
    if details is not None and "unidentified" not in entry:
        shown["_links"] = {"transactionDetails": _details_link(details, entry, entry["id"])}
    return shown


def _details_link(details: tuple[str, str | None], entry: Transaction, transaction_id: str) -> Link:
    base, resource_id = details
    return link(base, f"/v1/accounts/{resource_id or entry['accountId']}/transactions/{transaction_id}")


@_operation(
    "GET",
    "/v1/accounts/{id}/transactions/{transactionId}",
    {200: f"{_ANSWERS}:TransactionDetails"},
    manual="accounts#transaction-details",
    quota="details",
)
def get_transaction_details(call: Call) -> Reply[account_answers.TransactionDetails]:
    """One transaction in full.

    With all its members; a batch with its entries.
    """
    account = accounts.find(call.bank, caller_of(call).resource)
    entry = transactions.find(call.bank, account["id"], call.params["transactionId"])
    booked_or_valued = entry.get("bookingDate") or entry["valueDate"]
    if unattended(call) and booked_or_valued < (call.bank.clock.today() - EARLIEST).isoformat():
        text = "Without the PSU present, transactions of the last 90 days may be read; this one is older."
        raise BankError("RESOURCE_UNKNOWN", text, "transactionId")
    corporate = caller_of(call).context == people.CORPORATE
    shown: Any = _entry(entry, _details_base(call) if corporate else None)
    if corporate and "batch" in entry:
        details = transactions.batch_entries(entry)
        for number, detail in enumerate(details, 1):
            detail["_links"] = {
                "transactionDetails": _details_link(_details_base(call), entry, f"{entry['id']}.{number}")
            }
        shown = {**shown, "entryDetails": details}
    body: account_answers.TransactionDetails = {"transactionsDetails": shown}
    return Reply(200, amounts(body, fixes(call)))
