"""Pictures that are drawn from tables, as SVG: the benchmark's ratios, the import rules, the statuses of a payment.

They carry their own background, so that they are readable on light and on dark pages.
"""

from __future__ import annotations

import math
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, RIGHT = 860, 34, 390, 90
LABEL, LINE = 52, 14  # characters of a line, its height
LONGEST = 2.0  # a longer bar ends here; its number, with an arrow, says how long it is
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def chart(rows: Iterable[Mapping[str, Any]]) -> str:
    """A bar for each ratio (unit `x`), with a mark at its goal.

    A row that is many times its yardstick must not make the others too small to read.
    """
    ratios = [row for row in rows if row["unit"] == "x"]
    height = ROW * len(ratios) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT}>',
        "<title>Rates beside those of a plain server</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, row in enumerate(ratios):
        parts += _bar(row, 10 + ROW * number)
    note = "Of rates more is better, of starts and times less. The mark is the goal."
    parts += [f'<text x="{LEFT}" y="{height - 12}" fill="#555555" font-size="11">{note}</text>', "</svg>", ""]
    return "\n".join(parts)


def _bar(row: Mapping[str, Any], top: int) -> list[str]:
    room = WIDTH - LEFT - RIGHT
    value = room * min(row["value"], LONGEST) / LONGEST
    arrow = " →" if row["value"] > LONGEST else ""
    middle = top + ROW / 2
    goal = row["at_least"] if row["at_least"] is not None else row["at_most"]
    number = 'fill="#222222" stroke="#ffffff" stroke-width="4" paint-order="stroke"'  # readable across a mark
    lines = textwrap.wrap(f"{row['section']}: {row['name']}", LABEL)
    first = middle + 4 - LINE * (len(lines) - 1) / 2
    drawn = [
        *(
            f'<text x="{LEFT - 10}" y="{first + LINE * place:g}" text-anchor="end" fill="#222222">{escape(line)}</text>'
            for place, line in enumerate(lines)
        ),
        f'<rect x="{LEFT}" y="{top + 7}" width="{value:.1f}" height="{ROW - 14}" fill="#2f6f8f"/>',
    ]
    if goal is not None and goal <= LONGEST:
        at = LEFT + room * goal / LONGEST
        drawn.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top + 3}" y2="{top + ROW - 3}" stroke="#b3541e" stroke-width="2"/>'
        )
    drawn.append(f'<text x="{LEFT + value + 6:.1f}" y="{middle + 4:g}" {number}>{row["value"]:.2f}{arrow}</text>')
    return drawn


# The packages of the program

_INK, _SOFT, _LINE, _SEA, _WASH, _SAND = "#12252b", "#55676b", "#c9c2b2", "#0f5c57", "#e4f0ee", "#faefd9"
_PAGE, _BESIDE, _GAP, _BOX, _STEP = 980, 250, 14, 62, 26


def layers(pyproject: Path) -> list[list[str]]:
    """The packages of the first layers contract of import-linter, the highest layer first."""
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    first = next(contract for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("emulator.") for name in re.split("[|:]", row)] for row in first["layers"]]


def packages_picture(pyproject: Path, about: Callable[[str], str]) -> str:
    """The layers from top to bottom, and the packages that are in none; `about` describes a package."""
    rows = layers(pyproject)
    inside = {package for row in rows for package in row}
    source = pyproject.parent / "emulator"
    beside = sorted(file.parent.name for file in source.glob("*/__init__.py") if file.parent.name not in inside)
    height = 56 + max(len(rows), len(beside)) * (_BOX + _STEP)
    width = _PAGE - _BESIDE - 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PAGE} {height}" role="img" {FONT}>',
        "<title>The packages of the program: each imports only packages below it</title>",
        f'<rect width="{_PAGE}" height="{height}" fill="#ffffff"/>',
        f'<text x="20" y="26" fill="{_SOFT}">Each package imports only packages below it</text>',
        f'<text x="{_PAGE - _BESIDE - 10}" y="26" fill="{_SOFT}">Beside them</text>',
    ]
    for number, row in enumerate(rows):
        top = 42 + number * (_BOX + _STEP)
        each = (width - _GAP * (len(row) - 1)) / len(row)
        for place, package in enumerate(row):
            parts += _package(package, about(package), 20 + place * (each + _GAP), top, each, _WASH)
        if number < len(rows) - 1:
            middle = 20 + width / 2
            parts.append(
                f'<path d="M{middle:g} {top + _BOX + 4}v{_STEP - 10}m-5 -6l5 6l5 -6" fill="none" stroke="{_SEA}" '
                'stroke-width="1.6"/>'
            )
    for number, package in enumerate(beside):
        top = 42 + number * (_BOX + _STEP)
        parts += _package(package, about(package), _PAGE - _BESIDE - 10, top, _BESIDE - 10, _SAND)
    return "\n".join([*parts, "</svg>", ""])


def _package(name: str, text: str, left: float, top: float, width: float, fill: str) -> list[str]:
    lines = textwrap.wrap(text, max(12, int(width / 6.6)), break_on_hyphens=False)
    shown = [lines[0], f"{lines[1].rstrip(',;:')} …"] if len(lines) > 2 else lines
    drawn = [
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{_BOX}" rx="9" fill="{fill}" stroke="{_LINE}"/>',
        f'<text x="{left + 12:g}" y="{top + 20:g}" font-weight="700" fill="{_INK}">{escape(name)}</text>',
    ]
    drawn += [
        f'<text x="{left + 12:g}" y="{top + 36 + 14 * number:g}" font-size="11" fill="{_SOFT}">{escape(line)}</text>'
        for number, line in enumerate(shown)
    ]
    return drawn


# The statuses of a payment

_PLACES = {
    "RCVD": (0, 1), "PATC": (1, 2.2), "ACTC": (2, 1), "ACWC": (2, 3.2), "PDNG": (3.2, 2.1), "ACCP": (4.2, 3.2),
    "ACSP": (5, 1), "ACWP": (6, 2.1), "PART": (5.5, 3.2), "ACSC": (7, 1), "RJCT": (7, 2.1), "CANC": (7, 3.2),
}  # fmt: skip
_ENDS = ("RJCT", "CANC")  # reached from many statuses: named there, not drawn to
_BENDS = {("ACTC", "ACCP"): (2.1, 2.9), ("ACWC", "ACSP"): (4.5, 2.7), ("ACTC", "ACSC"): (4.5, -0.5),
          ("RCVD", "ACWC"): (0.2, 3.0)}  # fmt: skip
_COLUMN, _ROW_HEIGHT, _WIDE, _HIGH = 118, 92, 92, 46


def statuses_picture() -> str:
    """Every status of the table of transitions, and every way between them; ways to an end are named in the box."""
    from emulator.bank.scheme.transitions import FINAL
    from tests.docs.sections import edges as transitions

    edges = [(step.start, step.end) for step in transitions()]
    statuses = list(dict.fromkeys(name for edge in edges for name in edge))
    width, height = 60 + 7 * _COLUMN + _WIDE, 4 * _ROW_HEIGHT + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {FONT}>',
        "<title>The statuses of a payment and the ways between them</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{_SEA}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for start, end in dict.fromkeys(edges):
        if end not in _ENDS:
            parts.append(_way(start, end))
    for status in statuses:
        x, y = _centre(status)
        ends = [end for end in _ENDS if (status, end) in edges]
        fill = _SAND if status in FINAL else _WASH
        parts.append(
            f'<rect x="{x - _WIDE / 2:g}" y="{y - _HIGH / 2:g}" width="{_WIDE}" height="{_HIGH}" rx="9" fill="{fill}" '
            f'stroke="{_LINE}"/>'
        )
        up = -5 if ends else 5
        parts.append(
            f'<text x="{x:g}" y="{y + up:g}" text-anchor="middle" font-weight="700" fill="{_INK}">{status}</text>'
        )
        if ends:
            parts.append(
                f'<text x="{x:g}" y="{y + 13:g}" text-anchor="middle" font-size="10" fill="{_SOFT}">'
                f"or {', '.join(ends)}</text>"
            )
    note = f'<text x="20" y="{height - 12}" font-size="11" fill="{_SOFT}">Sand: final.</text>'
    return "\n".join([*parts, note, "</svg>", ""])


def _centre(status: str) -> tuple[float, float]:
    column, row = _PLACES[status]
    return 20 + _WIDE / 2 + column * _COLUMN, row * _ROW_HEIGHT - 10


def _way(start: str, end: str) -> str:
    from_x, from_y = _centre(start)
    to_x, to_y = _centre(end)
    bend = _BENDS.get((start, end))
    mid_x, mid_y = (from_x + to_x) / 2, (from_y + to_y) / 2
    if bend is not None:
        mid_x, mid_y = 20 + _WIDE / 2 + bend[0] * _COLUMN, bend[1] * _ROW_HEIGHT - 10
    from_x, from_y = _edge_of_box(from_x, from_y, mid_x, mid_y)
    to_x, to_y = _edge_of_box(to_x, to_y, mid_x, mid_y)
    return (
        f'<path d="M{from_x:.1f} {from_y:.1f}Q{mid_x:.1f} {mid_y:.1f} {to_x:.1f} {to_y:.1f}" fill="none" '
        f'stroke="{_SEA}" stroke-width="1.4" marker-end="url(#tip)"><title>{start} to {end}</title></path>'
    )


def _edge_of_box(x: float, y: float, towards_x: float, towards_y: float) -> tuple[float, float]:
    """Where the line from a box's centre leaves the box."""
    along_x, along_y = towards_x - x, towards_y - y
    scale = min(
        (_WIDE / 2 + 2) / abs(along_x) if along_x else math.inf, (_HIGH / 2 + 2) / abs(along_y) if along_y else math.inf
    )
    return x + along_x * scale, y + along_y * scale
