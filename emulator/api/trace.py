"""The trace that a client's request belongs to: the header `traceparent` (W3C Trace Context).

The bank records no spans of its own, so it passes the header on as it came: what a notification causes at the TPP then
hangs below the request that asked for it. A malformed header is ignored, as the recommendation demands.
"""

from __future__ import annotations

import re

from emulator.api.messages import HeaderPairs

TRACEPARENT = "traceparent"
_FORM = (  # compiled, and kept, by `re` when the first request has the header
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})-"
    r"(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


def traceparent(headers: HeaderPairs) -> str | None:
    """The traceparent of a request, in version 00; None without one, and for one that is malformed or repeated."""
    given = [value for name, value in headers if name.lower() == TRACEPARENT]
    form = re.fullmatch(_FORM, given[0].strip(" \t")) if len(given) == 1 else None
    if form is None:
        return None
    if form["version"] == "00":
        return None if form["more"] is not None else form[0]
    return f"00-{form['trace']}-{form['span']}-{int(form['flags'], 16) & 1:02x}"  # of a later version: what is known
