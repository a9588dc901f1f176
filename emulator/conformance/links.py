"""The addresses and ids that the answers to a TPP contain: what it may ask for without making up an address."""

from __future__ import annotations

import re
from collections import OrderedDict

MOST_LINKS = 50_000  # addresses and ids that are kept for a TPP
PAGES = ("getTransactions", "getCardTransactions")
END_OF_PAGE = 2048  # the last bytes of a page, which hold its links; the rest is not judged
# Answers are compact (CONTRACT 3.3), and a search for a literal is many times faster than one for optional blanks.
_LINKS = re.compile(r'href":"([^"\\]+)"')
_IDS = re.compile(r'd":"([^"\\]+)"')


class Links:
    """The addresses (with query) and ids in the answers to one TPP; the oldest are dropped."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, None] = OrderedDict()
        self.ids: OrderedDict[str, None] = OrderedDict()

    def add(self, body: bytes) -> None:
        """Add every link and id of an answer."""
        text = body.decode("utf-8", "replace")
        for href in _LINKS.findall(text):
            self.addresses[_path(href)] = None
        for identity in _IDS.findall(text):
            self.ids[identity] = None
        for entries in (self.addresses, self.ids):
            while len(entries) > MOST_LINKS:
                entries.popitem(last=False)


def _path(href: str) -> str:
    """The path and query of a link, without the prefix of `links: absolute` and of named banks."""
    at = href.find("/v1/")
    return href[at:] if at > 0 else href
