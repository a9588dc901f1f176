"""YAML as fixtures and scenarios are written in it: JSON's values in YAML's spelling, and nothing more.

Strings stay strings (`NO` is Norway, `-3d` a text); anchors, aliases, tags, directives, duplicate keys and files
over 1 MiB are refused with the line and what was expected (CONTRACT 10).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32

Path = tuple[str | int, ...]
Event = Any  # the parser's events, whose members differ from kind to kind

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WORDS = {"": None, "null": None, "true": True, "false": False}


class YamlError(Exception):
    """The text is not what we read as YAML: the line (from 1) and a sentence that says what was expected."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True)
class Parsed:
    """A read document: its value (dict, list, str, int, float, bool or None) and where each part of it stands."""

    value: Any
    lines: dict[Path, int] = field(repr=False)

    def line(self, path: Sequence[str | int]) -> int:
        """The line of the member at `path`, or of the nearest part around it that stands in the text."""
        wanted = tuple(path)
        while wanted not in self.lines and wanted:
            wanted = wanted[:-1]
        return self.lines.get(wanted, 1)


def read(text: str) -> Parsed:
    """The one document in `text`; raises YamlError."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(1, "The text is longer than 1 MiB.")
    from yaml import YAMLError

    try:
        return _Reader(text).document()
    except YAMLError as error:
        raise _explained(error, text) from None
    except UnicodeEncodeError as error:
        raise YamlError(text.count("\n", 0, error.start) + 1, "The text holds half of a surrogate pair.") from None


def _explained(error: Exception, text: str) -> YamlError:
    """A syntax error of the YAML parser in our words: a line and one sentence."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        problem = getattr(error, "problem", None) or "this is not YAML"
        return YamlError(mark.line + 1, f"{problem[:1].upper()}{problem[1:]}.")
    position = getattr(error, "position", 0)
    return YamlError(text.count("\n", 0, position) + 1, "The text holds a character that YAML does not allow.")


def _events(text: str) -> Iterator[Event]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, Loader=loader)


class _Reader:
    """Turns the parser's events into a value; recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str) -> None:
        from yaml import events

        self.kinds = events
        self.events = _events(text)
        self.lines: dict[Path, int] = {}

    def document(self) -> Parsed:
        next(self.events)  # the start of the stream
        start = next(self.events)
        if not isinstance(start, self.kinds.DocumentStartEvent):
            raise YamlError(1, "The text is empty; a mapping was expected.")
        if start.version or start.tags:
            raise YamlError(_line(start), "Directives (%YAML, %TAG) are not read here.")
        value = self.node(next(self.events), ())
        next(self.events)  # the end of the document
        after = next(self.events)
        if not isinstance(after, self.kinds.StreamEndEvent):
            raise YamlError(_line(after), "One document was expected, and here a second one begins.")
        return Parsed(value, self.lines)

    def node(self, event: Event, path: Path) -> Any:
        kinds = self.kinds
        self.lines.setdefault(path, _line(event))
        if isinstance(event, kinds.AliasEvent):
            raise YamlError(_line(event), "Aliases (*name) are not read here; write the value out.")
        if event.anchor is not None:
            raise YamlError(_line(event), "Anchors (&name) are not read here; write the value out where it is needed.")
        if event.tag is not None:
            raise YamlError(_line(event), f"Tags are not read here ({event.tag}); write the plain value.")
        if len(path) > MAX_DEPTH:
            raise YamlError(_line(event), f"The text is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(event, kinds.ScalarEvent):
            return _scalar(event.value, _line(event)) if event.implicit[0] else event.value
        if isinstance(event, kinds.SequenceStartEvent):
            return self.sequence(path)
        return self.mapping(path)

    def sequence(self, path: Path) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self.events), self.kinds.SequenceEndEvent):
            values.append(self.node(event, (*path, len(values))))
        return values

    def mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self.events), self.kinds.MappingEndEvent):
            name = self.key(event)
            if name in values:
                raise YamlError(_line(event), f"The member {name} stands here a second time.")
            inner = (*path, name)
            self.lines[inner] = _line(event)
            values[name] = self.node(next(self.events), inner)
        return values

    def key(self, event: Event) -> str:
        """A member's name is text as it stands: `NO: 1` and `401: x` name the members NO and 401."""
        if isinstance(event, self.kinds.ScalarEvent) and event.anchor is None and event.tag is None:
            return str(event.value)
        raise YamlError(_line(event), "The name of a member was expected: plain text.")


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1


def _scalar(text: str, line: int) -> Any:
    """An unquoted value: null, true, false and JSON's numbers; everything else is text."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        if len(text.lstrip("-")) > 18:
            raise YamlError(line, "A number of more than 18 digits must stand in quotes.")
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise YamlError(line, "This number is too large.")
        return number
    return text
