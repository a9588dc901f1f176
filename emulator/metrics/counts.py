"""What a process counts for its metrics (page.py): plain numbers, changed where things happen.

Compactions and requests passed on are seldom and always counted. All else begins with the first scrape (`on`), so that
a process that nobody scrapes pays nothing; the first scrape counts the requests that the request logs still have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate

from emulator.api.log import Exchange

NAMED = 50  # banks with samples of their own
OTHER = "other"  # the bank of all others; the requests of a bank of this name are among them
RANKED = 1000  # banks whose requests are counted, to know which are the busiest
PARTS = frozenset({"_emulator", "console", "docs", "health", "metrics", "my", "openapi.json", "ready", "sca", "static"})
"""Parts of the addresses that are not the TPP interface."""
CODES = 100  # rules may answer with codes of their own
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
TURN_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Histogram:
    """How many values are at most each of `bounds`, and their sum."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def state(self) -> tuple[list[tuple[str, float]], float]:
        """The upper bound of each bucket with the number of values up to it, and the sum, as they are now."""
        up_to = map(float, accumulate(self._counts))
        return list(zip((*map(str, self.bounds), "+Inf"), up_to, strict=True)), self.sum


class BanksCounted:
    """Requests by bank, operation and status: the busiest banks by name, the others as one.

    A bank that gets a name shows all its requests, and OTHER keeps those that it had before: so neither ever falls,
    which Prometheus would take for a restart, nor jumps.
    """

    def __init__(self) -> None:
        self._banks: dict[str, Counter[tuple[str, int]]] = {}
        self._others: Counter[tuple[str, int]] = Counter()
        self._named: set[str] = set()

    def add(self, bank: str, operation: str, status: int) -> None:
        own = self._banks.get(bank)
        if own is None:
            if len(self._banks) >= RANKED:
                self.rank(lambda _: True)
            own = self._banks[bank] = Counter()
            if len(self._named) < NAMED and bank != OTHER:
                self._named.add(bank)
        own[operation, status] += 1
        if bank not in self._named:
            self._others[operation, status] += 1

    def rank(self, exists: Callable[[str], bool]) -> None:
        """Name the busiest banks of those that exist, and forget the least busy ones."""
        busiest = sorted(
            filter(exists, self._banks),
            key=lambda bank: (self._banks[bank].total(), bank in self._named),
            reverse=True,
        )
        self._named = set([bank for bank in busiest if bank != OTHER][:NAMED])
        self._banks = {bank: self._banks[bank] for bank in busiest[: RANKED // 2]}

    def samples(self) -> list[tuple[tuple[str, str, str], int]]:
        """Bank, operation and status, with the number of requests."""
        named = ((bank, self._banks[bank]) for bank in sorted(self._named))
        return [
            ((bank, operation, str(status)), count)
            for bank, counts in (*named, (OTHER, self._others))
            for (operation, status), count in counts.items()
        ]


class ProcessCounts:
    def __init__(self) -> None:
        self.on = False
        self.requests = BanksCounted()
        self.durations: dict[str, Histogram] = {}  # by operation
        self.refusals: Counter[str] = Counter()  # by code
        self.others: Counter[tuple[str, int]] = Counter()  # by part and status
        self.turns = Histogram(TURN_SIZES)
        self.commits = Histogram(SECONDS)
        self.compactions = 0
        self.passed_on = 0
        self.leases: Callable[[], int] | None = None  # with --store

    def answered(self, part: str, status: int) -> None:
        """Count a request of any kind, by the first segment of its address, unless `request` does."""
        if part in PARTS:
            self.others[part, status] += 1

    def request(self, bank: str, exchange: Exchange) -> None:
        """Count a request whose answer is final, once."""
        if exchange.counted:
            return
        exchange.counted = True
        operation, status = exchange.operation or "unknown", exchange.status
        self.requests.add(bank, operation, status)
        durations = self.durations.get(operation)
        if durations is None:
            durations = self.durations[operation] = Histogram(SECONDS)
        durations.add(exchange.seconds)
        if status >= 400:
            for code in {message["code"] for message in exchange.messages()}:
                known = code in self.refusals or len(self.refusals) < CODES
                self.refusals[code if known else OTHER] += 1
