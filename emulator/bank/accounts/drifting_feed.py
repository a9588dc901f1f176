"""The account feed as TPPs see it when the setting `feed` makes it drift (accounts.md#feeds-that-drift).

A view: nothing of it is stored, and neither entries nor ledger nor balances change. Lists and details show entries
through the effects: each effect turns one entry into the entries that are shown in its place, with the time at which
each is shown. The result depends only on the entry, the bank's seed and bank time, so that all reads at the same
moment agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import singledispatchmethod
from typing import Any

import orjson

from emulator.bank import feed
from emulator.bank.bank import Bank
from emulator.bank.clock import OSLO, later, stamp
from emulator.bank.feed import FeedEffect
from emulator.bank.ids import fixed_id
from emulator.bank.kinds import ACCOUNT, CARD, TRANSACTION, EntryKind
from emulator.bank.money import plain, quantize

SHELVES = ("pending", "booked")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry as it is shown from `since` until `until` (stamps of bank time, None: no bound), after these effects."""

    entry: Entry
    since: str | None = None
    until: str | None = None
    effects: tuple[str, ...] = ()

    def at(self, now: str) -> bool:
        """Whether the entry is shown at this moment of bank time."""
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)


class DriftingFeed:
    """The entries of one account or card as TPPs see them."""

    def __init__(self, bank: Bank, kind: EntryKind, holder_id: str) -> None:
        self._bank = bank
        self._kind = kind
        self._holder_id = holder_id
        self._names = (holder_id, *_numbers(bank, kind, holder_id))
        self._effects = feed.effects(bank.settings.drift)

    def trace(self, shelf: str) -> Iterator[tuple[Entry, list[Shown]]]:
        """Each entry on a shelf (`booked` or `pending`), newest first, with all forms in which it is ever shown."""
        group = f"{self._holder_id}|{shelf}"
        for text in self._bank.documents.range_texts(self._kind, "shelf", group=group, reverse=True):
            entry = orjson.loads(text)
            yield entry, self._shown(entry)

    def listed(self, shelf: str) -> list[Entry]:
        """The entries of a shelf as a list shows them now, newest first."""
        now = self._bank.clock.stamp()
        entries = [one.entry for _, shown in self.trace(shelf) for one in shown if one.at(now)]
        return sorted(entries, key=lambda entry: str(entry["order"]), reverse=True)

    def find(self, shown_id: str) -> Entry | None:
        """The entry that is shown under this id now; a card's entry also by its cardTransactionId."""
        for shelf in SHELVES:
            for entry in self.listed(shelf):
                if "unidentified" not in entry and shown_id in (entry["id"], entry.get("cardTransactionId")):
                    return entry
        return None

    def _shown(self, entry: Entry) -> list[Shown]:
        shown = [Shown(entry)]
        for effect in self._effects:
            if self._concerns(effect, entry):
                shown = [
                    replace(changed, effects=(*changed.effects, effect.effect))
                    for one in shown
                    for changed in self._through(effect, one)
                ]
        return shown

    def _concerns(self, effect: FeedEffect, entry: Entry) -> bool:
        if effect.shelf != entry["status"]:
            return False
        drawn_for = entry["id"]
        if isinstance(effect, feed.RenumberDay):
            drawn_for = f"{self._holder_id}|{entry['bookingDate']}"
        if effect.chance < 1 and self._number(effect.effect, drawn_for) >= effect.chance:
            return False
        return effect.when is None or effect.when.fits(_members(entry), self._names)

    def _number(self, *about: str) -> float:
        """A number from 0 to 1, derived from these texts and the bank's seed."""
        text = "|".join((str(self._bank.ids.seed), *about))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64

    def _renamed(self, one: Shown, purpose: str) -> Entry:
        """The entry under another id of the same form; a second renaming effect gives it yet another id."""
        entry = one.entry
        text = f"{self._bank.ids.seed}|{purpose}|{len(one.effects)}|{entry['id']}"
        renamed = {**entry, "id": fixed_id(text, opaque=self._bank.ids.form == "opaque")}
        if "cardTransactionId" in entry:
            renamed["cardTransactionId"] = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return renamed

    @singledispatchmethod
    def _through(self, effect: FeedEffect, one: Shown) -> list[Shown]:
        """The entries that an effect shows in place of one that it concerns."""
        raise TypeError(f"{effect.effect} changes nothing of {one.entry['id']}")

    @_through.register
    def _(self, effect: feed.NewId, one: Shown) -> list[Shown]:
        return [replace(one, entry=self._renamed(one, effect.effect))]

    @_through.register
    def _(self, effect: feed.Amend, one: Shown) -> list[Shown]:
        amended = {name: value for name, value in one.entry.items() if name != "remittanceInformationStructuredArray"}
        if self._kind is TRANSACTION:
            amended |= _times(amended, effect.percent)
            amended["remittanceInformationUnstructured"] = effect.text
            amended["remittanceInformationUnstructuredArray"] = [effect.text]
        else:
            for name in ("transactionAmount", "originalAmount"):
                amended[name] = _times(amended[name], effect.percent)
            amended["transactionDetails"] = effect.text
        return [replace(one, entry=amended)]

    @_through.register
    def _(self, _effect: feed.ShiftBookingDate, one: Shown) -> list[Shown]:
        first = _days_after(one.entry["bookingDate"][:8] + "01", 31).replace(day=1).isoformat()
        return [replace(one, entry={**one.entry, "bookingDate": first, "order": f"{first}|{_came(one.entry)}"})]

    @_through.register
    def _(self, effect: feed.Late, one: Shown) -> list[Shown]:
        return [replace(one, since=_after(one, timedelta(days=effect.days)))]

    @_through.register
    def _(self, effect: feed.Duplicate, one: Shown) -> list[Shown]:
        until = _after(one, timedelta(hours=effect.hours))
        return [one, replace(one, entry=self._renamed(one, effect.effect), until=until)]

    @_through.register
    def _(self, effect: feed.RenumberDay, one: Shown) -> list[Shown]:
        day = _days_after(one.entry["bookingDate"], effect.days)
        renumbered_at = stamp(datetime.combine(day, time(0), OSLO))
        return [
            replace(one, until=min(one.until or renumbered_at, renumbered_at)),
            replace(one, entry=self._renamed(one, effect.effect), since=max(one.since or "", renumbered_at)),
        ]

    @_through.register
    def _(self, _effect: feed.WithoutId, one: Shown) -> list[Shown]:
        return [replace(one, entry={**one.entry, "unidentified": True})]

    @_through.register
    def _(self, effect: feed.Vanish, one: Shown) -> list[Shown]:
        return [replace(one, until=_after(one, timedelta(hours=effect.hours)))]


def _numbers(bank: Bank, kind: EntryKind, holder_id: str) -> tuple[str, ...]:
    """The numbers of an account or card."""
    if kind is TRANSACTION:
        account = bank.documents.get(ACCOUNT, holder_id)
        return () if account is None else (account["iban"], account["bban"])
    card = bank.documents.get(CARD, holder_id)
    return () if card is None else (card["maskedPan"],)


def _members(entry: Entry) -> Mapping[str, Any]:
    """The members of an entry, by their names in lists."""
    if "cardId" in entry:
        return entry
    amount = {"amount": entry["amount"], "currency": entry["currency"]}
    return {**entry, "transactionId": entry["id"], "transactionAmount": amount}


def _times(amount: Entry, percent: int) -> dict[str, Any]:
    """The amount raised by `percent`, rounded to the currency's minor units; unchanged if that would be zero."""
    currency = amount["currency"]
    changed = quantize(Decimal(amount["amount"]) * (100 + percent) / 100, currency)
    return {"amount": plain(changed, currency) if changed else amount["amount"], "currency": currency}


def _came(entry: Entry) -> str:
    """When an entry was created: became pending, or was booked."""
    return str(entry["order"]).partition("|")[2]


def _days_after(day: str, days: int) -> date:
    """A date that many days later, at most the last one: earlier versions took sandbox data with any date."""
    return min(date.fromisoformat(day), date.max - timedelta(days=days)) + timedelta(days=days)


def _after(one: Shown, by: timedelta) -> str:
    """The moment `by` after an entry is first shown."""
    return later(one.since or _came(one.entry), by)
