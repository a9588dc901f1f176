"""A shortcut past aiohttp's tasks for the common case: a request that came whole on a connection where nothing waits.

aiohttp makes a task, a future and half a dozen calls of each request, so that handlers may await. The core never
does. What such a request costs outside of the core is halved here; everything else takes aiohttp's way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import InvalidURLError

from emulator.web.refusals import sent_id

END = b"\r\n\r\n"


def several(data: bytes) -> bool:
    """Whether something stands behind the end of a head in `data`."""
    return 0 <= data.find(END) < len(data) - len(END)


def pieces(data: bytes) -> list[bytes]:
    """`data` cut behind each end of a head."""
    *heads, rest = data.split(END)
    return [*(head + END for head in heads), *([rest] if rest else [])]


def behind(data: bytes, payload: Any) -> int:
    """How many bytes follow in `data` on its last whole request, which has this body; 0 where that cannot be told."""
    if data.endswith(END):  # of a head, or of a body in chunks
        return 0
    end = END
    if payload.total_bytes:
        if not payload._buffer:  # it was long, and is taken out
            return 0
        end = payload._buffer[-1]
        if data.endswith(end):
            return 0
    at = data.rfind(end)
    return 0 if at < 0 else len(data) - at - len(end)


def _refusal(raised: HttpProcessingError | ValueError, begun: bytes | bytearray) -> HttpProcessingError:
    """What the parser raised of a head in `begun`, with its X-Request-ID.

    Before 3.14.4 aiohttp's lets a ValueError pass, of a target that is no address.
    """
    refusal = raised if isinstance(raised, HttpProcessingError) else InvalidURLError("")
    refusal.headers = sent_id(begun)
    return refusal


class Shortcut:
    """Stands before aiohttp's parser, and gives aiohttp only what was not answered at once.

    `begun`: kept by the connection, what has come by now of a head that is not whole; `renewed` makes a new parser.
    """

    def __init__(self, parser: Any, begun: bytearray, renewed: Callable[[], Any]) -> None:
        self._parser = parser
        self._begun = begun
        self._renewed = renewed
        self.lost = False  # requests of a piece that the parser has refused may be
        self._left: Sequence[Any] | HttpProcessingError | None = None  # what `answered` has taken from the parser

    def answered(self, data: bytes, at_once: Callable[[Any, Any], bool]) -> int | None:
        """How many bytes of a next request follow in `data` on those that it ends, all answered by `at_once`.

        None: aiohttp has to be called with the same data; it gets what is left of them.
        """
        parser = self._parser
        fed, last = data, None
        while True:
            try:
                messages, upgraded, tail = parser.feed_data(fed)
                if upgraded:
                    messages = self._declined(messages, tail)
            except (HttpProcessingError, ValueError) as raised:
                self._left = _refusal(raised, self._begun + data if last is None else b"")
                self.lost = last is None and several(data)
                return None
            for done, (message, last) in enumerate(messages):
                if not last.is_eof() or not at_once(message, last):
                    self._left = messages[done:]
                    return None
                parser.message_consumed()
            if not messages:
                break
            if len(messages) == 1 and not (rest := behind(data, last)):
                return rest
            fed = b""  # of many requests in a row the parser gives out some at a time
        if last is None:
            self._left = ()
            return None
        return behind(data, last)

    def begin_anew(self) -> None:
        """Forget what the parser has refused, and go on with a new one."""
        self._left, self._parser, self.lost = None, self._renewed(), False

    def feed_data(self, data: bytes) -> tuple[Sequence[Any], bool, bytes]:
        """As the parser's, but for what was answered: requests or an error; and that no protocol was upgraded."""
        left, self._left = self._left, None
        if isinstance(left, HttpProcessingError):
            raise left
        if left is None:
            try:
                left, upgraded, tail = self._parser.feed_data(data)
                if upgraded:
                    left = self._declined(left, tail)
            except (HttpProcessingError, ValueError) as raised:
                raise _refusal(raised, self._begun + data) from None
        return left, False, b""

    def _declined(self, messages: Sequence[Any], tail: bytes) -> Sequence[Any]:
        """`messages` and those in `tail`: an offer to upgrade is not taken up, what comes behind it are requests."""
        upgraded = True
        while upgraded:
            self._parser.set_upgraded(False)
            more, upgraded, tail = self._parser.feed_data(tail)
            messages = [*messages, *more]
        return messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)
