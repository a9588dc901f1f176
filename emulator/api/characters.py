"""The characters that the bank's systems cannot process, wherever they stand in a request (SPEC 1, CONTRACT 3.2)."""

from __future__ import annotations

import re

# Control characters, halves of a surrogate pair, and what lies outside the basic multilingual plane (emoji).
UNPROCESSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U00010000-\U0010ffff]")


def kind_of(character: str) -> str:
    """What an unprocessable character is, with its number, for a sentence."""
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        kind = "half of a surrogate pair"
    elif code > 0xFFFF:
        kind = "a character outside the basic multilingual plane, such as an emoji"
    else:
        kind = "a control character"
    return f"{kind} (U+{code:04X})"
