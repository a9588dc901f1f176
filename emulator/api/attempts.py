"""Slows down who guesses a token: each address has to wait longer after each wrong one."""

from __future__ import annotations

import hmac
from time import monotonic

_FREE = 5  # wrong tokens in a row without a wait
_LONGEST = 60.0  # seconds
_FORGOTTEN = 900.0  # seconds after the last wrong token
_MOST = 10_000  # addresses


class Attempts:
    """Compares what is given with the tokens, in real time.

    After some wrong tokens in a row an address must wait 1 second, then 2, 4 and so on; meanwhile nothing of it is
    compared, as an answer would tell a guesser something. Requests without an address (in this process) never wait.
    """

    def __init__(self, *tokens: str) -> None:
        self._tokens = [token.encode() for token in tokens]
        self._wrong: dict[str, tuple[int, float]] = {}  # wrong tokens in a row and the time of the last, by address

    def wait(self, address: str | None) -> int:
        """Whole seconds until an address may try again; 0 if it may."""
        wrong, last = self._wrong.get(address or "", (0, 0.0))
        if wrong <= _FREE:
            return 0
        return max(0, round(last + min(2.0 ** (wrong - _FREE - 1), _LONGEST) - monotonic() + 0.499))

    def matches(self, given: str, address: str | None) -> bool:
        """Whether `given` is one of the tokens; only to be asked when there is no `wait`."""
        if any(hmac.compare_digest(given.encode(), token) for token in self._tokens):
            self._wrong.pop(address or "", None)
            return True
        if address is not None:
            now = monotonic()
            wrong, last = self._wrong.pop(address, (0, now))
            self._wrong[address] = (wrong + 1 if now - last < _FORGOTTEN else 1, now)
            if len(self._wrong) > _MOST:
                del self._wrong[next(iter(self._wrong))]  # the one that has tried least recently
        return False
