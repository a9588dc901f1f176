"""Where the customer's browser goes after SCA: the TPP's address with the outcome appended (SPEC 5.3.4, 5.3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote_plus, urlencode, urlsplit, urlunsplit

SUCCESS = ("psu-id", "psu-corporate-id", "tpp-session-id", "context")
FAILURE = ("system", "status", "code", "message")


def _appended(uri: str, values: Mapping[str, str], reserved: tuple[str, ...]) -> str:
    """`uri` with `values` appended; its own query is kept byte for byte, reserved names in it are replaced."""
    parts = urlsplit(uri)
    own = [pair for pair in parts.query.split("&") if pair]
    kept = [pair for pair in own if unquote_plus(pair.partition("=")[0]) not in reserved]
    query = "&".join([*kept, urlencode(values, quote_via=quote)])
    if not parts.netloc and uri.partition(":")[2].startswith("//"):
        # urlunsplit drops the slashes of an app address without a host (tpp-app:///done).
        return f"{parts.scheme}://{parts.path}?{query}"
    return urlunsplit(parts._replace(query=query))


def success(uri: str, *, psu_id: str, agreement: str | None, session_id: str, context: str) -> str:
    """The address after a completed SCA."""
    values = {"psu-id": psu_id}
    if agreement is not None:
        values["psu-corporate-id"] = agreement
    values |= {"tpp-session-id": session_id, "context": context}
    return _appended(uri, values, SUCCESS)


def failure(uri: str, *, status: int, code: str, message: str, system: str | None = None) -> str:
    """The address after a failed SCA; `system` names the internal system at fault in case of a server error."""
    values = {"system": system} if system else {}
    values |= {"status": str(status), "code": code, "message": message}
    return _appended(uri, values, FAILURE)
