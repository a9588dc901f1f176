"""The usual mistakes in a signing string, in groups by what they touch.

The groups are in the order in which two of them are combined: what the lines hold, which there are, in which order,
and how they are written down.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from emulator.api.signature.evidence import Evidence
from emulator.api.signature.recipe import (
    Lines,
    Mistake,
    Recipe,
    each,
    holding,
    layout,
    order,
    with_first,
    with_last,
    without,
)
from emulator.api.signature.targets import target_mistakes
from emulator.api.signature.values import value_mistakes
from emulator.httpsig.message import CANDIDATES, REQUEST_TARGET, SPELLING, request_target

Group = Callable[[Evidence], Iterator[Mistake]]

_MOST_PERMUTED = 6  # lines, as a payment has; 720 orders
_MOST_FURTHER = 40  # headers of the request that are tried as lines too many


def choice_mistakes(found: Evidence) -> Iterator[Mistake]:
    """A line too few or too many."""
    if found.header is not None and found.header.headers is None:
        yield from _not_listed_at_all(found)
    if len(found.names) > 1:
        for name in found.names:
            yield Mistake("line-left-out", f"without {name}, which is listed", without(name))
    present = {REQUEST_TARGET: request_target(found.method, found.target)} | found.present
    further = [name for name in present if name not in found.names and name != "signature"]
    for name in further[:_MOST_FURTHER]:
        phrase = f"that also holds {name}, which is not listed"
        yield Mistake("line-not-listed", phrase, with_last(name, present[name]))
        yield Mistake("line-not-listed", phrase, with_first(name, present[name]))


def _not_listed_at_all(found: Evidence) -> Iterator[Mistake]:
    """All that is to be signed, without the parameter that lists it, which then means date alone."""
    target = (REQUEST_TARGET, request_target(found.method, found.target))
    documented = tuple((name, found.present[name]) for name in CANDIDATES if name in found.present)
    sent = tuple((lower, found.present[lower]) for name, _ in found.headers if (lower := name.lower()) in CANDIDATES)
    phrase = "of several lines, while a Signature without the parameter headers covers date alone"
    for lines in (documented, sent):
        for whole in (lines, (target, *lines), (*lines, target)):
            yield Mistake("headers-not-listed", phrase, holding(whole))


def order_mistakes(found: Evidence) -> Iterator[Mistake]:
    """The lines in another order than listed."""
    names = list(found.names)
    pseudo = [name for name in names if name == REQUEST_TARGET]
    in_request = [lower for name, _ in found.headers if (lower := name.lower()) in names]
    usual = [name for name in CANDIDATES if name in names]
    rest = [name for name in names if name not in CANDIDATES and name != REQUEST_TARGET]
    for name, phrase, other in (
        ("order-of-request", "in the order of the request's headers, not in the order listed", pseudo + in_request),
        ("order-of-request", "in the order of the request's headers, not in the order listed", in_request + pseudo),
        ("order-reversed", "in the reverse of the order listed", names[::-1]),
        ("order-alphabetical", "in alphabetical order, not in the order listed", sorted(names)),
        ("order-documented", "in the order of the documentation, not in the order listed", pseudo + usual + rest),
        ("order-documented", "in the order of the documentation, not in the order listed", usual + rest + pseudo),
    ):
        if other != names:
            yield Mistake(name, phrase, order(other))


def any_order(found: Evidence) -> Iterator[Mistake]:
    """Every order of a few lines; of more, each line in every other place."""
    lines = tuple(found.lines(found.target))
    for other in itertools.permutations(lines) if len(lines) <= _MOST_PERMUTED else _one_moved(lines):
        names = " ".join([name for name, _ in other])
        yield Mistake("order", f"in another order than listed: {names}", holding(other))


def _one_moved(lines: Lines) -> Iterator[Lines]:
    for at, line in enumerate(lines):
        others = lines[:at] + lines[at + 1 :]
        for place in range(len(lines)):
            yield (*others[:place], line, *others[place:])


def layout_mistakes(found: Evidence) -> Iterator[Mistake]:
    """What stands around names and values, and how the names are spelt."""
    yield Mistake("no-blank-after-colon", "without the blank after the colons", layout(colon=":"))
    yield Mistake("final-newline", "that ends in a newline", layout(after="\n"))
    yield Mistake("crlf", "with CRLF in place of newlines", layout(joiner="\r\n"))
    yield Mistake("crlf", "with CRLF after each line", layout(joiner="\r\n", after="\r\n"))
    for end, kind in (("\n", "a newline"), ("\r\n", "CRLF")):
        phrase = f"with {kind} after each line and without the blank after the colons"
        yield Mistake("lines-put-together", phrase, layout(colon=":", joiner=end, after=end))
    yield from _name_mistakes(found)
    phrase = "with a backslash and an n in place of newlines"
    yield Mistake("literal-backslash-n", phrase, layout(joiner="\\n"))
    yield Mistake("trailing-blanks", "with a blank at the end of each line", layout(joiner=" \n", after=" "))
    yield Mistake("trailing-blanks", "with a blank before each newline", layout(joiner=" \n"))
    yield Mistake("joined-by-blanks", "with blanks in place of newlines", layout(joiner=" "))
    yield Mistake("joined-by-commas", "with commas in place of newlines", layout(joiner=","))
    yield Mistake("joined-by-commas", "with commas and blanks in place of newlines", layout(joiner=", "))
    yield Mistake("not-joined", "without newlines", layout(joiner=""))
    yield Mistake("two-blanks", "with two blanks after the colons", layout(colon=":  "))
    yield Mistake("blank-before-colon", "with a blank before the colons", layout(colon=" : "))
    yield Mistake("equals-sign", "with = in place of the colons", layout(colon="="))
    yield Mistake("leading-newline", "that begins with a newline", layout(before="\n"))
    yield Mistake("byte-order-mark", "that begins with a byte order mark", layout(before="\ufeff"))
    yield Mistake("quoted", "in quotes", layout(before='"', after='"'))
    yield Mistake("utf-16", "in UTF-16", layout(encoding="utf-16-le"))


def _name_mistakes(found: Evidence) -> Iterator[Mistake]:
    sent = {name.lower(): name for name, _ in found.headers}
    listed = {name.lower(): name for name in ((found.header and found.header.headers) or "").split()}
    spellings: tuple[tuple[str, str, Callable[[str], str]], ...] = (
        ("names-as-sent", "with the names in the case of the request's headers", lambda name: sent.get(name, name)),
        ("names-as-listed", "with the names in the case of the parameter headers", lambda name: listed.get(name, name)),
        ("names-as-documented", "with the names in the documentation's case", lambda name: SPELLING.get(name, name)),
        ("names-in-title-case", "with the names in title case", str.title),
        ("names-in-upper-case", "with the names in upper case", str.upper),
    )
    for kind, phrase, spell in spellings:
        yield Mistake(kind, phrase, _spelt(spell))
        if REQUEST_TARGET in found.names and spell(REQUEST_TARGET) != REQUEST_TARGET:
            yield Mistake(kind, f"{phrase}, {REQUEST_TARGET} too", _all_spelt(spell))
    if REQUEST_TARGET in found.names:
        phrase = "with request-target without its brackets"
        yield Mistake("target-without-brackets", phrase, _target_named("request-target"))
        yield Mistake("target-without-name", "with the request target without its name", _nameless({REQUEST_TARGET}))
    yield Mistake("values-only", "of the values without their names", _nameless(set(found.names)))


def _spelt(spell: Callable[[str], str]) -> Callable[[Recipe], Recipe]:
    return each(lambda name, text: (name if name == REQUEST_TARGET else spell(name), text))


def _all_spelt(spell: Callable[[str], str]) -> Callable[[Recipe], Recipe]:
    return each(lambda name, text: (spell(name), text))


def _target_named(other: str) -> Callable[[Recipe], Recipe]:
    return each(lambda name, text: (other if name == REQUEST_TARGET else name, text))


def _nameless(names: set[str]) -> Callable[[Recipe], Recipe]:
    def bare(recipe: Recipe) -> Recipe:
        written = each(lambda name, text: ("", text if name in names else f"{name}{recipe.colon}{text}"))
        return layout(colon="")(written(recipe))

    return bare


GROUPS: Mapping[str, Group] = {
    "target": target_mistakes,
    "values": value_mistakes,
    "choice": choice_mistakes,
    "order": order_mistakes,
    "layout": layout_mistakes,
}
