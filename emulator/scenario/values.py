"""Values of rules, starts and stories: durations, amounts, addresses, settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Annotated, Any

from emulator.bank.conditions import fits, values_of
from emulator.bank.problems import path_of
from emulator.bank.settings import problems_in, schemas
from emulator.bank.validation import Mismatch, Model, Reads, one_of, refuse, union
from emulator.scenario import durations

METHODS = ("GET", "POST", "PUT", "DELETE")
CONTEXTS = ("PRIVATE", "CORPORATE")

LONGEST_ADDRESS = 8000


def duration(longest: timedelta = durations.LONGEST) -> Reads:
    """A duration without months and years, at most `longest`."""

    def read(value: Any) -> timedelta:
        length = durations.exact(value)
        if length is None:
            raise Mismatch(durations.expected(value, calendar=False))
        if length > longest:
            raise Mismatch(text=f"At most {longest} was expected.")
        return length

    schema = {
        "type": "string",
        "description": "A duration: 10s, 2m, 1h30m, 3d, 500ms, PT1H.",
        "pattern": durations.SCHEMA_PATTERN,
    }
    return Reads(read, schema)


Duration = Annotated[timedelta, duration()]
Context = Annotated[str, one_of("context", CONTEXTS)]


def either(single: Any, members: type[Model]) -> Any:
    """A value that is not a mapping, of the form `single`; or a mapping, of the form `members`."""
    return union(
        {"single": single, "members": members},
        lambda value: "members" if isinstance(value, dict | members) else "single",
    )


def by_member(forms: Mapping[str, type[Model]], other: Callable[[dict[str, Any]], Mismatch]) -> Any:
    """A mapping of the form to which its members belong; `other`: what is wrong with one of no form or of several."""

    def which(value: Any) -> str:
        meant = {forms[name] for name in value if name in forms} if isinstance(value, dict) else {type(value)}
        return meant.pop().__name__ if len(meant) == 1 else ""

    def refused(value: Any) -> Any:
        raise other(value) if isinstance(value, dict) else Mismatch("a mapping")

    return union({form.__name__: form for form in forms.values()}, which, refused=refused)


def in_two(value: Any, words: Collection[str], refusal: str) -> tuple[str, str]:
    """The first word of a text, which is one of `words`, and the rest."""
    if not isinstance(value, str) or not value.strip():
        raise Mismatch("text")
    word, _, rest = value.partition(" ")
    if word not in words:
        raise Mismatch(text=refusal, known=tuple(words), value=word)
    return word, rest


def address(*, absolute: bool = True) -> Reads:
    """`METHOD PATH`; `absolute`: the path starts with a slash, or is a saved link."""

    def read(value: Any) -> str:
        method, path = in_two(value, METHODS, "There is no method")
        starts = path.startswith(("/", "${", "http://", "https://")) if absolute else bool(path)
        if not starts or any(sign.isspace() for sign in path):
            raise Mismatch(text=f"Expected {method} and a path without blanks, such as {method} /v1/accounts.")
        if len(value) > LONGEST_ADDRESS:
            raise Mismatch(text=f"Expected text of at most {LONGEST_ADDRESS} characters.")
        return str(value)

    return Reads(read, {"type": "string", "pattern": f"^({'|'.join(METHODS)}) \\S+$", "maxLength": LONGEST_ADDRESS})


def possible_status(stated: Any, *, strict: bool = False) -> Any:
    """Refuse a condition on a status that none meets; `strict`: of an answer, else of the log, where 0 is none."""
    wrong = [(path, value) for path, value in values_of(stated) if not _is_met(value, strict)]
    if not wrong and not _is_met(stated, strict):
        wrong = [((), stated)]
    if wrong:
        refuse(*(Mismatch("a status from 100 to 599", path=path, value=value) for path, value in wrong))
    return stated


def _is_met(stated: Any, strict: bool) -> bool:
    if "${" in str(stated):
        return True
    return any(fits(stated, status, strict=strict) for status in (*range(100, 600), *(() if strict else (0,))))


def _settings(value: Any) -> dict[str, Any]:
    """Validate settings by name: unknown ones and wrong values are refused."""
    if not isinstance(value, dict):
        raise Mismatch("a mapping")
    _refuse_wrong(value)
    return value


def _refuse_wrong(settings: dict[str, Any], *, inside: int = 0) -> None:
    """Refuse wrong settings; of the path of each problem the first members are left out."""
    wrong = [Mismatch(text=one.text, path=path_of(one.path or "")[inside:]) for one in problems_in(settings)]
    if wrong:
        refuse(*wrong)


_SETTINGS: Mapping[str, Any] = {
    "type": "object",
    "properties": {name: dict(shape) for name, shape in schemas().items()},
    "additionalProperties": False,
}
Settings = Annotated[dict[str, Any], Reads(_settings, _SETTINGS)]


def _feed(value: Any) -> Any:
    _refuse_wrong({"feed": value}, inside=1)
    return value


Feed = Annotated[list[dict[str, Any]], Reads(_feed, schemas()["feed"])]
