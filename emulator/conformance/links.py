"""The addresses and ids that the answers to a TPP contain: what it may ask for without making up an address."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_KNOWN = 50_000  # addresses, and as many ids, that are kept for a TPP
PAGES = ("getTransactions", "getCardTransactions")
END_OF_PAGE = 2048  # the last bytes of a page, which hold its links; the rest is not judged
# Answers are compact (no blanks), and a search for a literal is many times faster than one for optional blanks. The
# prefix of `links: absolute` and of named banks is left out.
_LINKS = re.compile(r'/v1/[^"\\]+')
_IDS = re.compile(r'd":"([^"\\]+)"')


class Known:
    """The most recent of the texts that were added: at least half of MOST_KNOWN, if there were so many."""

    __slots__ = ("_older", "_recent")

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._older: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Add texts; the older half of them is dropped when there are too many."""
        self._recent.update(texts)
        if len(self._recent) >= MOST_KNOWN // 2:
            self._older, self._recent = self._recent, set()

    def __contains__(self, text: str) -> bool:
        return text in self._recent or text in self._older


class Links:
    """The addresses (with query) and ids in the answers to one TPP."""

    def __init__(self) -> None:
        self.addresses = Known()
        self.ids = Known()

    def add(self, body: bytes) -> None:
        """Add every link to the TPP interface and every id of an answer."""
        text = body.decode("utf-8", "replace")
        self.addresses.add(_LINKS.findall(text))
        self.ids.add(_IDS.findall(text))
