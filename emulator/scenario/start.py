"""`start` of a scenario: read and checked here, brought about by `staging`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from emulator.bank import fixtures
from emulator.bank.settings import TAKES, mistakes
from emulator.scenario.model import CURRENT, SNAPSHOT, Change, Start
from emulator.scenario.part import Part

if TYPE_CHECKING:
    from pydantic import ValidationError

    from emulator.bank.fixtures.definitions import Additions

MEMBERS = ("from", "clock", "settings", "add", "change")
ACCOUNT_CHANGES = ("balance", "creditLine", "paymentsRemoved", "demandsKid", "name")
AGREEMENT_CHANGES = ("signatures", "persons")
LONGEST_NAME, LONGEST_ACCOUNT_NAME, LONGEST_PERSON = 100, 70, 11
AMOUNTS = {
    "balance": re.compile(r"-?[0-9]{1,13}(\.[0-9]{1,5})?"),
    "creditLine": re.compile(r"[0-9]{1,13}(\.[0-9]{1,5})?"),
}


def read(part: Part) -> Start:
    """The start that a file states; mistakes are noted."""
    members = part.members(MEMBERS)
    base, clock, settings, add, changes = CURRENT, None, {}, None, []
    if "from" in members:
        base = _base(members["from"])
    if "clock" in members:
        clock = members["clock"].moment()
    if "settings" in members:
        settings = _settings(members["settings"])
    if "add" in members:
        add = _additions(members["add"])
    if "change" in members:
        changes = [change for item in members["change"].items() if (change := _change(item)) is not None]
    return Start(base, clock, settings, add, tuple(changes))


def _base(part: Part) -> str:
    text = part.text(longest=200)
    if text is None:
        return CURRENT
    if text.startswith(SNAPSHOT):
        if len(text) == len(SNAPSHOT):
            part.wrong("Expected the name of a snapshot after snapshot:.")
        return text
    known = (*fixtures.names(), CURRENT)
    if text not in known:
        part.unknown(text, known, "There is no fixture")
    return text


def _settings(part: Part) -> dict[str, Any]:
    settings = {name: member.value for name, member in part.members(TAKES).items()}
    for mistake in mistakes(settings):
        part.inner(mistake.path or "", None).wrong(mistake.text)
    return settings


def _additions(part: Part) -> Additions | None:
    from pydantic import ValidationError

    from emulator.bank.fixtures.definitions import Additions

    try:
        return Additions.model_validate(part.value)
    except ValidationError as error:
        _note(part, error)
        return None


def _note(part: Part, error: ValidationError) -> None:
    """The mistakes that pydantic found, in our words."""
    from emulator.bank.fixtures.definition_values import expected, standing
    from emulator.bank.fixtures.definitions import members_at

    for detail in error.errors(include_url=False):
        path = standing(detail["loc"], part.value)
        place = Part(detail["input"], (*part.path, *path), part.report)
        if detail["type"] == "extra_forbidden":
            place.unknown(path[-1], members_at(path[:-1]), "There is no member")
        elif detail["type"] == "missing":
            Part(None, (*part.path, *path[:-1]), part.report).wrong(f"The member {path[-1]} is missing.")
        elif detail["type"] == "string_type":
            place.text()
        elif (what := expected(detail)) is not None:
            place.expected(what)
        else:
            text = detail["msg"].removeprefix("Value error, ")
            place.wrong(f"{text[:1].upper()}{text[1:]}.")


def _change(part: Part) -> Change | None:
    found = part.mapping()
    kinds = [kind for kind in ("account", "agreement") if kind in found]
    if len(kinds) != 1:
        if isinstance(part.value, dict):
            part.wrong("A change names an account or an agreement.")
        return None
    kind = kinds[0]
    allowed = ACCOUNT_CHANGES if kind == "account" else AGREEMENT_CHANGES
    members = part.members((kind, *allowed))
    if len(members) == 1:
        part.wrong(f"What is to change is missing: one of {', '.join(allowed)}.")
    name = members[kind].text(longest=LONGEST_NAME)
    values = {other: _value(other, member) for other, member in members.items() if other != kind}
    return None if name is None else Change(kind, name, values)


def _value(name: str, part: Part) -> Any:
    if name in AMOUNTS:
        text = part.text()
        if text is not None and not AMOUNTS[name].fullmatch(text):
            part.expected('an amount in quotes, such as "100.00"')
        return text
    if name in ("paymentsRemoved", "demandsKid"):
        return part.boolean()
    if name == "signatures":
        return part.whole(1, 2)
    if name == "persons":
        return [text for item in part.items(least=1) if (text := item.text(longest=LONGEST_PERSON)) is not None]
    return part.text(longest=LONGEST_ACCOUNT_NAME)
