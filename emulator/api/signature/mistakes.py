"""The usual mistakes in a signing string, in groups by what they touch.

A `Recipe` is how a client may have put its signing string together, and a `Mistake` what it makes of a recipe. The
groups are in the order in which two of them are combined: what the lines hold, which there are, in which order, and
how they are written down. Adding a mistake is one more line in its group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from emulator.api.signature.other_values import other_targets, other_values
from emulator.api.signature.result import Evidence
from emulator.httpsig.signing import CANDIDATES, REQUEST_TARGET, SPELLING, request_target

Lines = tuple[tuple[str, str], ...]


class Recipe(NamedTuple):
    """Lines of name and value with the text around them; the defaults are those of SPEC 5.2.

    A tuple, as hundreds of them are made for one signature that fits none: a frozen dataclass takes four times as long.
    """

    lines: Lines
    colon: str = ": "
    joiner: str = "\n"
    before: str = ""
    after: str = ""
    encoding: str = "utf-8"

    def text(self) -> str:
        """The signing string by this recipe."""
        colon = self.colon
        return self.before + self.joiner.join([f"{name}{colon}{value}" for name, value in self.lines]) + self.after

    def holding(self, lines: Lines) -> Recipe:
        """Other lines in the same layout."""
        return Recipe(lines, self.colon, self.joiner, self.before, self.after, self.encoding)

    def encoded(self) -> bytes:
        """Its bytes."""
        return self.text().encode(self.encoding)


Change = Callable[[Recipe], Recipe]


class Mistake(NamedTuple):
    """A usual mistake: a stable name, a phrase, and what it makes of a recipe.

    The phrase goes on after "the signature was made over a signing string".
    """

    id: str
    phrase: str
    apply: Change


def layout(
    *,
    colon: str = ": ",
    joiner: str = "\n",
    before: str = "",
    after: str = "",
    encoding: str = "utf-8",
) -> Change:
    """The same lines in another layout."""
    return lambda recipe: Recipe(recipe.lines, colon, joiner, before, after, encoding)


def each(change: Callable[[str, str], tuple[str, str]]) -> Change:
    """Every line changed."""
    return lambda recipe: recipe.holding(tuple([change(name, value) for name, value in recipe.lines]))


def value(name: str, text: str) -> Change:
    """Another value for the line `name`."""
    return lambda recipe: recipe.holding(
        tuple([(line, text) if line == name else (line, old) for line, old in recipe.lines])
    )


def order(names: Sequence[str]) -> Change:
    """The lines in the order of `names`."""
    rank = {name: at for at, name in enumerate(names)}

    def position(line: tuple[str, str]) -> int:
        return rank.get(line[0], len(rank))

    return lambda recipe: recipe.holding(tuple(sorted(recipe.lines, key=position)))


def holding(lines: Lines) -> Change:
    """These lines in place of those listed."""
    return lambda recipe: recipe.holding(lines)


def without(name: str) -> Change:
    """The lines but for `name`."""
    return lambda recipe: recipe.holding(tuple([line for line in recipe.lines if line[0] != name]))


def with_first(name: str, text: str) -> Change:
    """A further line before the others."""
    return lambda recipe: recipe.holding(((name, text), *recipe.lines))


def with_last(name: str, text: str) -> Change:
    """A further line after the others."""
    return lambda recipe: recipe.holding((*recipe.lines, (name, text)))


Group = Callable[[Evidence], Iterator[Mistake]]

_METHODS = ("get", "post", "put", "delete", "patch")
_MOST_PERMUTED = 6  # lines, as a payment has; 720 orders
_MOST_FURTHER = 40  # headers of the request that are tried as lines too many


def target_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    """Other spellings of method, path and query."""
    if REQUEST_TARGET not in evidence.names:
        return
    method, target = evidence.method.lower(), evidence.target
    path = target.partition("?")[0]
    for name, phrase, text in other_targets(evidence):
        yield Mistake(name, phrase, value(REQUEST_TARGET, f"{method} {text}"))
    for name, phrase, text in (
        ("method-upper-case", "with the method in upper case", f"{evidence.method.upper()} {target}"),
        ("method-missing", "without the method before the request target", target),
        ("method-missing", "with the path alone as request target", path),
        ("method-colon", "with a colon after the method", f"{method}: {target}"),
        ("method-no-blank", "without the blank after the method", f"{method}{target}"),
        ("http-version", "with the HTTP version in the request target", f"{method} {target} HTTP/1.1"),
        ("http-version", "with the request line as request target", f"{evidence.method.upper()} {target} HTTP/1.1"),
    ):
        yield Mistake(name, phrase, value(REQUEST_TARGET, text))
    for other in _METHODS:
        if other != method:
            yield Mistake("method-other", f"with the method {other}", value(REQUEST_TARGET, f"{other} {target}"))


def value_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    """Values other than those sent."""
    for name in evidence.names:
        if name != REQUEST_TARGET:
            for kind, phrase, text in other_values(evidence, name, evidence.present[name]):
                yield Mistake(kind, phrase, value(name, text))
    lower = each(lambda name, text: (name, text.lower()))
    yield Mistake("values-lower-case", "with the values in lower case", lower)
    upper = each(lambda name, text: (name, text if name == REQUEST_TARGET else text.upper()))
    yield Mistake("values-upper-case", "with the values in upper case", upper)
    quoted = each(lambda name, text: (name, text if name == REQUEST_TARGET else f'"{text}"'))
    yield Mistake("values-quoted", "with the values in quotes", quoted)


def choice_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    """A line too few or too many."""
    if evidence.header is not None and evidence.header.headers is None:
        yield from _not_listed_at_all(evidence)
    if len(evidence.names) > 1:
        for name in evidence.names:
            yield Mistake("line-left-out", f"without {name}, which is listed", without(name))
    present = {REQUEST_TARGET: request_target(evidence.method, evidence.target)} | evidence.present
    further = [name for name in present if name not in evidence.names and name != "signature"]
    for name in further[:_MOST_FURTHER]:
        phrase = f"that also holds {name}, which is not listed"
        yield Mistake("line-not-listed", phrase, with_last(name, present[name]))
        yield Mistake("line-not-listed", phrase, with_first(name, present[name]))


def _not_listed_at_all(evidence: Evidence) -> Iterator[Mistake]:
    """Everything that must be signed, without the parameter that lists it, which then means date alone."""
    target = (REQUEST_TARGET, request_target(evidence.method, evidence.target))
    documented = tuple((name, evidence.present[name]) for name in CANDIDATES if name in evidence.present)
    sent = tuple(
        (lower, evidence.present[lower]) for name, _ in evidence.headers if (lower := name.lower()) in CANDIDATES
    )
    phrase = "of several lines, while a Signature without the parameter headers covers date alone"
    for lines in (documented, sent):
        for whole in (lines, (target, *lines), (*lines, target)):
            yield Mistake("headers-not-listed", phrase, holding(whole))


def order_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    """The lines in another order than listed."""
    names = list(evidence.names)
    pseudo = [name for name in names if name == REQUEST_TARGET]
    in_request = [lower for name, _ in evidence.headers if (lower := name.lower()) in names]
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


def any_order(evidence: Evidence) -> Iterator[Mistake]:
    """Every order of a few lines; of more, each line in every other place."""
    lines = tuple(evidence.lines(evidence.target))
    for other in itertools.permutations(lines) if len(lines) <= _MOST_PERMUTED else _one_moved(lines):
        names = " ".join([name for name, _ in other])
        yield Mistake("order", f"in another order than listed: {names}", holding(other))


def _one_moved(lines: Lines) -> Iterator[Lines]:
    for at, line in enumerate(lines):
        others = lines[:at] + lines[at + 1 :]
        for place in range(len(lines)):
            yield (*others[:place], line, *others[place:])


def layout_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    """The text around names and values, and the spelling of the names."""
    yield Mistake("no-blank-after-colon", "without the blank after the colons", layout(colon=":"))
    yield Mistake("final-newline", "that ends in a newline", layout(after="\n"))
    yield Mistake("crlf", "with CRLF in place of newlines", layout(joiner="\r\n"))
    yield Mistake("crlf", "with CRLF after each line", layout(joiner="\r\n", after="\r\n"))
    for end, kind in (("\n", "a newline"), ("\r\n", "CRLF")):
        phrase = f"with {kind} after each line and without the blank after the colons"
        yield Mistake("lines-put-together", phrase, layout(colon=":", joiner=end, after=end))
    yield from _name_mistakes(evidence)
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


def _name_mistakes(evidence: Evidence) -> Iterator[Mistake]:
    sent = {name.lower(): name for name, _ in evidence.headers}
    listed = {name.lower(): name for name in ((evidence.header and evidence.header.headers) or "").split()}
    spellings: tuple[tuple[str, str, Callable[[str], str]], ...] = (
        ("names-as-sent", "with the names in the case of the request's headers", lambda name: sent.get(name, name)),
        ("names-as-listed", "with the names in the case of the parameter headers", lambda name: listed.get(name, name)),
        ("names-as-documented", "with the names in the documentation's case", lambda name: SPELLING.get(name, name)),
        ("names-in-title-case", "with the names in title case", str.title),
        ("names-in-upper-case", "with the names in upper case", str.upper),
    )
    for kind, phrase, spell in spellings:
        yield Mistake(kind, phrase, _spelt(spell))
        if REQUEST_TARGET in evidence.names and spell(REQUEST_TARGET) != REQUEST_TARGET:
            yield Mistake(kind, f"{phrase}, {REQUEST_TARGET} too", _all_spelt(spell))
    if REQUEST_TARGET in evidence.names:
        phrase = "with request-target without its brackets"
        yield Mistake("target-without-brackets", phrase, _target_named("request-target"))
        yield Mistake("target-without-name", "with the request target without its name", _nameless({REQUEST_TARGET}))
    yield Mistake("values-only", "of the values without their names", _nameless(set(evidence.names)))


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
