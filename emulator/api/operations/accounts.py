"""Account information: lists, balances and transactions of accounts and of card accounts (accounts.md).

The members of an answer are put together here, the amounts come from `bank/accounts`. Accounts and cards show the same
balances (`balances_shown`). A member that is stored is also in `bank/documents.py`, in fixtures
(`bank/fixtures/definitions.py`, `documents.py`) and in sandbox data (`api/shapes/sandbox.py`,
`sandbox.py` here, `bank/sandbox`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from emulator.api.headers import DETAILS
from emulator.api.operation import AISP, Access, Call, Reply, link, operation
from emulator.api.query import QueryParameter
from emulator.api.render import (
    GROUPED_BATCHES,
    ISO_ACCOUNT_TYPE,
    LONGER_NAMES,
    RENDERERS,
    SWITCHED_AMOUNTS,
    Fixes,
    amounts,
    fixes,
    list_renderer,
)
from emulator.bank.accounts import accounts, transactions
from emulator.bank.accounts.transactions import SHELVES, Window
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.customers import people
from emulator.bank.customers.access import Caller, shared_accounts, shared_cards
from emulator.bank.documents import Account, AccountRef, Card, Consent, Transaction
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION
from emulator.bank.money import plain

if TYPE_CHECKING:
    from emulator.api.shapes import answers
    from emulator.api.shapes.parts import Link, Links

_operation = partial(
    operation,
    column=DETAILS,
    roles=AISP,
    access=Access.ACCOUNT,
    before_first_sca=True,
    tag="Accounts",
    manual="accounts",
)
_card_operation = partial(_operation, resource=CARD, tag="Card accounts")
_OLD_NAME_LENGTH = 35  # of a card account, before the fix longer-names

EARLIEST = timedelta(days=90)  # the default period of the list, and the longest one without the PSU
DEFAULT_LIMIT = 100
MAX_LIMIT = 500
WITH_BALANCE = (QueryParameter("withBalance", "boolean", "Whether the balances come with the account", default=False),)
OFFSET = QueryParameter("offset", "int", "The number of transactions to skip", default=0)
TRANSACTION_LIST = (
    QueryParameter("bookingStatus", "enum", "Which transactions are listed", values=tuple(SHELVES), default="both"),
    QueryParameter("dateFrom", "date", "The earliest date; left out: 90 days back"),
    QueryParameter("dateTo", "date", "The latest date", not_before="dateFrom"),
    OFFSET,
    QueryParameter(
        "limit", "int", "How many transactions are returned", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT
    ),
)


def caller_of(call: Call) -> Caller:
    """The customer whom the access gate has admitted."""
    if call.caller is None:
        raise LookupError("the access gate must have set the customer")
    return call.caller


def _consent(call: Call) -> Consent:
    return cast("Consent", caller_of(call).consent)


def _held(call: Call) -> Any:
    """The account or card account in the path, as the access gate has read it."""
    return caller_of(call).held


@_operation("GET", "/v1/accounts", query=WITH_BALANCE)
def get_accounts(call: Call) -> Reply[answers.Accounts]:
    """The accounts that the PSU shares."""
    shared = accounts.newest_first(shared_accounts(call.bank, _consent(call)))
    return Reply(200, {"accounts": [_account(call, account) for account in shared]})


@_operation("GET", "/v1/accounts/{id}", query=WITH_BALANCE)
def get_account(call: Call) -> Reply[answers.AccountDetails]:
    """One account."""
    return Reply(200, {"account": _account(call, _held(call))})


def _account(call: Call, account: Account) -> answers.Account:
    iso_type, resource_id = account["cashAccountType"], caller_of(call).shown(call.bank, account["id"])
    shown: answers.AccountMembers = {
        "resourceId": resource_id,
        "bban": account["bban"],
        "iban": account["iban"],
        "currency": account["currency"],
        "name": account["name"],
        "product": account["product"],
        "cashAccountType": iso_type if ISO_ACCOUNT_TYPE in fixes(call) else accounts.OLD_ACCOUNT_TYPES[iso_type],
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
) -> list[answers.Balance]:
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


@_operation("GET", "/v1/accounts/{id}/balances", quota="balances")
def get_balances(call: Call) -> Reply[answers.Balances]:
    """The balances of an account."""
    account: Account = _held(call)
    balances = balances_shown(call.bank, account, accounts.balances(call.bank, account))
    return Reply(200, {"account": accounts.reference(account), "balances": balances})


@_operation("GET", "/v1/accounts/{id}/transactions", query=TRANSACTION_LIST, quota="transactions")
def get_transactions(call: Call) -> Reply[answers.Transactions]:
    """The transactions of an account, page by page.

    Newest first, with links to the neighbouring pages.
    """
    fix = fixes(call)
    account: Account = _held(call)
    asked = _window(call, grouped=GROUPED_BATCHES in fix, all_pending=call.bank.settings.pending == "unfiltered")
    corporate = caller_of(call).context == people.CORPORATE
    rendered = _renderer(fix, _details_base(call) if corporate else None)
    page = _page(call, asked, transactions.page(call.bank, account["id"], asked), rendered)
    return Reply(200, {"account": accounts.reference(account), "transactions": page})


@lru_cache(maxsize=RENDERERS)
def _renderer(fix: Fixes, details: tuple[str, str | None] | None) -> Callable[[Sequence[bytes]], Any]:
    """Renders lists of transactions; `details`: see `_details_base`, for corporate callers."""
    return list_renderer(lambda entry: amounts(_entry(entry, details), fix))


def _details_base(call: Call) -> tuple[str, str | None]:
    """What links to details depend on beside the entry: the base of links, and the resourceId if it is not the id."""
    shown = call.params["id"]
    return call.links_base, None if shown == _held(call)["id"] else shown


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
    manual="accounts#transaction-details",
    quota="details",
)
def get_transaction_details(call: Call) -> Reply[answers.TransactionDetails]:
    """One transaction in full.

    With all its members; a batch with its entries.
    """
    account: Account = _held(call)
    entry = transactions.find(call.bank, account["id"], call.params["transactionId"])
    booked_or_valued = entry.get("bookingDate") or entry["valueDate"]
    if _unattended(call) and booked_or_valued < (call.bank.clock.today() - EARLIEST).isoformat():
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
    return Reply(200, {"transactionsDetails": shown})


# Pages of transactions


def _unattended(call: Call) -> bool:
    """Whether the PSU is not present at the TPP: no PSU-IP-Address."""
    return call.headers.get("psu-ip-address") is None


def _window(call: Call, *, grouped: bool = True, all_pending: bool = False) -> Window:
    """The window that the query selects; without the PSU nothing older than 90 days.

    assumed: an earlier dateFrom then counts as 90 days ago; the links contain that date, or omit it if it is after
    dateTo.
    """
    query = call.query
    earliest = (call.bank.clock.today() - EARLIEST).isoformat()
    first, last = query.get("dateFrom") or earliest, query.get("dateTo")
    if _unattended(call):
        first = max(first, earliest)
    return Window(
        status=query["bookingStatus"],
        first=first,
        last=last,
        offset=query["offset"],
        limit=query["limit"],
        grouped=grouped,
        all_pending=all_pending,
    )


def _page(
    call: Call, asked: Window, page: transactions.TransactionPage, rendered: Callable[[Sequence[bytes]], Any]
) -> Any:
    """The entries of a page, and its links: to the account, and to the neighbouring pages with the same dates."""
    path = call.path
    # Statuses and dates need no escapes in a query.
    address = f"{path}?bookingStatus={asked.status}"
    # A dateFrom after dateTo would be refused; omitted, it has the same effect.
    if asked.first is not None and (asked.last is None or asked.first <= asked.last):
        address += f"&dateFrom={asked.first}"
    if asked.last is not None:
        address += f"&dateTo={asked.last}"

    def link(offset: int) -> Link:
        return call.link(f"{address}&offset={offset}&limit={asked.limit}")

    links = {"self": link(asked.offset), "account": call.link(path.removesuffix("/transactions"))}
    if page.more:
        links["next"] = link(asked.offset + asked.limit)
    if asked.offset:
        links["previous"] = link(max(0, asked.offset - asked.limit))
    shelves = {
        shelf: rendered(page.texts[shelf])
        for shelf in (transactions.BOOKED, transactions.PENDING)
        if shelf in page.texts
    }
    return {**shelves, "_links": links}


# Card accounts


@_card_operation("GET", "/v1/card-accounts", query=WITH_BALANCE)
def get_card_accounts(call: Call) -> Reply[answers.CardAccounts]:
    """The card accounts that the PSU shares.

    The card accounts that the customer shares with this TPP.
    """
    shared = accounts.newest_first(shared_cards(call.bank, _consent(call)))
    return Reply(200, {"cardAccounts": [_card(call, card) for card in shared]})


@_card_operation("GET", "/v1/card-accounts/{id}", query=WITH_BALANCE)
def get_card_account(call: Call) -> Reply[answers.CardAccountDetails]:
    """One card account."""
    return Reply(200, {"cardAccount": _card(call, _held(call))})


def _card(call: Call, card: Card) -> answers.CardAccount:
    resource_id, name = caller_of(call).shown(call.bank, card["id"]), card["name"]
    shown: answers.CardAccountMembers = {
        "resourceId": resource_id,
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "name": name if LONGER_NAMES in fixes(call) else name[:_OLD_NAME_LENGTH],
        "product": card["product"],
        "status": card["status"].lower(),
        "usage": card["usage"],
        "creditLimit": {"amount": card["creditLimit"], "currency": card["currency"]},
    }
    if card.get("accountNumber"):
        shown["relatedAccount"] = related_account(call.bank, card["accountNumber"])
    if call.query["withBalance"] and shown["status"] != accounts.DELETED:
        shown["balances"] = balances_shown(call.bank, card, accounts.card_balances(call.bank, card))
    return {**shown, "_links": account_links(call, f"/v1/card-accounts/{resource_id}")}


def related_account(bank: Bank, number: str) -> answers.RelatedAccount:
    """The account with this BBAN, which payments from a card are debited to.

    Its `other` is the form in which a payment's debtorAccount names it.
    """
    account = bank.documents.first(ACCOUNT, bban=number)
    reference: AccountRef = accounts.reference(account) if account is not None else {"bban": number}
    return {**reference, "other": {"identification": number, "schemeNameProprietary": accounts.CARD_SCHEME}}


def _card_reference(card: Card) -> answers.CardRef:
    return {"maskedPan": card["maskedPan"], "currency": card["currency"]}


@_card_operation("GET", "/v1/card-accounts/{id}/balances", quota="balances")
def get_card_balances(call: Call) -> Reply[answers.CardBalances]:
    """The balances of a card account."""
    card: Card = _held(call)
    balances = balances_shown(call.bank, card, accounts.card_balances(call.bank, card))
    return Reply(200, {"cardAccount": _card_reference(card), "balances": balances})


@_card_operation("GET", "/v1/card-accounts/{id}/transactions", query=TRANSACTION_LIST, quota="transactions")
def get_card_transactions(call: Call) -> Reply[answers.CardTransactions]:
    """The transactions of a card account, page by page.

    Newest first; dates and limit apply to pending ones too.
    """
    card: Card = _held(call)
    asked = _window(call)
    entries = transactions.page(call.bank, card["id"], asked, kind=CARD_TRANSACTION)
    page = _page(call, asked, entries, _card_renderer(fixes(call)))
    return Reply(200, {"cardAccount": _card_reference(card), "cardTransactions": page})


@lru_cache(maxsize=RENDERERS)
def _card_renderer(fix: Fixes) -> Callable[[Sequence[bytes]], Any]:
    swapped = SWITCHED_AMOUNTS not in fix
    return list_renderer(lambda entry: amounts(accounts.entry_view(entry, swapped=swapped), fix))
