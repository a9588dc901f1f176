"""The addresses and ids that the answers to a TPP contain: what it may ask for without making up an address."""

from __future__ import annotations

import re
from collections import OrderedDict

MOST_LINKS = 50_000  # addresses and ids that are kept for a TPP
PAGES = ("getTransactions", "getCardTransactions")
END_OF_PAGE = 2048  # the last bytes of a page, which hold its links; the rest is not judged
# Answers are compact (CONTRACT 3.3), and a search for a literal is many times faster than one for optional blanks. The
# prefix of `links: absolute` and of named banks is left out; the SCA pages have no other use for a TPP.
_LINKS = re.compile(r'href":"[^"\\]*?(/v1/[^"\\]+)"')
_IDS = re.compile(r'd":"([^"\\]+)"')


class Links:
    """The addresses (with query) and ids in the answers to one TPP; the oldest are dropped."""

    def __init__(self) -> None:
        self.addresses: OrderedDict[str, None] = OrderedDict()
        self.ids: OrderedDict[str, None] = OrderedDict()

    def add(self, body: bytes) -> None:
        """Add every link to the TPP interface and every id of an answer."""
        text = body.decode("utf-8", "replace")
        _add(self.addresses, _LINKS.findall(text))
        _add(self.ids, _IDS.findall(text))


def _add(known: OrderedDict[str, None], entries: list[str]) -> None:
    known.update(dict.fromkeys(entries))
    while len(known) > MOST_LINKS:
        known.popitem(last=False)
