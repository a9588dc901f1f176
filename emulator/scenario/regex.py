"""Regular expressions that cannot run away: every character of the text is looked at once, whatever the pattern.

Python's own engine backtracks, so that one line of a scenario could hold the bank up for hours. This one follows
all possibilities side by side (Thompson 1968): time grows with pattern length times text length, and both are
bounded. It knows what patterns over names and amounts need: characters, `.`, `[...]`, `\\d \\w \\s` and their
opposites, `^ $`, groups, `|`, `* + ?` and `{m,n}`. Back references and looking around are refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST_PATTERN = 500
LONGEST_TEXT = 2_000
MOST_STATES = 1_000
DEEPEST = 20

Test = Callable[[str], bool]


class PatternRefused(ValueError):
    """The pattern is none; the argument says why."""


@dataclass(slots=True, eq=False)
class _State:
    """One state: it eats a character that passes `test`, or goes on to `ways` for free (at an edge, if it is one)."""

    test: Test | None = None
    ways: list[_State] = field(default_factory=list)
    edge: str = ""


Fragment = tuple[_State, _State]  # first state, last state (whose ways are still open)

_CLASSES: dict[str, Test] = {
    "d": lambda c: c.isascii() and c.isdigit(),
    "w": lambda c: c == "_" or c.isalnum(),
    "s": str.isspace,
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _named_class(letter: str) -> Test | None:
    known = _CLASSES.get(letter.lower())
    if known is None or letter.islower():
        return known
    return lambda c: not known(c)


class Pattern:
    """A compiled pattern; raises PatternRefused."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternRefused(f"it is longer than {LONGEST_PATTERN} characters")
        self.text = text
        self._at = 0
        self._states = 0
        self._depth = 0
        self._start, self._end = self._either()
        if self._at < len(text):
            raise PatternRefused("a closing bracket has no opening one")

    def found_in(self, text: str) -> bool:
        """Whether the pattern fits anywhere in the first 2,000 characters of `text`; `^` and `$` hold it fast."""
        length, last = len(text), min(len(text), LONGEST_TEXT)
        here: dict[_State, None] = {}
        for at in range(last + 1):
            self._reach(self._start, at, length, here)
            if self._end in here:
                return True
            if at == last:
                break
            after: dict[_State, None] = {}
            for state in here:
                if state.test is not None and state.test(text[at]):
                    for way in state.ways:
                        self._reach(way, at + 1, length, after)
            here = after
        return False

    def _reach(self, state: _State, at: int, length: int, reached: dict[_State, None]) -> None:
        """Add `state` and all that is free to reach from it."""
        todo = [state]
        while todo:
            state = todo.pop()
            if state in reached or (state.edge == "^" and at > 0) or (state.edge == "$" and at < length):
                continue
            reached[state] = None
            if state.test is None:
                todo.extend(state.ways)

    # The grammar, one method for each level.

    def _state(self, test: Test | None = None, *, edge: str = "") -> _State:
        self._states += 1
        if self._states > MOST_STATES:
            raise PatternRefused("it is too large; repeat less")
        return _State(test, [], edge)

    def _peek(self) -> str:
        return self.text[self._at : self._at + 1]

    def _take(self) -> str:
        taken = self._peek()
        if not taken:
            raise PatternRefused("it ends too early")
        self._at += 1
        return taken

    def _either(self) -> Fragment:
        first, last = self._state(), self._state()
        while True:
            begin, end = self._sequence()
            first.ways.append(begin)
            end.ways.append(last)
            if self._peek() != "|":
                return first, last
            self._take()

    def _sequence(self) -> Fragment:
        first = last = self._state()
        while self._peek() not in ("", "|", ")"):
            begin, end = self._repeated()
            last.ways.append(begin)
            last = end
        return first, last

    def _repeated(self) -> Fragment:
        began = self._at
        piece = self._single()
        least, most = self._times()
        if (least, most) == (1, 1):
            return piece
        if self._peek() in ("*", "+", "{"):
            raise PatternRefused("a repetition is repeated; put brackets around the inner one")
        first = last = self._state()
        copies = most if most is not None else least + 1
        after = self._at
        skips: list[_State] = []
        for copy in range(copies):
            # A piece is built anew for each copy by reading it again.
            self._at = began
            begin, end = self._single()
            if copy >= least:
                skips.append(last)
            last.ways.append(begin)
            if most is None and copy == copies - 1:
                end.ways.append(begin)
            last = end
        self._at = after
        done = self._state()
        for state in (*skips, last):
            state.ways.append(done)
        return first, done

    def _times(self) -> tuple[int, int | None]:
        sign = self._peek()
        known = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        times: tuple[int, int | None] = (1, 1)
        if sign in known and sign:
            self._take()
            times = known[sign]
        elif sign == "{":
            times = self._counted()
        if times != (1, 1) and self._peek() == "?":
            self._take()  # lazy or not is all the same to whether it fits
        return times

    def _counted(self) -> tuple[int, int | None]:
        closing = self.text.find("}", self._at)
        low, comma, high = self.text[self._at + 1 : max(closing, 0)].partition(",")
        numbers = (low or "0", high or "0")
        good = closing > 0 and all(number.isascii() and number.isdigit() and len(number) < 5 for number in numbers)
        if not good or not (low or high):
            raise PatternRefused("after { a number was expected, such as {2} or {1,3}")
        self._at = closing + 1
        least = int(low or 0)
        most = None if comma and not high else int(high) if comma else least
        if most is not None and most < least:
            raise PatternRefused(f"{{{low},{high}}} asks for more than it allows")
        return least, most

    def _single(self) -> Fragment:
        sign = self._take()
        if sign == "(":
            return self._group()
        if sign in "*+?{":
            raise PatternRefused(f"there is nothing to repeat before {sign}")
        if sign in "^$":
            state = self._state(edge=sign)
            return state, state
        first, last = self._state(self._test(sign)), self._state()
        first.ways.append(last)
        return first, last

    def _test(self, sign: str) -> Test:
        if sign == ".":
            return lambda c: c != "\n"
        if sign == "[":
            return self._set()
        if sign == "\\":
            letter = self._take()
            return _named_class(letter) or _same(self._literal(letter))
        return _same(sign)

    def _literal(self, letter: str) -> str:
        if letter.isascii() and letter.isalnum() and letter not in _ESCAPED:
            raise PatternRefused(f"\\{letter} is not known here")
        return _ESCAPED.get(letter, letter)

    def _group(self) -> Fragment:
        if self._peek() == "?":
            if not self.text.startswith("?:", self._at):
                raise PatternRefused("looking around, naming and flags (?...) are not known here")
            self._at += 2
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternRefused(f"its brackets are deeper than {DEEPEST}")
        inner = self._either()
        self._depth -= 1
        if self._peek() != ")":
            raise PatternRefused("an opening bracket has no closing one")
        self._take()
        return inner

    def _set(self) -> Test:
        negated = self._peek() == "^"
        if negated:
            self._take()
        spans: list[tuple[str, str]] = []
        classes: dict[str, Test] = {}
        first = True
        while (sign := self._take()) != "]" or first:
            first = False
            named = None
            if sign == "\\":
                letter = self._take()
                named = _named_class(letter)
                sign = sign if named else self._literal(letter)
            if named is not None:
                classes[letter] = named
            elif self._peek() == "-" and self.text[self._at + 1 : self._at + 2] not in ("]", ""):
                spans.append((sign, self._end_of_span(sign)))
            else:
                spans.append((sign, sign))
        test = _any_of(spans, tuple(classes.values()))
        return (lambda c: not test(c)) if negated else test

    def _end_of_span(self, low: str) -> str:
        self._take()
        high = self._take()
        if high == "\\":
            high = self._literal(self._take())
        if high < low:
            raise PatternRefused(f"{low}-{high} runs backwards")
        return high


def _any_of(spans: list[tuple[str, str]], classes: tuple[Test, ...]) -> Test:
    """Whether a character lies in a span or a class; of many spans only one is looked at."""
    lows: list[str] = []
    highs: list[str] = []
    for low, high in sorted(spans):
        if highs and low <= highs[-1]:
            highs[-1] = max(highs[-1], high)
        else:
            lows.append(low)
            highs.append(high)

    def test(c: str) -> bool:
        at = bisect_right(lows, c) - 1
        return (at >= 0 and c <= highs[at]) or any(named(c) for named in classes)

    return test


def _same(expected: str) -> Test:
    return lambda c: c == expected
