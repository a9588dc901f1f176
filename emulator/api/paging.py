"""Which part of a transaction list a request asks for, and the links to the parts beside it (CONTRACT 5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from emulator.api.operation import Call
from emulator.bank.errors import BankError
from emulator.bank.transactions import Window

EARLIEST = timedelta(days=90)  # as far back as the list goes by itself, and at all without the PSU (SPEC 8)
DEFAULT_LIMIT = 100
MAX_LIMIT = 500


def unattended(call: Call) -> bool:
    """Whether the PSU is not present at the TPP: no PSU-IP-Address (SPEC 8)."""
    return call.headers.get("psu-ip-address") is None


def window(call: Call, *, grouped: bool = True, all_pending: bool = False) -> Window:
    """The window that the query asks for; without the PSU nothing older than 90 days (SPEC 8).

    assumed: an earlier dateFrom is then taken as 90 days back, and the links show it.
    """
    query = call.query
    earliest = (call.bank.clock.today() - EARLIEST).isoformat()
    first = query.get("dateFrom") or earliest
    last = query.get("dateTo")
    if last is not None and query.get("dateFrom") is not None and first > last:
        raise BankError("FORMAT_ERROR", "dateFrom is after dateTo.", "dateFrom")
    if unattended(call):
        first = max(first, earliest)
    return Window(
        status=query.get("bookingStatus") or "both",
        first=first,
        last=last,
        offset=query.get("offset") or 0,
        limit=query.get("limit") or DEFAULT_LIMIT,
        grouped=grouped,
        all_pending=all_pending,
    )


def page_links(call: Call, asked: Window, *, more: bool) -> dict[str, Any]:
    """`self`, and `next` and `previous` where there is such a page; the dates in them stay as they are now."""
    links = {"self": _page_link(call, asked, asked.offset, asked.limit)}
    if more:
        links["next"] = _page_link(call, asked, asked.offset + asked.limit, asked.limit)
    if asked.offset:
        # The page before the second one may be shorter, so that no entry stands on two pages.
        start = max(0, asked.offset - asked.limit)
        links["previous"] = _page_link(call, asked, start, asked.offset - start)
    return links


def _page_link(call: Call, asked: Window, offset: int, limit: int) -> dict[str, Any]:
    query = {"bookingStatus": asked.status, "dateFrom": asked.first, "dateTo": asked.last}
    query |= {"offset": str(offset), "limit": str(limit)}
    path = _path(call)
    return call.link(path + "?" + urlencode({name: value for name, value in query.items() if value is not None}))


def _path(call: Call) -> str:
    path = call.operation.path
    for name, value in call.params.items():
        path = path.replace("{" + name + "}", value)
    return path
