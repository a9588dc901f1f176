"""A shortcut past aiohttp's tasks for the common case: a request that came whole on a connection where nothing waits.

aiohttp makes a task, a future and half a dozen calls of each request, so that handlers may await. The core never
does. What such a request costs outside of the core is halved here; everything else takes aiohttp's way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.web.connection import Connection


class Shortcut:
    """Stands before aiohttp's parser and keeps back the requests that `connection` answers at once."""

    def __init__(self, parser: Any, connection: Connection) -> None:
        self._parser = parser
        self._connection = connection

    def feed_data(self, data: bytes) -> tuple[Any, bool, bytes]:
        """As the parser's: the requests that are still to be answered; and that no protocol was upgraded."""
        while True:
            messages, upgraded, tail = self._parser.feed_data(data)
            while upgraded:  # an offer that is not taken up: what comes behind it are requests
                self._parser.set_upgraded(False)
                more, upgraded, tail = self._parser.feed_data(tail)
                messages = [*messages, *more]
            done = 0
            for message, payload in messages:
                if not payload.is_eof() or not self._connection.answered_at_once(message, payload):
                    break
                self._parser.message_consumed()
                done += 1
            if done < len(messages) or done < 2:
                return messages[done:], False, b""
            data = b""  # of many requests in a row the parser gives out some at a time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)
