"""Where the customer's browser goes after SCA: the TPP's address with the outcome appended (SPEC 5.3.4, 5.3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote_plus, urlencode

# The names of either outcome: whichever stands in the address's own query could be taken for the bank's.
RESERVED = frozenset({"psu-id", "psu-corporate-id", "tpp-session-id", "context", "system", "status", "code", "message"})


def _appended(uri: str, values: Mapping[str, str]) -> str:
    """`uri` (without fragment) with `values` appended; it is kept byte for byte but for RESERVED names in its query."""
    address, _, own = uri.partition("?")
    parts = own.split("&") if own else []
    kept = [part for part in parts if unquote_plus(part.partition("=")[0]) not in RESERVED]
    return f"{address}?{'&'.join([*kept, urlencode(values, quote_via=quote)])}"


def success(uri: str, *, psu_id: str, agreement: str | None, session_id: str, context: str) -> str:
    """The address after a completed SCA."""
    values = {"psu-id": psu_id}
    if agreement is not None:
        values["psu-corporate-id"] = agreement
    values |= {"tpp-session-id": session_id, "context": context}
    return _appended(uri, values)


def failure(uri: str, *, status: int, code: str, message: str, system: str | None = None) -> str:
    """The address after a failed SCA; `system` names the internal system at fault in case of a server error."""
    values = {"system": system} if system else {}
    values |= {"status": str(status), "code": code, "message": message}
    return _appended(uri, values)
