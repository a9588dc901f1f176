"""Pages for payments with a timeline of their statuses, signing baskets and notifications."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from emulator.api.messages import Response
from emulator.bank import notifications, products
from emulator.bank.clock import moment
from emulator.bank.documents import Payment, Sca
from emulator.bank.kinds import BASKET, NOTIFICATION, PAYMENT, SCA
from emulator.bank.payment import baskets, flows, payment_views
from emulator.bank.scheme import transitions
from emulator.web.console.screen import MOST, Screen, quote_segment

LOOKED_AT = 5_000  # payments that a filter reads, so that the page stays fast when there are many

UNKNOWN = "A status of a scripted rule."
MEANINGS = {
    "RCVD": "Received, waits for the customer's approval",
    "PATC": "One of two signatures given",
    "ACTC": "Approved",
    "ACWC": "Approved with a change: date or text",
    "PDNG": "Waits for its date",
    "ACCP": "No funds at execution, tried again",
    "ACSP": "Being executed",
    "ACWP": "Sent, not credited yet",
    "ACSC": "Booked",
    "PART": "Booked in part",
    "RJCT": "Rejected",
    "CANC": "Cancelled",
}


def listing(screen: Screen) -> Response:
    """List payments page by page, newest first: all, those of a status, or those that match a search.

    A search reads the newest LOOKED_AT payments; a search for an id finds a payment of any age, and shows it.
    """
    documents = screen.bank.documents
    status, words = screen.query.get("status"), screen.query.get("q")
    count = documents.count(PAYMENT)
    if words and documents.get(PAYMENT, words) is not None:
        return screen.go("payments", words)
    if status or words:
        newest = documents.range(PAYMENT, "created", reverse=True, limit=LOOKED_AT)
        matching = [p for p in newest if (not status or p["status"] == status) and _matches(words.lower(), p)]
        part = screen.part(len(matching), {"status": status, "q": words})
        shown = matching[part.offset : part.end]
    else:
        part = screen.part(count)
        shown = documents.range(PAYMENT, "created", reverse=True, offset=part.offset, limit=part.size)
    return screen.page(
        "payments",
        payments=[_row(screen, payment) for payment in shown],
        wanted=status,
        words=words,
        statuses=transitions.STATUSES,
        meanings=MEANINGS,
        part=part,
        looked_at=LOOKED_AT if (status or words) and count > LOOKED_AT else None,
    )


def _matches(words: str, payment: Payment) -> bool:
    """Whether a payment has `words` (lower case) in its id, a creditor's name or account, its amount or its message."""
    if not words:
        return True
    initiation = payment["initiation"]
    entries = initiation.get("payments", ()) if "entries" in payment else (initiation,)
    if words in payment["id"].lower() or _amount(words) in (payment["amount"], payment["amount"].partition(".")[0]):
        return True
    return any(words in text.lower() for entry in entries for text in _searched(entry))


def _searched(entry: Mapping[str, Any]) -> Iterator[str]:
    account = entry.get("creditorAccount") or {}
    for text in (
        entry.get("creditorName"),
        entry.get("endToEndIdentification"),
        entry.get("remittanceInformationUnstructured"),
        account.get("iban"),
        account.get("bban"),
        (entry.get("instructedAmount") or {}).get("amount"),
    ):
        if isinstance(text, str):
            yield text


def _amount(words: str) -> str:
    """A typed amount in the form that documents have: no spaces, a decimal point."""
    return words.replace(" ", "").replace("\u00a0", "").replace(",", ".")


def _row(screen: Screen, payment: Payment) -> dict[str, Any]:
    # The entries of a bulk are counted and not read: the list may have hundreds of bulks with hundreds of entries.
    entries = len(payment["entries"]) if "entries" in payment else 1
    if entries == 1:
        [line] = payment_views.summary(screen.bank, payment)
        to, amount = line["creditorName"], (line["amount"], line["currency"])
    else:
        to, amount = f"{entries} payments", (payment["amount"], payment["currency"])
    return {**payment, "kind": products.of(payment).words, "to": to, "shown_amount": amount}


def asked_for(screen: Screen, sca: Sca) -> dict[str, Any] | None:
    """What an SCA approves, in short: `to` and, for a payment, its `amount`; None if it approves no payment."""
    target = sca.get("target", "")
    if (payment := screen.bank.documents.get(PAYMENT, target)) is not None:
        row = _row(screen, payment)
        return {"to": row["to"], "amount": row["shown_amount"]}
    if (members := screen.bank.documents.get(BASKET, target)) is not None:
        count = len(members["payments"])
        return {"to": f"{count} payment{'s' if count > 1 else ''}", "amount": None}
    return None


def _timeline(payment: Payment) -> list[dict[str, Any]]:
    """The statuses so far, each with its time and the duration since the previous one."""
    shown = []
    before: datetime | None = None
    for entry in payment["history"]:
        at = moment(entry["at"])
        waited = (at - before).total_seconds() if before is not None else None
        shown.append({**entry, "meaning": MEANINGS.get(entry["status"], UNKNOWN), "after": _span(waited)})
        before = at
    return shown


def _span(seconds: float | None) -> str:
    """A duration in words: `at once`, `+3 s`, `+2 min`, `+5 h` or `+4 days`; empty for None."""
    if seconds is None:
        return ""
    if seconds < 0.1:
        return "at once"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"+{_three_digits(seconds / size)} {unit}"
    return f"+{_three_digits(seconds)} s"


def _three_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def one(screen: Screen) -> Response:
    bank = screen.bank
    payment = bank.documents.get(PAYMENT, screen.params["id"])
    if payment is None:
        return screen.missing("payment")
    flow = flows.of(payment)
    status = payment["status"]
    reachable = [end for end in transitions.STATUSES if flow.path(status, end)]
    scas = bank.documents.find(SCA, target=payment["id"], newest_first=True)
    if "basketId" in payment:
        scas += bank.documents.find(SCA, target=payment["basketId"], newest_first=True)
    return screen.page(
        "payment",
        payment=_row(screen, payment),
        timeline=_timeline(payment),
        ended=status in transitions.FINAL,
        meaning=MEANINGS.get(status, UNKNOWN),
        meanings=MEANINGS,
        reachable=reachable,
        lines=payment_views.summary(bank, payment),
        initiation=json.dumps(payment["initiation"], indent=2, ensure_ascii=False),
        scas=scas[:5],
        notifications=[notified(screen, row) for row in notifications.listing(bank, target=payment["id"], limit=20)],
        exchanges=[e.summary() for e in screen.service.log.entries(payment_id=payment["id"], limit=20)],
    )


def advance(screen: Screen) -> Response:
    to = screen.form.get("to")
    screen.ask("POST", f"payments/{quote_segment(screen.params['id'])}/advance", {"to": to} if to else {})
    return screen.go("payments", screen.params["id"], done="failed" if to == "RJCT" else "advanced")


def basket_listing(screen: Screen) -> Response:
    return screen.page("baskets", baskets=baskets.listing(screen.bank, limit=MOST))


def basket(screen: Screen) -> Response:
    bank = screen.bank
    document = bank.documents.get(BASKET, screen.params["id"])
    if document is None:
        return screen.missing("basket")
    members = [bank.documents.get(PAYMENT, payment_id) for payment_id in document["payments"]]
    return screen.page(
        "basket",
        basket=document,
        basket_status=baskets.state(bank, document)[0],
        payments=[_row(screen, payment) for payment in members if payment is not None],
        scas=bank.documents.find(SCA, target=document["id"], newest_first=True)[:5],
    )


def notification_listing(screen: Screen) -> Response:
    """List notifications with every delivery attempt, page by page, newest first."""
    bank = screen.bank
    part = screen.part(bank.documents.count(NOTIFICATION))
    shown = bank.documents.range(NOTIFICATION, "created", reverse=True, offset=part.offset, limit=part.size)
    return screen.page(
        "notifications",
        notifications=[notified(screen, notifications.view(one)) for one in shown],
        on=bank.settings.notifications,
        part=part,
    )


def notified(screen: Screen, row: dict[str, Any]) -> dict[str, Any]:
    """A notification (`notifications.view`) with the kind of its resource, the page of that, and the statuses in it."""
    about = next((kind for kind in ("payment", "basket", "consent") if f"{kind}Id" in row["body"]), "")
    page = screen.at(f"{about}s", row["target"]) if about in ("payment", "basket") else None
    statuses = [value for name, value in row["body"].items() if name.endswith("Status")]
    return {**row, "about": about, "page": page, "statuses": statuses}
