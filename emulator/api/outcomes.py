"""What follows the requests of a process once their answers are final: metrics, and a line of the log for each.

An answer is final when its changes are stored, or when it has become 503 because they are not. Until the end of its
turn an exchange is only noted, and only while somebody follows: otherwise a request costs one look at an empty list.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from emulator.api.log import MOST_EXCHANGES, Exchange
from emulator.api.messages import ELSEWHERE

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
    shown = exchange.summary()
    fields: dict[str, Any] = {
        "requestId": exchange.request_id,
        "bank": bank,
        "tpp": shown.get("tpp"),
        "operation": shown.get("operation"),
        "status": shown["status"],
        "milliseconds": shown["milliseconds"],
        "reason": "; ".join(_reason(message) for message in shown.get("messages", ())),
        "rules": shown.get("rules"),
        "traceparent": shown.get("traceparent"),
    }
    fields = {name: value for name, value in fields.items() if value not in (None, "", [])}
    requests.info("%s %s %d", shown["method"], shown["target"], shown["status"], extra={"fields": fields})


def _reason(message: dict[str, str]) -> str:
    about = " ".join(part for part in (message["code"], message.get("path")) if part)
    return f"{about}: {message['text']}" if message.get("text") else about
