"""What follows the requests of a process once their answers are final: metrics, and a line of the log for each.

An answer is final when its changes are stored, or when it has become 503 because they are not. Until the end of its
turn an exchange is only noted, and only while somebody follows: otherwise a request costs one look at an empty list.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from emulator.api.log import MOST_EXCHANGES, Exchange
from emulator.api.messages import ELSEWHERE, traceparent

logger = logging.getLogger(__name__)
requests = logging.getLogger("emulator.requests")

Ended = tuple[str, Exchange]
"""A request, with the name of its bank."""


class Outcomes:
    """The requests of all banks of a process; `followers` are called with each."""

    def __init__(self) -> None:
        self.followers: list[Callable[[str, Exchange], None]] = []
        self._noted: deque[Ended] = deque(maxlen=MOST_EXCHANGES)

    def note(self, bank: str, exchange: Exchange) -> None:
        """An exchange whose answer is computed, but not final."""
        self._noted.append((bank, exchange))

    def take(self) -> Sequence[Ended]:
        """What was noted since the last call, to be passed to `tell` when the answers are final."""
        if not self._noted:
            return ()
        noted = list(self._noted)
        self._noted.clear()
        return noted

    def tell(self, ended: Sequence[Ended]) -> None:
        """Pass exchanges with final answers on; never raises, as the answers may be sent."""
        for bank, exchange in ended:
            if exchange.response is not None and exchange.response.delivery is ELSEWHERE:
                continue  # its new home answers it
            for follow in self.followers:
                try:
                    follow(bank, exchange)
                except Exception:
                    logger.exception("a request could not be counted or logged")


def log_request(bank: str, exchange: Exchange) -> None:
    """Write a line about a request; `--log-format json` shows its fields as members."""
    request = exchange.request
    target, reason = exchange.masked([request.target, "; ".join(map(_reason, exchange.messages()))])
    fields = {
        "requestId": exchange.request_id,
        "bank": bank,
        "tpp": exchange.tpp,
        "operation": exchange.operation,
        "status": exchange.status,
        "milliseconds": exchange.milliseconds,
        "reason": reason,
        "rules": list(exchange.rules),
        "traceparent": traceparent(request.headers),
    }
    line = f"{request.method} {target} {exchange.status}"
    # not by its `info`, which looks for the line of code that called it
    record = logging.LogRecord(requests.name, logging.INFO, __file__, 0, line, None, None)
    record.fields = {name: value for name, value in fields.items() if value not in (None, "", [])}
    if requests.isEnabledFor(logging.INFO):
        requests.handle(record)


def _reason(message: dict[str, str]) -> str:
    about = " ".join(part for part in (message["code"], message.get("path")) if part)
    return f"{about}: {message['text']}" if message.get("text") else about
