"""How a client may have put a signing string together, and the mistakes that lead there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Lines = tuple[tuple[str, str], ...]


class Recipe(NamedTuple):
    """Lines of name and value with what stands around them; the defaults are SPEC 5.2's.

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
