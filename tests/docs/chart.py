"""The chart of the README: ratios out of the benchmark's own output, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, RIGHT = 860, 34, 390, 90
LONGEST = 2.0  # a longer bar ends here; its number, with an arrow, says how long it is
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def chart(rows: Iterable[Mapping[str, Any]]) -> str:
    """A bar for each ratio (unit `x`), with a mark at its goal; readable on light and dark pages.

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
    drawn = [
        f'<text x="{LEFT - 10}" y="{middle + 4:g}" text-anchor="end" fill="#222222">{escape(row["name"])}</text>',
        f'<rect x="{LEFT}" y="{top + 7}" width="{value:.1f}" height="{ROW - 14}" fill="#2f6f8f"/>',
    ]
    if goal is not None and goal <= LONGEST:
        at = LEFT + room * goal / LONGEST
        drawn.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top + 3}" y2="{top + ROW - 3}" stroke="#b3541e" stroke-width="2"/>'
        )
    drawn.append(f'<text x="{LEFT + value + 6:.1f}" y="{middle + 4:g}" {number}>{row["value"]:.2f}{arrow}</text>')
    return drawn
