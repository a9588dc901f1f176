"""The requested part of a transaction list, and the links to the next and previous parts (accounts.md#transactions)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from emulator.api.operation import Call
from emulator.api.query import QueryParameter
from emulator.bank.accounts.transactions import SHELVES, Window

if TYPE_CHECKING:
    from emulator.api.shapes.parts import Link, Links

EARLIEST = timedelta(days=90)  # the default period of the list, and the longest one without the PSU
DEFAULT_LIMIT = 100
MAX_LIMIT = 500

_OFFSET = QueryParameter("offset", "int", "The number of transactions to skip", default=0)

TRANSACTION_LIST = (
    QueryParameter("bookingStatus", "enum", "Which transactions are listed", values=tuple(SHELVES), default="both"),
    QueryParameter("dateFrom", "date", "The earliest date; left out: 90 days back"),
    QueryParameter("dateTo", "date", "The latest date", not_before="dateFrom"),
    _OFFSET,
    QueryParameter(
        "limit", "int", "How many transactions are returned", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT
    ),
)
SANDBOX_TRANSACTION_LIST = (
    QueryParameter("fromDate", "date", "The earliest date"),
    QueryParameter("toDate", "date", "The latest date", not_before="fromDate"),
    _OFFSET,
    QueryParameter("limit", "int", "How many transactions are returned", minimum=1, default=DEFAULT_LIMIT),
)
WITH_BALANCE = (QueryParameter("withBalance", "boolean", "Whether the balances come with the account", default=False),)


def unattended(call: Call) -> bool:
    """Whether the PSU is not present at the TPP: no PSU-IP-Address."""
    return call.headers.get("psu-ip-address") is None


def window(call: Call, *, grouped: bool = True, all_pending: bool = False) -> Window:
    """The window that the query selects; without the PSU nothing older than 90 days.

    assumed: an earlier dateFrom then counts as 90 days ago; the links contain that date, or omit it if it is after
    dateTo.
    """
    query = call.query
    earliest = (call.bank.clock.today() - EARLIEST).isoformat()
    first, last = query.get("dateFrom") or earliest, query.get("dateTo")
    if unattended(call):
        first = max(first, earliest)
    return Window(
        status=query["bookingStatus"],
        first=first,
        last=last,
        offset=query["offset"],
        limit=query["limit"],
        grouped=grouped,
        all_pending=all_pending,
    )


def sandbox_window(call: Call) -> Window:
    """The window of a sandbox listing: its dates, offset and limit."""
    query = call.query
    return Window(first=query.get("fromDate"), last=query.get("toDate"), offset=query["offset"], limit=query["limit"])


def page_links(call: Call, asked: Window, account: str, *, more: bool) -> Links:
    """`self`, `account`, and `next` and `previous` if there is such a page; they contain the dates of this page.

    `account`: the path of the account or card account.
    """
    # Statuses and dates need no escapes in a query.
    address = f"{call.path}?bookingStatus={asked.status}"
    # A dateFrom after dateTo would be refused; omitted, it has the same effect.
    if asked.first is not None and (asked.last is None or asked.first <= asked.last):
        address += f"&dateFrom={asked.first}"
    if asked.last is not None:
        address += f"&dateTo={asked.last}"

    def link(offset: int) -> Link:
        return call.link(f"{address}&offset={offset}&limit={asked.limit}")

    links = {"self": link(asked.offset), "account": call.link(account)}
    if more:
        links["next"] = link(asked.offset + asked.limit)
    if asked.offset:
        links["previous"] = link(max(0, asked.offset - asked.limit))
    return links
