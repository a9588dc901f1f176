"""Card account information: lists, balances and transactions (SPEC 4.7; CONTRACT 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from emulator.api import accept_fix
from emulator.api.accept_fix import Fixes, amounts, fixes
from emulator.api.operation import Access, Call, Reply, operation
from emulator.api.operations.accounts import AISP, caller_of
from emulator.api.paging import TRANSACTION_LIST, WITH_BALANCE, page_links, window
from emulator.api.render import RENDERERS, list_renderer
from emulator.bank.accounts import accounts, cards, transactions
from emulator.bank.customers.access import shared_cards
from emulator.bank.documents import Card
from emulator.bank.kinds import CARD, CARD_TRANSACTION

_ANSWERS = "emulator.api.shapes.account_answers"
_operation = partial(operation, column="details", roles=AISP, access=Access.ACCOUNT, resource=CARD, tag="Card accounts")


@_operation("GET", "/v1/card-accounts", {200: f"{_ANSWERS}:CardAccounts"}, query=WITH_BALANCE)
def get_card_accounts(call: Call) -> Reply:
    """The card accounts that the PSU shares.

    The card accounts that the customer shares with this TPP.
    """
    fix = fixes(call)
    shown = [_card(call, card, fix) for card in accounts.newest_first(shared_cards(call.bank, caller_of(call)))]
    return Reply(200, amounts({"cardAccounts": shown}, fix))


@_operation("GET", "/v1/card-accounts/{id}", {200: f"{_ANSWERS}:CardAccountDetails"}, query=WITH_BALANCE)
def get_card_account(call: Call) -> Reply:
    """One card account."""
    fix = fixes(call)
    card = cards.find(call.bank, call.params["id"])
    return Reply(200, amounts({"cardAccount": _card(call, card, fix)}, fix))


def _card(call: Call, card: Card, fix: Fixes) -> dict[str, Any]:
    shown = cards.view(call.bank, card, longer_names=accept_fix.LONGER_NAMES in fix)
    if call.query["withBalance"]:
        shown["balances"] = cards.balances(call.bank, card)
    path = f"/v1/card-accounts/{card['id']}"
    shown["_links"] = {
        "self": call.link(path),
        "balances": call.link(f"{path}/balances"),
        "transactions": call.link(f"{path}/transactions"),
    }
    return shown


@_operation("GET", "/v1/card-accounts/{id}/balances", {200: f"{_ANSWERS}:CardBalances"}, quota="balances")
def get_card_balances(call: Call) -> Reply:
    """The balances of a card account."""
    card = cards.find(call.bank, call.params["id"])
    body = {"cardAccount": cards.card_reference(card), "balances": cards.balances(call.bank, card)}
    return Reply(200, amounts(body, fixes(call)))


@_operation(
    "GET",
    "/v1/card-accounts/{id}/transactions",
    {200: f"{_ANSWERS}:CardTransactions"},
    query=TRANSACTION_LIST,
    quota="transactions",
)
def get_card_transactions(call: Call) -> Reply:
    """The transactions of a card account, page by page.

    Newest first; dates and limit apply to pending ones too (SPEC 8).
    """
    fix = fixes(call)
    card = cards.find(call.bank, call.params["id"])
    requested = window(call)
    page = transactions.page(call.bank, card["id"], requested, kind=CARD_TRANSACTION)
    rendered = _renderer(fix)
    listed: dict[str, Any] = {
        shelf: rendered(page.texts[shelf])
        for shelf in (transactions.BOOKED, transactions.PENDING)
        if shelf in page.texts
    }
    listed["_links"] = page_links(call, requested, f"/v1/card-accounts/{card['id']}", more=page.more)
    return Reply(200, amounts({"cardAccount": cards.card_reference(card), "cardTransactions": listed}, fix))


@lru_cache(maxsize=RENDERERS)
def _renderer(fix: Fixes) -> Callable[[Sequence[bytes]], Any]:
    swapped = accept_fix.SWITCHED_AMOUNTS not in fix
    return list_renderer(lambda entry: amounts(cards.entry_view(entry, swapped=swapped), fix))
