"""Where two texts part."""

from __future__ import annotations

from typing import Any


def first_difference(expected: str, sent: str) -> dict[str, Any] | None:
    """Line and column (from 1) of the first difference with both lines, as a JSON object; None when equal.

    Only a newline ends a line: a carriage return shows as part of it. A line that one side lacks is None.
    """
    if expected == sent:
        return None
    ours, theirs = expected.split("\n"), sent.split("\n")
    for number in range(max(len(ours), len(theirs))):
        here = ours[number] if number < len(ours) else None
        there = theirs[number] if number < len(theirs) else None
        if here != there:
            return {"line": number + 1, "column": _column(here or "", there or ""), "expected": here, "sent": there}
    return None


def _column(here: str, there: str) -> int:
    for at, (one, other) in enumerate(zip(here, there, strict=False)):
        if one != other:
            return at + 1
    return min(len(here), len(there)) + 1
