"""Pages for customers with their accounts, cards, transactions and agreements, and for their authentications, consents
and sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from emulator.api.messages import Response
from emulator.bank.accounts import accounts, ledger, transactions
from emulator.bank.authentication import sca, sca_control
from emulator.bank.bank import Bank
from emulator.bank.customers import consents, people, sessions
from emulator.bank.documents import Account, Card, Customer, Person, Sca
from emulator.bank.kinds import (
    ACCOUNT,
    AGREEMENT,
    CARD,
    CARD_TRANSACTION,
    CONSENT,
    CUSTOMER,
    SESSION,
    TRANSACTION,
    EntryKind,
)
from emulator.bank.money import plain
from emulator.web.console import payments, plot
from emulator.web.console.screen import MOST, ControlRefused, Screen, quote_segment
from emulator.web.pages import sca_pages

PER_PAGE = 50
MOST_WAITING = 20  # each has a form
# The control operation behind each button, and the heading of the page that reports its result.
ENDS = {"approve": "Approved", "reject": "Declined", "expire": "Expired", "fail": "Failed"}


def listing(screen: Screen) -> Response:
    """List customers page by page, and people who act for others; a search matches names and numbers."""
    documents, words = screen.bank.documents, screen.query.get("q")
    listed: Iterable[Customer] = documents.all(CUSTOMER)
    total = documents.count(CUSTOMER)
    if words:  # only a search reads all of them
        matching = [one for one in listed if _contains(words.lower(), one["name"], one["customerNumber"])]
        listed, total = matching, len(matching)
    part = screen.part(total, {"q": words})
    acting = list(islice(_acting(screen.bank, words.lower()), MOST + 1))
    return screen.page(
        "customers",
        customers=[
            {**customer, "accounts": people.accounts_owned(screen.bank, customer["id"])}
            for customer in islice(listed, part.offset, part.end)
        ],
        part=part,
        wanted=words,
        acting=[{**one, "agreements": people.agreements_of(screen.bank, one["id"])} for one in acting[:MOST]],
        more_acting=len(acting) > MOST,
    )


def _acting(bank: Bank, words: str) -> Iterator[Person]:
    """People whom agreements name and who are not customers themselves, if they match the search."""
    named = (number for agreement in bank.documents.all(AGREEMENT) for number in agreement["persons"])
    for number in dict.fromkeys(named):
        person = people.person(bank, number)
        if person is not None and people.customer(bank, number) is None and _contains(words, person["name"], number):
            yield person


def _contains(words: str, name: str, number: str) -> bool:
    return words in name.lower() or words in number


def one(screen: Screen) -> Response:
    """Show a customer: accounts with their balance over time, cards, agreements and the people who act under them."""
    documents = screen.bank.documents
    customer = documents.get(CUSTOMER, screen.params["id"])
    if customer is None:
        return screen.missing("customer")
    accounts = people.accounts_owned(screen.bank, customer["id"])
    number = customer["customerNumber"]
    agreements = documents.find(AGREEMENT, owner=customer["id"])
    if customer["type"] == "private":
        owned = {agreement["id"] for agreement in agreements}
        agreements += [a for a in people.agreements_of(screen.bank, number) if a["id"] not in owned]
    return screen.page(
        "customer",
        customer=customer,
        accounts=[{**account, "plot": _plot(screen, account, TRANSACTION)} for account in accounts],
        cards=[
            {**card, "available": _card_available(screen, card)}
            for card in documents.find(CARD, customerId=customer["id"])
        ],
        agreements=agreements,
        consents=documents.find(CONSENT, nationalId=number, newest_first=True, limit=20),
    )


def _card_available(screen: Screen, card: Card) -> str:
    return plain(accounts.card_balances(screen.bank, card)["forwardAvailable"], card["currency"])


def _plot(screen: Screen, holder: Account | Card, kind: EntryKind) -> plot.Plot:
    return plot.draw(plot.closing_balances(screen.bank, holder, kind))


def account(screen: Screen) -> Response:
    document = screen.bank.documents.get(ACCOUNT, screen.params["id"])
    if document is None:
        return screen.missing("account")
    facts = {
        "Booked": document["booked"],
        "Available": plain(ledger.available(document), document["currency"]),
        "Reserved": document["reserved"],
        "Credit line": document["creditLine"],
    }
    return _account_page(screen, document, TRANSACTION, facts)


def card(screen: Screen) -> Response:
    document = screen.bank.documents.get(CARD, screen.params["id"])
    if document is None:
        return screen.missing("card account")
    facts = {
        "Booked": document["booked"],
        "Available": _card_available(screen, document),
        "Credit limit": document["creditLimit"],
    }
    return _account_page(screen, document, CARD_TRANSACTION, facts)


def _account_page(screen: Screen, holder: Account | Card, kind: EntryKind, facts: Mapping[str, str]) -> Response:
    """Show an account or a card: balances, their plot, pending transactions, and booked ones page by page."""
    documents = screen.bank.documents
    pending, booked = (f"{holder['id']}|{shelf}" for shelf in (transactions.PENDING, transactions.BOOKED))
    part = screen.part(documents.range_count(kind, "shelf", group=booked), size=PER_PAGE)

    def lines(group: str, offset: int, limit: int) -> list[dict[str, Any]]:
        entries: list[Any] = documents.range(kind, "shelf", group=group, reverse=True, offset=offset, limit=limit)
        return [_line(entry) for entry in entries]

    return screen.page(
        "account",
        account=holder,
        is_card=kind is CARD_TRANSACTION,
        facts=facts,
        plot=_plot(screen, holder, kind),
        pending=lines(pending, 0, MOST),
        booked=lines(booked, part.offset, part.size),
        drift=_drift(screen, kind, holder),
        part=part,
    )


def _drift(screen: Screen, kind: EntryKind, holder: Account | Card) -> list[dict[str, Any]] | None:
    """Entries that a TPP sees otherwise than stored, with what it sees; None if the feed does not drift."""
    feed = transactions.drifting_feed(screen.bank, kind, holder["id"])
    if feed is None:
        return None
    now = screen.bank.clock.stamp()
    rows = []
    for shelf in (transactions.PENDING, transactions.BOOKED):
        for entry, shown in feed.trace(shelf):
            seen = [one for one in shown if one.at(now)]
            if [one.entry for one in seen] != [entry]:
                coming = min((one.since for one in shown if one.since is not None and one.since > now), default=None)
                rows.append(
                    {
                        "stored": _line(entry),
                        "seen": [_line(one.entry) for one in seen],
                        "coming": coming,
                        "effects": sorted({effect for one in shown for effect in one.effects}),
                    }
                )
    return rows[:MOST]


def _line(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of an account or a card under common names, with its text and, of an account, the other side."""
    date = entry.get("bookingDate") or entry.get("valueDate") or entry.get("transactionDate", "")
    if "transactionAmount" in entry:
        names = {"id": entry.get("cardTransactionId") or entry["id"], "text": entry.get("transactionDetails", "")}
        return {**entry, "date": date, **names, **entry["transactionAmount"]}
    side = "creditor" if Decimal(entry["amount"]) < 0 else "debtor"
    other = entry.get(f"{side}Account") or {}
    structured = entry.get("remittanceInformationStructuredArray") or []
    text = entry.get("remittanceInformationUnstructured") or " ".join(
        [
            *entry.get("remittanceInformationUnstructuredArray", []),
            *(f"KID {reference['reference']}" for reference in structured),
        ]
    )
    return {
        **entry,
        "date": date,
        "other": entry.get(f"{side}Name") or "",
        "otherAccount": other.get("iban") or other.get("bban") or "",
        "text": text,
        "entries": entry["batch"]["entries"] if "batch" in entry else [],
    }


# Authentications, consents and sessions


def sca_listing(screen: Screen) -> Response:
    bank = screen.bank
    return screen.page(
        "sca",
        waiting=[
            {
                **_opened(screen, document),
                "people": _who(screen, document),
                "asks": payments.asked_for(screen, document),
            }
            for document in sca_control.waiting(bank, MOST_WAITING)
        ],
        most_waiting=MOST_WAITING,
        past=[_opened(screen, document) for document in sca_control.past(bank, MOST)],
        most=MOST,
    )


def _opened(screen: Screen, document: Sca) -> dict[str, Any]:
    page = f"{screen.home.removesuffix('/console')}/sca/{document['id']}"
    return {**document, **sca_control.view(screen.bank, document), "page": page}


def _who(screen: Screen, document: Sca) -> list[dict[str, Any]]:
    """The people who may approve: the person of the SCA if it has one, else the first of those allowed to."""
    national_id = document.get("person") or document.get("nationalId")
    if national_id is None:
        return sca_pages.known_people(screen.bank, document, most=20)
    return [{"nationalId": national_id, "name": screen.name_of("person", national_id)}]


def end_sca(screen: Screen) -> Response:
    how = screen.form.get("how")
    if how not in ENDS:
        raise ControlRefused(400, ["Choose approve, reject, expire or fail."])
    person = screen.form.get("nationalId") if how == "approve" else ""
    body = {"nationalId": person} if person else {}
    redirect = screen.ask("POST", f"sca/{quote_segment(screen.params['id'])}/{how}", body)["redirect"]
    document = sca.get(screen.bank, screen.params["id"])
    heading, failure = ENDS[how], None
    if redirect is None:
        heading = "The customer closed the page"
    elif document is not None and document["status"] == "failed":
        heading = "Not approved" if how == "approve" else heading
        failure = dict(parse_qsl(urlsplit(redirect).query))
    return screen.page("sca_ended", heading=heading, failure=failure, redirect=redirect, document=document)


def consent_listing(screen: Screen) -> Response:
    bank = screen.bank
    newest = bank.documents.range(SESSION, "created", reverse=True, limit=MOST)
    return screen.page(
        "consents",
        consents=consents.listing(bank, MOST),
        sessions=[{**session, "live": sessions.is_live(bank, session)} for session in newest],
        somebody=next((c["customerNumber"] for c in bank.documents.all(CUSTOMER) if c["type"] == "private"), None),
    )


def end_session(screen: Screen) -> Response:
    """End a live session: the next attended call needs SCA again."""
    if not sessions.end(screen.bank, screen.params["id"]):
        raise ControlRefused(409, ["The session does not exist or has ended."])
    return screen.go("consents", done="session-ended")
