"""The chart of the README: ratios out of the benchmark's own output, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, RIGHT = 760, 34, 330, 60
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def chart(rows: Iterable[Mapping[str, Any]]) -> str:
    """A bar for each ratio (unit `x`), with a mark at its goal; readable on light and dark pages."""
    ratios = [row for row in rows if row["unit"] == "x"]
    longest = max([1.0, *(max(row["value"], row["at_least"] or 0, row["at_most"] or 0) for row in ratios)])
    height = ROW * len(ratios) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT}>',
        "<title>Rates beside those of a plain server</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, row in enumerate(ratios):
        parts += _bar(row, 10 + ROW * number, longest)
    note = "The mark is the goal: at least for rates, at most for times."
    parts += [f'<text x="{LEFT}" y="{height - 12}" fill="#555555" font-size="11">{note}</text>', "</svg>", ""]
    return "\n".join(parts)


def _bar(row: Mapping[str, Any], top: int, longest: float) -> list[str]:
    room = WIDTH - LEFT - RIGHT
    value = room * row["value"] / longest
    middle = top + ROW / 2
    goal = row["at_least"] if row["at_least"] is not None else row["at_most"]
    drawn = [
        f'<text x="{LEFT - 10}" y="{middle + 4:g}" text-anchor="end" fill="#222222">{escape(row["name"])}</text>',
        f'<rect x="{LEFT}" y="{top + 7}" width="{value:.1f}" height="{ROW - 14}" fill="#2f6f8f"/>',
        f'<text x="{LEFT + value + 6:.1f}" y="{middle + 4:g}" fill="#222222">{row["value"]:.2f}</text>',
    ]
    if goal is not None:
        at = LEFT + room * goal / longest
        drawn.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top + 3}" y2="{top + ROW - 3}" stroke="#b3541e" stroke-width="2"/>'
        )
    return drawn
