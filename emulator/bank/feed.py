"""The setting `feed`: how an account feed changes between a TPP's reads (accounts.md#feeds-that-drift).

What drifts is a view: nothing of it is stored, and neither entries nor ledger nor balances change. Each effect turns
one entry into the entries that are shown in its place, with the time at which each is shown. The result depends only on
the entry, the bank's seed and bank time, so that all reads at the same moment agree (`DriftingFeed` in
`accounts/transactions.py`). `settings` imports this only when a feed is set, so that a start without one does not load
pydantic.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import orjson
from pydantic import ConfigDict, Field, model_validator

from emulator.bank.clock import OSLO, later, stamp
from emulator.bank.conditions import ABSENT, Matcher, Single, fits, matcher, meets
from emulator.bank.ids import Ids, fixed_id
from emulator.bank.money import plain, quantize
from emulator.bank.problems import Problem
from emulator.bank.validation import Mismatch, Model, Omittable, Text, json_schema, refuse, union, validate_as

MOST_EFFECTS = 50
MOST_DAYS = 60
MOST_HOURS = 2160  # the 90 days that a list goes back

_MATCHES = ("feed match", "amount match", "account match")

Member = Omittable[Single]


class _AmountMatch(Model):
    model_config = ConfigDict(title="amount match")

    amount: Member = None
    currency: Member = None


class _AccountMatch(Model):
    model_config = ConfigDict(title="account match")

    iban: Member = None
    bban: Member = None
    currency: Member = None


class FeedMatch(Model):
    """Selects transactions, by their stored members; `account` is an id, IBAN, BBAN or masked card number."""

    model_config = ConfigDict(title="feed match")

    account: Member = None
    status: Member = None
    transaction_id: Member = None
    booking_date: Member = None
    value_date: Member = None
    transaction_amount: Omittable[_AmountMatch] = None
    creditor_name: Member = None
    creditor_account: Omittable[_AccountMatch] = None
    debtor_name: Member = None
    debtor_account: Omittable[_AccountMatch] = None
    end_to_end_id: Member = None
    remittance_information_unstructured: Member = None
    bank_transaction_code: Member = None
    proprietary_bank_transaction_code: Member = None
    purpose_code: Member = None
    card_transaction_id: Member = None
    transaction_date: Member = None
    original_amount: Omittable[_AmountMatch] = None
    merchant_category_code: Member = None
    transaction_details: Member = None

    @cached_property
    def _test(self) -> Matcher:
        """The test of an entry, by the names that its members have there."""
        return matcher(_members(self), strict=False)

    def fits(self, entry: Entry, accounts: Sequence[str]) -> bool:
        """Whether it selects an entry; `accounts`: the id and numbers of its account or card."""
        if "account" in self.model_fields_set and not meets(self.account, accounts):
            return False
        if "cardId" not in entry:  # by the names in lists
            amount = {"amount": entry["amount"], "currency": entry["currency"]}
            entry = {**entry, "transactionId": entry["id"], "transactionAmount": amount}
        return self._test(entry)


def _members(stated: Model) -> dict[str, Any]:
    members = {}
    for name in stated.model_fields_set - {"account"}:
        value = getattr(stated, name)
        inner = _members(value) if isinstance(value, _AmountMatch | _AccountMatch) else value
        members[type(stated).model_fields[name].alias or name] = inner
    return members


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

    def after(self, by: timedelta) -> str:
        """The moment `by` after the entry is first shown."""
        return later(self.since or _came(self.entry), by)


def _came(entry: Entry) -> str:
    """When an entry was created: became pending, or was booked. `order` is `date|moment`."""
    return str(entry["order"]).partition("|")[2]


def _days_after(day: str, days: int) -> date:
    return date.fromisoformat(day) + timedelta(days=days)


def _times(amount: Entry, percent: int) -> dict[str, Any]:
    """The amount raised by `percent`, rounded to the currency's minor units; unchanged if that would be zero."""
    currency = amount["currency"]
    changed = quantize(Decimal(amount["amount"]) * (100 + percent) / 100, currency)
    return {"amount": plain(changed, currency) if changed else amount["amount"], "currency": currency}


class FeedEffect(Model):
    """One way in which a feed drifts. It acts on the entries of one status that fit `when`.

    The booked entries are true: where pending and booked differ, the pending one is shown otherwise.

    `chance` is the part of them that it acts on; the choice depends on the entry and the bank's seed only.
    """

    status: ClassVar[str]
    effect: str
    when: Omittable[FeedMatch] = None
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _can_match(self) -> Self:
        """Refuse a condition that none of the entries can meet on which it acts: nobody would notice the mistake."""
        when = self.when or FeedMatch.model_validate({})
        if "status" in when.model_fields_set and not fits(when.status, self.status):
            text = f"{self.effect} acts on entries with the status {self.status}."
            refuse(Mismatch(text=text, path=("when", "status")))
        dated = "booking_date" in when.model_fields_set and self.status == "pending"
        if dated and not fits(when.booking_date, ABSENT):
            refuse(Mismatch(text="A pending entry has no bookingDate.", path=("when", "bookingDate")))
        return self

    @abstractmethod
    def through(self, one: Shown, ids: Ids) -> list[Shown]:
        """The entries that are shown in place of one on which it acts."""

    def concerns(self, entry: Entry, accounts: Sequence[str], ids: Ids) -> bool:
        """Whether it acts on an entry; `accounts`: the id and numbers of its account or card."""
        if self.status != entry["status"]:
            return False
        if self.chance < 1:
            text = f"{ids.seed}|{self.effect}|{self.drawn_for(entry, accounts[0])}"
            if int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64 >= self.chance:
                return False
        return self.when is None or self.when.fits(entry, accounts)

    def drawn_for(self, entry: Entry, _holder: str) -> str:
        """What `chance` is drawn for; all that has the same name has the same fate."""
        return str(entry["id"])

    def renamed(self, one: Shown, ids: Ids) -> Entry:
        """The entry under another id of the same form; a second renaming effect gives it yet another id."""
        text = f"{ids.seed}|{self.effect}|{len(one.effects)}|{one.entry['id']}"
        entry = {**one.entry, "id": fixed_id(text, opaque=ids.form == "opaque")}
        if "cardTransactionId" in entry:
            entry["cardTransactionId"] = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return entry


_Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
_Hours = Annotated[int, Field(ge=1, le=MOST_HOURS)]


class NewId(FeedEffect):
    """A pending entry is booked under another id."""

    status = "pending"
    effect: Literal["new-id"]

    def through(self, one: Shown, ids: Ids) -> list[Shown]:
        return [replace(one, entry=self.renamed(one, ids))]


class Amend(FeedEffect):
    """Text and amount change between pending and booked."""

    status = "pending"
    effect: Literal["amend"]
    percent: Annotated[int, Field(ge=-99, le=100)] = 10
    text: Annotated[Text, Field(max_length=140)] = "Reservasjon"

    def through(self, one: Shown, _ids: Ids) -> list[Shown]:
        amended = {name: value for name, value in one.entry.items() if name != "remittanceInformationStructuredArray"}
        if "cardId" in amended:
            for name in ("transactionAmount", "originalAmount"):
                amended[name] = _times(amended[name], self.percent)
            amended["transactionDetails"] = self.text
        else:
            amended |= _times(amended, self.percent)
            amended["remittanceInformationUnstructured"] = self.text
            amended["remittanceInformationUnstructuredArray"] = [self.text]
        return [replace(one, entry=amended)]


class ShiftBookingDate(FeedEffect):
    """bookingDate is the first of the next month; valueDate stays correct."""

    status = "booked"
    effect: Literal["shift-booking-date"]

    def through(self, one: Shown, _ids: Ids) -> list[Shown]:
        first = _days_after(one.entry["bookingDate"][:8] + "01", 31).replace(day=1).isoformat()
        return [replace(one, entry={**one.entry, "bookingDate": first, "order": f"{first}|{_came(one.entry)}"})]


class Late(FeedEffect):
    """A booked entry appears `days` late, with its original date."""

    status = "booked"
    effect: Literal["late"]
    days: _Days = 3

    def through(self, one: Shown, _ids: Ids) -> list[Shown]:
        return [replace(one, since=one.after(timedelta(days=self.days)))]


class Duplicate(FeedEffect):
    """A booked entry is shown twice for `hours`."""

    status = "booked"
    effect: Literal["duplicate"]
    hours: _Hours = 24

    def through(self, one: Shown, ids: Ids) -> list[Shown]:
        until = one.after(timedelta(hours=self.hours))
        return [one, replace(one, entry=self.renamed(one, ids), until=until)]


class WithoutId(FeedEffect):
    """A booked entry has no id, so its details cannot be read."""

    status = "booked"
    effect: Literal["without-id"]

    def through(self, one: Shown, _ids: Ids) -> list[Shown]:
        return [replace(one, entry={**one.entry, "unidentified": True})]


class RenumberDay(FeedEffect):
    """`days` after a booking date, all entries booked on it get other ids; `chance` applies per date."""

    status = "booked"
    effect: Literal["renumber-day"]
    days: _Days = 1

    def through(self, one: Shown, ids: Ids) -> list[Shown]:
        day = _days_after(one.entry["bookingDate"], self.days)
        renumbered_at = stamp(datetime.combine(day, time(0), OSLO))
        return [
            replace(one, until=min(one.until or renumbered_at, renumbered_at)),
            replace(one, entry=self.renamed(one, ids), since=max(one.since or "", renumbered_at)),
        ]

    def drawn_for(self, entry: Entry, holder: str) -> str:
        return f"{holder}|{entry['bookingDate']}"


class Vanish(FeedEffect):
    """A pending entry disappears `hours` after it appeared, before it is booked."""

    status = "pending"
    effect: Literal["vanish"]
    hours: _Hours = 12

    def through(self, one: Shown, _ids: Ids) -> list[Shown]:
        return [replace(one, until=one.after(timedelta(hours=self.hours)))]


# In the order in which they act: a late entry is shown twice from the moment when it appears, and what has lost its id
# gets no other.
_FORMS: Mapping[str, type[FeedEffect]] = {
    "new-id": NewId,
    "amend": Amend,
    "shift-booking-date": ShiftBookingDate,
    "late": Late,
    "duplicate": Duplicate,
    "renumber-day": RenumberDay,
    "vanish": Vanish,
    "without-id": WithoutId,
}
EFFECTS = tuple(_FORMS)


def _which(value: Any) -> str:
    return str(value.get("effect") if isinstance(value, dict) else getattr(value, "effect", None))


def _no_effect(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Mismatch("a mapping")
    if "effect" not in value:
        raise Mismatch(text=f"The member effect is missing: one of {', '.join(EFFECTS)}.")
    effect = value["effect"]
    if not isinstance(effect, str):
        raise Mismatch(f"one of {', '.join(EFFECTS)}", path=("effect",), value=effect)
    raise Mismatch(text="There is no effect", path=("effect",), known=EFFECTS, value=effect)


if TYPE_CHECKING:
    AnyEffect = FeedEffect
else:
    AnyEffect = union(_FORMS, _which, refused=_no_effect)
_Effects = Annotated[list[AnyEffect], Field(max_length=MOST_EFFECTS)]


def problems(value: Any) -> list[Problem]:
    """The problems of a value of the setting, each with its path below `feed`."""
    return validate_as(_Effects, value)[1]


def effects(stated: Sequence[Mapping[str, Any]]) -> Sequence[FeedEffect]:
    """The effects of a valid value of the setting, in the order in which they act."""
    return _read(orjson.dumps(stated))


@lru_cache(maxsize=64)
def _read(text: bytes) -> Sequence[FeedEffect]:
    # Those that a version stored which took more are left out, so that the bank still starts.
    read = (validate_as(AnyEffect, stated)[0] for stated in orjson.loads(text))
    acting = list(_FORMS)
    return tuple(sorted((one for one in read if one is not None), key=lambda effect: acting.index(effect.effect)))


def shown(entry: Entry, effects: Sequence[FeedEffect], accounts: Sequence[str], ids: Ids) -> list[Shown]:
    """All forms in which an entry is ever shown; `accounts`: the id and numbers of its account or card."""
    forms = [Shown(entry)]
    for effect in effects:
        if effect.concerns(entry, accounts, ids):
            forms = [
                replace(changed, effects=(*changed.effects, effect.effect))
                for one in forms
                for changed in effect.through(one, ids)
            ]
    return forms


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of the setting, without references, so that it can be part of any schema; do not change it."""
    root = json_schema(_Effects)
    shared = root.pop("$defs")
    forms = [_inlined(shared[form.__name__], shared) for form in _FORMS.values()]
    when = forms[0]["properties"]["when"]  # large, and the same in all: once
    for form in forms:
        form["properties"]["when"] = {}
    return {**root, "items": {"type": "object", "properties": {"when": when}, "oneOf": forms}}


def _inlined(part: Any, shared: Mapping[str, Any]) -> Any:
    """A schema with its references replaced by what they refer to.

    Members with the same schema are written once, under a pattern of their names.
    """
    if isinstance(part, list):
        return [_inlined(inner, shared) for inner in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(shared[part["$ref"].rpartition("/")[2]], shared)
    schema = {name: _inlined(inner, shared) for name, inner in part.items() if name != "discriminator"}
    if part.get("title") not in _MATCHES:
        return schema
    groups: dict[bytes, list[str]] = {}
    for name, inner in schema.pop("properties").items():
        groups.setdefault(orjson.dumps(inner), []).append(name)
    return {
        **schema,
        "patternProperties": {f"^({'|'.join(names)})$": orjson.loads(inner) for inner, names in groups.items()},
    }
