"""Card account information: lists, balances and transactions (accounts.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from emulator.api.operation import Access, Call, Reply, operation
from emulator.api.operations.accounts import AISP, account_links, balances_shown, caller_of
from emulator.api.paging import TRANSACTION_LIST, WITH_BALANCE, page_links, window
from emulator.api.render import LONGER_NAMES, RENDERERS, SWITCHED_AMOUNTS, Fixes, amounts, fixes, list_renderer
from emulator.bank.accounts import accounts, cards, transactions
from emulator.bank.bank import Bank
from emulator.bank.customers.access import shared_cards
from emulator.bank.documents import AccountRef, Card
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION

if TYPE_CHECKING:
    from emulator.api.shapes import account_answers
    from emulator.api.shapes.payments import CardReference

_ANSWERS = "emulator.api.shapes.account_answers"
_OLD_NAME_LENGTH = 35  # before the fix longer-names
_operation = partial(operation, column="details", roles=AISP, access=Access.ACCOUNT, resource=CARD, tag="Card accounts")


@_operation("GET", "/v1/card-accounts", {200: f"{_ANSWERS}:CardAccounts"}, query=WITH_BALANCE)
def get_card_accounts(call: Call) -> Reply[account_answers.CardAccounts]:
    """The card accounts that the PSU shares.

    The card accounts that the customer shares with this TPP.
    """
    fix = fixes(call)
    shown = [_card(call, card, fix) for card in accounts.newest_first(shared_cards(call.bank, caller_of(call)))]
    body: account_answers.CardAccounts = {"cardAccounts": shown}
    return Reply(200, amounts(body, fix))


@_operation("GET", "/v1/card-accounts/{id}", {200: f"{_ANSWERS}:CardAccountDetails"}, query=WITH_BALANCE)
def get_card_account(call: Call) -> Reply[account_answers.CardAccountDetails]:
    """One card account."""
    fix = fixes(call)
    card = cards.find(call.bank, caller_of(call).resource)
    body: account_answers.CardAccountDetails = {"cardAccount": _card(call, card, fix)}
    return Reply(200, amounts(body, fix))


def _card(call: Call, card: Card, fix: Fixes) -> account_answers.CardAccount:
    shown = card_shown(call.bank, card, longer_names=LONGER_NAMES in fix)
    if call.query["withBalance"] and card["status"].lower() != accounts.DELETED:
        shown["balances"] = balances_shown(call.bank, card, cards.balances(call.bank, card))
    shown["resourceId"] = caller_of(call).shown(call.bank, card["id"])
    return {**shown, "_links": account_links(call, f"/v1/card-accounts/{shown['resourceId']}")}


def card_shown(bank: Bank, card: Card, *, longer_names: bool) -> account_answers.CardAccountMembers:
    """The card account without balances and links.

    `relatedAccount` is the account that payments from the card are debited to; its `other` is the form in which a
    payment's debtorAccount names it.
    """
    name = card["name"]
    shown: account_answers.CardAccountMembers = {
        "resourceId": card["id"],
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "name": name if longer_names else name[:_OLD_NAME_LENGTH],
        "product": card["product"],
        "status": card["status"].lower(),
        "usage": card["usage"],
        "creditLimit": {"amount": card["creditLimit"], "currency": card["currency"]},
    }
    number = card.get("accountNumber")
    if number:
        account = bank.documents.first(ACCOUNT, bban=number)
        related: AccountRef = accounts.reference(account) if account is not None else {"bban": number}
        other: CardReference = {"identification": number, "schemeNameProprietary": cards.CARD_SCHEME}
        shown["relatedAccount"] = {**related, "other": other}
    return shown


def _reference(card: Card) -> account_answers.CardRef:
    return {"maskedPan": card["maskedPan"], "currency": card["currency"]}


@_operation("GET", "/v1/card-accounts/{id}/balances", {200: f"{_ANSWERS}:CardBalances"}, quota="balances")
def get_card_balances(call: Call) -> Reply[account_answers.CardBalances]:
    """The balances of a card account."""
    card = cards.find(call.bank, caller_of(call).resource)
    body: account_answers.CardBalances = {
        "cardAccount": _reference(card),
        "balances": balances_shown(call.bank, card, cards.balances(call.bank, card)),
    }
    return Reply(200, amounts(body, fixes(call)))


@_operation(
    "GET",
    "/v1/card-accounts/{id}/transactions",
    {200: f"{_ANSWERS}:CardTransactions"},
    query=TRANSACTION_LIST,
    quota="transactions",
)
def get_card_transactions(call: Call) -> Reply[account_answers.CardTransactions]:
    """The transactions of a card account, page by page.

    Newest first; dates and limit apply to pending ones too.
    """
    fix = fixes(call)
    card = cards.find(call.bank, caller_of(call).resource)
    requested = window(call)
    page = transactions.page(call.bank, card["id"], requested, kind=CARD_TRANSACTION)
    rendered = _renderer(fix)
    shelves: account_answers.CardTransactionShelves = {}
    if transactions.BOOKED in page.texts:
        shelves["booked"] = rendered(page.texts[transactions.BOOKED])
    if transactions.PENDING in page.texts:
        shelves["pending"] = rendered(page.texts[transactions.PENDING])
    links = page_links(call, requested, f"/v1/card-accounts/{call.params['id']}", more=page.more)
    body: account_answers.CardTransactions = {
        "cardAccount": _reference(card),
        "cardTransactions": {**shelves, "_links": links},
    }
    return Reply(200, amounts(body, fix))


@lru_cache(maxsize=RENDERERS)
def _renderer(fix: Fixes) -> Callable[[Sequence[bytes]], Any]:
    swapped = SWITCHED_AMOUNTS not in fix
    return list_renderer(lambda entry: amounts(cards.entry_view(entry, swapped=swapped), fix))
