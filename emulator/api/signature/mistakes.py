"""The common mistakes in a signing string, in groups by what they affect.

A `Recipe` describes how a client may have built its signing string, and a `Mistake` changes a recipe. The groups are in
the order in which mistakes of two groups are combined: the content of the lines, the choice of lines, their order, and
the layout. To add a mistake, add a line to its group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from emulator.api.signature.other_values import other_targets, other_values
from emulator.api.signature.result import Inspection
from emulator.httpsig.signing import CANDIDATES, REQUEST_TARGET, SPELLING, request_target

Lines = tuple[tuple[str, str], ...]


class Recipe(NamedTuple):
    """Lines of name and value with the text around them; the defaults are those of a right signing string.

    A named tuple, because hundreds are created for one invalid signature, and a frozen dataclass takes four times as
    long.
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
    """A common mistake: a stable name, a phrase, and a function that applies it to a recipe.

    The phrase continues the sentence "the signature was made over a signing string".
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
    """The lines without `name`."""
    return lambda recipe: recipe.holding(tuple([line for line in recipe.lines if line[0] != name]))


def with_first(name: str, text: str) -> Change:
    """A further line before the others."""
    return lambda recipe: recipe.holding(((name, text), *recipe.lines))


def with_last(name: str, text: str) -> Change:
    """A further line after the others."""
    return lambda recipe: recipe.holding((*recipe.lines, (name, text)))


Group = Callable[[Inspection], Iterator[Mistake]]

_METHODS = ("get", "post", "put", "delete", "patch")
_MOST_PERMUTED = 6  # lines, as a payment has; 720 orders
_MOST_FURTHER = 40  # headers of the request that are tried as additional lines


def target_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    """Other spellings of method, path and query."""
    if REQUEST_TARGET not in inspection.names:
        return
    method, target = inspection.method.lower(), inspection.target
    path = target.partition("?")[0]
    for name, phrase, text in other_targets(inspection):
        yield Mistake(name, phrase, value(REQUEST_TARGET, f"{method} {text}"))
    for name, phrase, text in (
        ("method-upper-case", "with the method in upper case", f"{inspection.method.upper()} {target}"),
        ("method-missing", "without the method before the request target", target),
        ("method-missing", "with the path alone as request target", path),
        ("method-colon", "with a colon after the method", f"{method}: {target}"),
        ("method-no-blank", "without the blank after the method", f"{method}{target}"),
        ("http-version", "with the HTTP version in the request target", f"{method} {target} HTTP/1.1"),
        ("http-version", "with the request line as request target", f"{inspection.method.upper()} {target} HTTP/1.1"),
    ):
        yield Mistake(name, phrase, value(REQUEST_TARGET, text))
    for other in _METHODS:
        if other != method:
            yield Mistake("method-other", f"with the method {other}", value(REQUEST_TARGET, f"{other} {target}"))


def value_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    """Values other than the sent ones."""
    for name in inspection.names:
        if name != REQUEST_TARGET:
            for kind, phrase, text in other_values(inspection, name, inspection.present[name]):
                yield Mistake(kind, phrase, value(name, text))
    lower = each(lambda name, text: (name, text.lower()))
    yield Mistake("values-lower-case", "with the values in lower case", lower)
    upper = each(lambda name, text: (name, text if name == REQUEST_TARGET else text.upper()))
    yield Mistake("values-upper-case", "with the values in upper case", upper)
    quoted = each(lambda name, text: (name, text if name == REQUEST_TARGET else f'"{text}"'))
    yield Mistake("values-quoted", "with the values in quotes", quoted)


def choice_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    """A missing or an additional line."""
    if inspection.header is not None and inspection.header.headers is None:
        yield from _not_listed_at_all(inspection)
    if len(inspection.names) > 1:
        for name in inspection.names:
            yield Mistake("line-left-out", f"without {name}, which is listed", without(name))
    present = {REQUEST_TARGET: request_target(inspection.method, inspection.target)} | inspection.present
    further = [name for name in present if name not in inspection.names and name != "signature"]
    for name in further[:_MOST_FURTHER]:
        phrase = f"that also holds {name}, which is not listed"
        yield Mistake("line-not-listed", phrase, with_last(name, present[name]))
        yield Mistake("line-not-listed", phrase, with_first(name, present[name]))


def _not_listed_at_all(inspection: Inspection) -> Iterator[Mistake]:
    """All candidate headers, although a Signature without the parameter `headers` covers `date` only."""
    target = (REQUEST_TARGET, request_target(inspection.method, inspection.target))
    documented = tuple((name, inspection.present[name]) for name in CANDIDATES if name in inspection.present)
    sent = tuple(
        (lower, inspection.present[lower]) for name, _ in inspection.headers if (lower := name.lower()) in CANDIDATES
    )
    phrase = "of several lines, while a Signature without the parameter headers covers date alone"
    for lines in (documented, sent):
        for whole in (lines, (target, *lines), (*lines, target)):
            yield Mistake("headers-not-listed", phrase, holding(whole))


def order_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    """The lines in another order than listed."""
    names = list(inspection.names)
    pseudo = [name for name in names if name == REQUEST_TARGET]
    in_request = [lower for name, _ in inspection.headers if (lower := name.lower()) in names]
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


def any_order(inspection: Inspection) -> Iterator[Mistake]:
    """Every order of a few lines; for more lines, each line in every other position."""
    lines = tuple(inspection.lines(inspection.target))
    for other in itertools.permutations(lines) if len(lines) <= _MOST_PERMUTED else _one_moved(lines):
        names = " ".join([name for name, _ in other])
        yield Mistake("order", f"in another order than listed: {names}", holding(other))


def _one_moved(lines: Lines) -> Iterator[Lines]:
    for at, line in enumerate(lines):
        others = lines[:at] + lines[at + 1 :]
        for place in range(len(lines)):
            yield (*others[:place], line, *others[place:])


def layout_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    """The text around names and values, and the spelling of the names."""
    yield Mistake("no-blank-after-colon", "without the blank after the colons", layout(colon=":"))
    yield Mistake("final-newline", "that ends in a newline", layout(after="\n"))
    yield Mistake("crlf", "with CRLF in place of newlines", layout(joiner="\r\n"))
    yield Mistake("crlf", "with CRLF after each line", layout(joiner="\r\n", after="\r\n"))
    for end, kind in (("\n", "a newline"), ("\r\n", "CRLF")):
        phrase = f"with {kind} after each line and without the blank after the colons"
        yield Mistake("lines-put-together", phrase, layout(colon=":", joiner=end, after=end))
    yield from _name_mistakes(inspection)
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


def _name_mistakes(inspection: Inspection) -> Iterator[Mistake]:
    sent = {name.lower(): name for name, _ in inspection.headers}
    listed = {name.lower(): name for name in ((inspection.header and inspection.header.headers) or "").split()}
    spellings: tuple[tuple[str, str, Callable[[str], str]], ...] = (
        ("names-as-sent", "with the names in the case of the request's headers", lambda name: sent.get(name, name)),
        ("names-as-listed", "with the names in the case of the parameter headers", lambda name: listed.get(name, name)),
        ("names-as-documented", "with the names in the documentation's case", lambda name: SPELLING.get(name, name)),
        ("names-in-title-case", "with the names in title case", str.title),
        ("names-in-upper-case", "with the names in upper case", str.upper),
    )
    for kind, phrase, spell in spellings:
        yield Mistake(kind, phrase, _spelt(spell))
        if REQUEST_TARGET in inspection.names and spell(REQUEST_TARGET) != REQUEST_TARGET:
            yield Mistake(kind, f"{phrase}, {REQUEST_TARGET} too", _all_spelt(spell))
    if REQUEST_TARGET in inspection.names:
        phrase = "with request-target without its brackets"
        yield Mistake("target-without-brackets", phrase, _target_named("request-target"))
        yield Mistake("target-without-name", "with the request target without its name", _nameless({REQUEST_TARGET}))
    yield Mistake("values-only", "of the values without their names", _nameless(set(inspection.names)))


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
