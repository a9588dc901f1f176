"""The setting `feed`: in which ways an account feed drifts under a TPP's hands (CONTRACT 14).

The forms of its entries stand here, what each does in `accounts/feed.py`. Settings import this module when a feed is
set, so that a start without one does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import ConfigDict, Discriminator, Field, Tag

from emulator.bank.conditions import Condition, Members, compiled, fits
from emulator.bank.operators import Single
from emulator.bank.problems import Problem
from emulator.bank.validation import Maybe, Model, Reads, Text, Unfit, json_schema, validate_as

MOST_EFFECTS = 50
MOST_DAYS = 60
MOST_HOURS = 2160  # the 90 days that a list goes back

_MATCHES = ("feed match", "amount match", "account match")

Member = Maybe[Single]


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
    """Which transactions are meant, as they are booked; `account` is an id, IBAN, BBAN or masked card number."""

    model_config = ConfigDict(title="feed match")

    account: Member = None
    status: Member = None
    transaction_id: Member = None
    booking_date: Member = None
    value_date: Member = None
    transaction_amount: Maybe[_AmountMatch] = None
    creditor_name: Member = None
    creditor_account: Maybe[_AccountMatch] = None
    debtor_name: Member = None
    debtor_account: Maybe[_AccountMatch] = None
    end_to_end_id: Member = None
    remittance_information_unstructured: Member = None
    bank_transaction_code: Member = None
    proprietary_bank_transaction_code: Member = None
    purpose_code: Member = None
    card_transaction_id: Member = None
    transaction_date: Member = None
    original_amount: Maybe[_AmountMatch] = None
    merchant_category_code: Member = None
    transaction_details: Member = None

    @cached_property
    def _account(self) -> Condition | None:
        return compiled(self.account) if "account" in self.model_fields_set else None

    @cached_property
    def _condition(self) -> Condition:
        return _members(self)

    def fits(self, members: Mapping[str, Any], accounts: Sequence[str]) -> bool:
        """Whether a transaction with these members is meant; `accounts`: the names that its account has."""
        if self._account is not None and not any(fits(self._account, name) for name in accounts):
            return False
        return fits(self._condition, members)


def _members(stated: Model) -> Condition:
    pairs = []
    for name in sorted(stated.model_fields_set - {"account"}):
        value = getattr(stated, name)
        wanted = _members(value) if isinstance(value, _AmountMatch | _AccountMatch) else compiled(value)
        pairs.append((type(stated).model_fields[name].alias or name, wanted))
    return Members(tuple(pairs))


class FeedEffect(Model):
    """One way in which a feed drifts: on entries that are booked or pending (`shelf`) and fit `when`.

    `chance`: for which of them, drawn for each from the bank's seed once and for all.
    """

    shelf: ClassVar[str]
    effect: str
    when: Maybe[FeedMatch] = None
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0


_Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
_Hours = Annotated[int, Field(ge=1, le=MOST_HOURS)]


class NewId(FeedEffect):
    """A pending item comes back booked under another id."""

    shelf = "pending"
    effect: Literal["new-id"]


class Amend(FeedEffect):
    """Text and amount change between pending and booked."""

    shelf = "pending"
    effect: Literal["amend"]
    percent: Annotated[int, Field(ge=-99, le=100)] = 10
    text: Annotated[Text, Field(max_length=140)] = "Reservasjon"


class ShiftBookingDate(FeedEffect):
    """bookingDate is the first of the next month, while valueDate stays true."""

    shelf = "booked"
    effect: Literal["shift-booking-date"]


class Late(FeedEffect):
    """A booked item appears so many days late, with its old date."""

    shelf = "booked"
    effect: Literal["late"]
    days: _Days = 3


class Duplicate(FeedEffect):
    """A booked item is shown twice for so many hours."""

    shelf = "booked"
    effect: Literal["duplicate"]
    hours: _Hours = 24


class RenumberDay(FeedEffect):
    """So many days after a booking date all that is booked on it gets other ids; `chance` is drawn per date."""

    shelf = "booked"
    effect: Literal["renumber-day"]
    days: _Days = 1


class Vanish(FeedEffect):
    """A pending item goes away so many hours after it came, before it is booked."""

    shelf = "pending"
    effect: Literal["vanish"]
    hours: _Hours = 12


# In the order in which they act: what is late is shown twice from when it appears.
_FORMS: Mapping[str, type[FeedEffect]] = {
    "new-id": NewId,
    "amend": Amend,
    "shift-booking-date": ShiftBookingDate,
    "late": Late,
    "duplicate": Duplicate,
    "renumber-day": RenumberDay,
    "vanish": Vanish,
}
EFFECTS = tuple(_FORMS)


def _which(value: Any) -> str:
    effect = value.get("effect") if isinstance(value, dict) else getattr(value, "effect", None)
    return f"({effect})" if isinstance(effect, str) and effect in _FORMS else "(none)"


def _no_effect(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unfit("a mapping")
    if "effect" not in value:
        raise Unfit(text=f"The member effect is missing: one of {', '.join(EFFECTS)}.")
    effect = value["effect"]
    if not isinstance(effect, str):
        raise Unfit(f"one of {', '.join(EFFECTS)}", path=("effect",), value=effect)
    raise Unfit(text="There is no effect", path=("effect",), known=EFFECTS, value=effect)


AnyEffect = Annotated[
    Annotated[NewId, Tag("(new-id)")]
    | Annotated[Amend, Tag("(amend)")]
    | Annotated[ShiftBookingDate, Tag("(shift-booking-date)")]
    | Annotated[Late, Tag("(late)")]
    | Annotated[Duplicate, Tag("(duplicate)")]
    | Annotated[RenumberDay, Tag("(renumber-day)")]
    | Annotated[Vanish, Tag("(vanish)")]
    | Annotated[Any, Reads(_no_effect, {"not": {}}), Tag("(none)")],
    Discriminator(_which),
]
_Effects = Annotated[list[AnyEffect], Field(max_length=MOST_EFFECTS)]


def problems(value: Any) -> list[Problem]:
    """What is wrong with a value of the setting, each problem with its path below `feed`."""
    return validate_as(_Effects, value)[1]


def effects(stated: Sequence[Mapping[str, Any]]) -> Sequence[FeedEffect]:
    """The effects that a value of the setting states, in the order in which they act; it has been checked."""
    return _read(orjson.dumps(stated))


@lru_cache(maxsize=64)
def _read(text: bytes) -> Sequence[FeedEffect]:
    checked, _ = validate_as(_Effects, orjson.loads(text))
    acting = list(_FORMS)
    return tuple(sorted(checked, key=lambda effect: acting.index(effect.effect)))


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of the setting, without references, so that it can stand anywhere; not to be changed."""
    whole = json_schema(_Effects)
    shared = whole.pop("$defs")
    forms = [_inlined(shared[form.__name__], shared) for form in _FORMS.values()]
    when = forms[0]["properties"]["when"]
    for form in forms:
        form["properties"]["when"] = {}
    return {**whole, "items": {"type": "object", "properties": {"when": when}, "oneOf": forms}}


def _inlined(part: Any, shared: Mapping[str, Any]) -> Any:
    """A schema with what it refers to in its place; members of one form stand together, by a pattern of their names."""
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
