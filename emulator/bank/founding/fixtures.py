"""Fixtures: the states that a bank starts from, and goes back to by reset and initialize (CONTRACT 4, 8, 9.1).

A fixture is YAML in the format of `definitions`; its dates are offsets from bank time at load.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.bank.bank import Bank
from emulator.bank.clock import Mode, oslo_date, real_now
from emulator.bank.founding.documents import Founding
from emulator.bank.founding.entries import DefinitionError
from emulator.bank.founding.strict_yaml import MAX_BYTES, Parsed, YamlError, read
from emulator.bank.ids import fixed_id
from emulator.bank.kinds import KINDS
from emulator.packaged import folder
from emulator.store import Document, Image

if TYPE_CHECKING:
    from pydantic import ValidationError

    from emulator.bank.founding.definitions import Additions, FixtureFile

Documents = dict[str, list[Document]]

# What initialize leaves as it is: clock, settings, rules and scenario stand in `meta` (CONTRACT 8, 13).
KEPT_BY_INITIALIZE = ("meta", "contact")
KEPT_IMAGES = 16
LISTED = ("customer", "account", "card", "agreement")  # lists tell by `created` what the fixture did not have


class FixtureError(Exception):
    """A fixture cannot be used: the file, the line (None where it has none) and what was expected."""

    def __init__(self, file: str, line: int | None, text: str) -> None:
        super().__init__(f"{file}:{line}: {text}" if line is not None else f"{file}: {text}")
        self.file = file
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True)
class Fixture:
    """A fixture that was read and is well-formed; `source` is the NAME or FILE it was asked for by."""

    source: str
    text: str
    definitions: FixtureFile = field(repr=False)
    parsed: Parsed = field(repr=False)
    digest: str


def names() -> list[str]:
    """The fixtures that come with the emulator."""
    return sorted(path.stem for path in folder("fixtures").glob("*.yaml"))


def load(source: str) -> Fixture:
    """The fixture called `source`: one that comes with the emulator, or a file; raises FixtureError and OSError."""
    path = folder("fixtures") / f"{source}.yaml" if "/" not in source else None
    if path is None or not path.is_file():
        path = Path(source)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        text = f"There is no such file, and no fixture of that name; there are {', '.join(names())}."
        raise FixtureError(source, None, text) from None
    if len(raw) > MAX_BYTES:
        raise FixtureError(source, None, "The file is longer than 1 MiB.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FixtureError(source, line, "UTF-8 was expected.") from None
    return parse(text, source)


def parse(text: str, source: str) -> Fixture:
    """The fixture in `text`, checked against the format; raises FixtureError naming `source` and the line."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    known = _PARSED.get((source, digest))
    if known is not None:
        return known
    from emulator.bank.founding.definitions import FixtureFile

    try:
        parsed = read(text)
    except YamlError as error:
        raise FixtureError(source, error.line, error.text) from None
    fixture = Fixture(source, text, validated(FixtureFile, parsed, source), parsed, digest)
    _remember(_PARSED, (source, digest), fixture)
    return fixture


def validated(model: type[Any], parsed: Parsed, source: str) -> Any:
    """The value of `parsed` as a model of `definitions`; raises FixtureError for the mistake that stands first."""
    from pydantic import ValidationError

    try:
        return model.model_validate(parsed.value)
    except ValidationError as error:
        line, text = _first_mistake(error, parsed)
        raise FixtureError(source, line, text) from None


def _first_mistake(error: ValidationError, parsed: Parsed) -> tuple[int, str]:
    from emulator.bank.founding.definition_values import expected, standing

    mistakes = []
    for detail in error.errors(include_url=False):
        path = standing(detail["loc"], parsed.value)
        name = ".".join(str(part) for part in path)
        if detail["type"] == "extra_forbidden":
            text = f"There is no member {name} here."
        elif detail["type"] == "missing":
            text = f"The member {name} is missing."
        else:
            what = expected(detail)
            message = f"{what} was expected" if what else detail["msg"].removeprefix("Value error, ")
            text = f"{name}: {message}." if name else f"{message}."
        mistakes.append((parsed.line(path), text))
    line, text = min(mistakes, key=lambda mistake: mistake[0])
    further = len(mistakes) - 1
    return line, f"{text} ({further} more like it below.)" if further else text


def build(fixture: Fixture, *, today: date, fixed: Callable[[str], str] = fixed_id) -> Documents:
    """The documents of a fixture by kind, on the Oslo date `today`; `fixed` gives the id for a name."""
    founding = Founding(today=today, fixed=fixed)
    try:
        made = founding.add(fixture.definitions)
    except DefinitionError as error:
        raise FixtureError(fixture.source, fixture.parsed.line(error.path), error.text) from None
    documents = {kind: list(found.values()) for kind, found in made.items()}
    if fixture.definitions.exchange is not None:
        table = fixture.definitions.exchange.model_dump(mode="json")
        documents["meta"] = [{"id": "exchange", **table}]
    return documents


def check(source: str) -> None:
    """Refuse a fixture that no bank could go back to; raises FixtureError. One that comes with us needs no reading."""
    if source not in names():
        try:
            fixture = load(source)
        except OSError as error:
            raise FixtureError(source, None, f"The file cannot be read: {error.strerror}.") from None
        build(fixture, today=oslo_date(real_now()))


def image(fixture: Fixture, *, today: date, ids_form: str = "uuid") -> Image:
    """The fixture as an image that a store takes over in one step; kept, since every new bank starts from one."""
    key = (fixture.digest, today, ids_form)
    kept = _IMAGES.get(key)
    if kept is None:
        documents = build(fixture, today=today, fixed=lambda name: fixed_id(name, opaque=ids_form == "opaque"))
        kept = Image.build(KINDS, documents)
        _remember(_IMAGES, key, kept)
    return kept


_PARSED: OrderedDict[tuple[str, str], Fixture] = OrderedDict()
_IMAGES: OrderedDict[tuple[str, date, str], Image] = OrderedDict()


def _remember(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    while len(cache) > KEPT_IMAGES:
        cache.popitem(last=False)


def make(bank: Bank, source: str | Fixture) -> None:
    """Like `reset`, and from now on this is what the bank was made with."""
    with bank.documents.transaction():
        bank.documents.delete("meta", "bank")
        reset(bank, source)


def reset(bank: Bank, source: str | Fixture, *, now: datetime | None = None, mode: Mode | None = None) -> None:
    """The whole bank new: documents, clock, settings, rules and ids (CONTRACT 9.1).

    `now` and `mode` are the clock that the new bank starts with (None: as `bank.begins` says), before the fixture's
    dates are counted from it. What the bank was made with stays known. Raises FixtureError; then nothing has changed.
    """
    fixture = load(source) if isinstance(source, str) else source
    now, mode = now or bank.begins.now, mode or bank.begins.mode
    content = image(fixture, today=oslo_date(now or real_now()), ids_form=bank.ids.form)
    documents = bank.documents
    origin = _origin(bank, fixture)
    try:
        with documents.transaction():
            documents.restore(content)
            documents.put("meta", origin)
            bank.clock.refresh()
            if now is not None or mode != "live":
                bank.clock.set(now=now, mode=mode)
            bank.ids.restart()
    finally:
        bank.refresh()


def _origin(bank: Bank, fixture: Fixture) -> Document:
    """`meta/bank`: what the bank stands on, and `madeWith` if that is another, so that they are found after a restart.

    The text of a file is kept with it: the file may have changed or gone by then.
    """
    origin: Document = {"id": "bank", "fixtures": fixture.source}
    if fixture.source not in names():
        origin["text"] = fixture.text
    before = bank.documents.get("meta", "bank") or origin
    made_with = before.get("madeWith") or {name: before[name] for name in ("fixtures", "text") if name in before}
    if made_with["fixtures"] != fixture.source:
        origin["madeWith"] = made_with
    if bank.ids.seed is not None:
        origin["seed"] = bank.ids.seed
    return origin


def of(bank: Bank) -> Fixture:
    """The fixture that the bank stands on: what it was made with, or what a reset or scenario has named since."""
    return _kept(bank.documents.get("meta", "bank") or {"fixtures": "known-state"})


def made_with(bank: Bank) -> Fixture:
    """The fixture that the bank was made with, whatever it stands on now."""
    origin = bank.documents.get("meta", "bank") or {"fixtures": "known-state"}
    return _kept(origin.get("madeWith", origin))


def _kept(origin: Document) -> Fixture:
    if "text" in origin:
        return parse(origin["text"], origin["fixtures"])
    return load(origin["fixtures"])


def initialize(bank: Bank) -> None:
    """The known state back: customers, accounts and their transactions as the fixture has them (CONTRACT 8).

    Sessions, consents, payments, baskets and quotas are gone, and with the customers the PSU-IDs (assumed); clock,
    settings, rules, snapshots and contact information stay.
    """
    documents = bank.documents
    content = image(of(bank), today=bank.clock.today(), ids_form=bank.ids.form)
    with documents.transaction():
        kept = {kind: list(documents.all(kind)) for kind in KEPT_BY_INITIALIZE}
        documents.restore(content)
        for kind, found in kept.items():
            for document in found:
                documents.put(kind, document)


def add(bank: Bank, definitions: Additions) -> None:
    """Add what a scenario defines to what is there; raises DefinitionError, and then nothing has changed."""
    documents = bank.documents

    def known(kind: str, index: str, value: str) -> list[Document]:
        searched: Mapping[str, Any] = {index: value}
        if index != "id":
            return documents.find(kind, **searched)
        found = documents.get(kind, value)
        return [] if found is None else [found]

    founding = Founding(today=bank.clock.today(), fixed=bank.ids.fixed, known=known, fresh=bank.ids.new)
    made = founding.add(definitions)
    created = {"created": bank.clock.stamp()}
    with documents.transaction():
        for kind, found in made.items():
            for document in found.values():
                is_new = kind in LISTED and not documents.exists(kind, document["id"])
                documents.put(kind, {**document, **created} if is_new else document)


def schema() -> dict[str, Any]:
    """The JSON Schema of the format, as `fixtures/fixture.schema.json` publishes it."""
    from emulator.bank.founding.definitions import FixtureFile

    made = FixtureFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "Fixture of the bank emulator"}
