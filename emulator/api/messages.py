"""Input and output of the core: a request, and an answer, a stream of events, or an answer that takes several steps."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from emulator.bank.fixtures import PreparedFixture
from emulator.bank.threads import Lasting
from emulator.store import Documents

HeaderPairs = Collection[tuple[str, str]]
Push = Callable[[bytes | None], None]
Unsubscribe = Callable[[], None]


@dataclass(slots=True, eq=False, repr=False)
class Fields(Collection[tuple[str, str]]):
    """Header names as sent and stripped values, in order and with repeats; `lower`: the names in lower case."""

    names: tuple[str, ...]
    lower: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of(cls, pairs: HeaderPairs) -> Fields:
        """Fields from pairs of names and values."""
        names, values = tuple(name for name, _ in pairs), tuple(value.strip(" \t") for _, value in pairs)
        return cls(names, tuple(map(str.lower, names)), values)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.names, self.values, strict=True)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, pair: object) -> bool:
        return pair in tuple(self)


def values_of(headers: HeaderPairs, name: str) -> list[str]:
    """The values of the headers with a name, which is in lower case, in order."""
    if isinstance(headers, Fields) and name not in headers.lower:
        return []
    return [value for other, value in headers if other.lower() == name]


@dataclass(slots=True)
class Request:
    """One request as received.

    `target` is path and query exactly as sent; `headers` are the names as sent and the values as text, in order
    and with repeats; `base` is `http://host:port` for absolute links; `prefix` is "", "/banks/NAME", either
    followed by "/api-sandbox", and is still part of `target`. `unfinished`: the remaining steps of a long operation.
    `prepared`: the documents that it restores, if they were prepared in a thread. `peer`: the client's address, None
    within this process.
    """

    method: str
    target: str
    headers: HeaderPairs = ()
    body: bytes = b""
    base: str = "http://127.0.0.1:8080"
    prefix: str = ""
    unfinished: Unfinished | None = None
    prepared: PreparedFixture | None = None
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the web server delivers an answer: after `delay` seconds of real time, or by closing the connection instead.

    `disconnect` "before" means that the core did not act, "after" that it did; the client sees no difference.
    """

    delay: float = 0.0
    disconnect: Literal["before", "after"] | None = None


AT_ONCE = Delivery()
HANG_UP = Delivery(disconnect="after")
ELSEWHERE = Delivery()
"""Not delivered at all: another process is the home of the bank by now, and the request is passed on to it."""


@dataclass(frozen=True, slots=True)
class BodyParts:
    """A body that is produced in parts: `size` bytes in total; each of `pieces` is produced when it is sent."""

    size: int
    pieces: Iterator[bytes] | AsyncIterator[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, also those that another process sends."""
        if isinstance(self.pieces, AsyncIterator):
            async for piece in self.pieces:
                yield piece
        else:
            for piece in self.pieces:
                yield piece

    def joined(self) -> bytes:
        """All pieces of this process as one."""
        if isinstance(self.pieces, AsyncIterator):
            raise TypeError("the pieces come from another process")
        return b"".join(self.pieces)


@dataclass(slots=True)
class Response:
    """One answer; the HTTP server adds Content-Length, Date, Server, and gzip if the client accepts it.

    `parts`: the rest of the body after `body`, or None. `rest`: what is to be done before it is sent, in steps.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    delivery: Delivery = AT_ONCE
    parts: BodyParts | None = None
    rest: Iterator[object] | None = None


@dataclass(slots=True)
class Stream:
    """An answer without an end: server-sent events.

    `subscribe` takes a function to which chunks are pushed, from the same thread, and returns a function that ends the
    subscription. Pushing None ends the answer.
    """

    status: int
    headers: list[tuple[str, str]]
    subscribe: Callable[[Push], Unsubscribe]


Steps = Generator[object, None, Response | Stream]
"""Work that returns an answer: each `next` does a part that is complete in itself.

A step gives None as long as nothing of the request itself was done, so that it may be begun again; the Future of what
another thread does where nothing but that is waited for; else anything. After a Lasting one the work is not abandoned
where its client goes away.
"""


class Unfinished:
    """An answer that takes several steps; other requests are answered between two of them.

    `last`: what the last step gave. `begun`: something of the request itself was done. `ended`: there is no further
    step. `failed`: why what the last step changed was undone; the next step raises it in the work. `lasts`: it goes on
    where the client has gone. `documents`: those of its bank, where another process may have the bank between two
    steps.
    """

    __slots__ = ("__weakref__", "_steps", "begun", "documents", "ended", "failed", "last", "lasts")

    def __init__(self, steps: Generator[object, None, Answered]) -> None:
        self._steps = steps
        self.last: object = None
        self.begun = self.lasts = False
        self.ended = False
        self.failed: Exception | None = None
        self.documents: Documents | None = None

    def step(self) -> Response | Stream | Unfinished:
        """Do the next part; returns the answer, or this object if more is to be done."""
        failed, self.failed = self.failed, None
        try:
            self.last = next(self._steps) if failed is None else self._steps.throw(failed)
        except StopIteration as end:
            self._end()
            answer: Answered = end.value
            return answer
        except BaseException:
            self._end()
            raise
        self.begun = self.begun or not (self.last is None or isinstance(self.last, Future))
        self.lasts = self.lasts or isinstance(self.last, Lasting)
        return self

    @property
    def awaits(self) -> Future[Any] | None:
        """The future of a thread's result, if the next step only waits for it and it is not done."""
        return self.last if isinstance(self.last, Future) and not self.last.done() else None

    def _end(self) -> None:
        self.ended = True
        self.last = None  # the request log keeps this object with its request, but not what a thread has read

    def abandon(self) -> None:
        """Stop the work; the changes of completed steps stay."""
        self._steps.close()


Answered = Response | Stream | Unfinished


def finished(answer: Answered) -> Response | Stream:
    """The answer after all of its steps, which are run one after the other; its body as a whole."""
    while isinstance(answer, Unfinished):
        answer = answer.step()
    if isinstance(answer, Response) and answer.parts is not None:
        answer.body, answer.parts = answer.body + answer.parts.joined(), None
    return answer


TRACEPARENT = "traceparent"
_FORM = (  # compiled, and kept, by `re` when the first request has the header
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})-"
    r"(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


def traceparent(headers: HeaderPairs) -> str | None:
    """The trace of a request (W3C Trace Context), in version 00; None without one, or if it is malformed or repeated.

    The bank records no spans of its own, so it passes the header on as it came: what a notification causes at the TPP
    then hangs below the request that asked for it. A malformed header is ignored, as the recommendation demands.
    """
    given = values_of(headers, TRACEPARENT)
    form = re.fullmatch(_FORM, given[0].strip(" \t")) if len(given) == 1 else None
    if form is None:
        return None
    if form["version"] == "00":
        return None if form["more"] is not None else form[0]
    return f"00-{form['trace']}-{form['span']}-{int(form['flags'], 16) & 1:02x}"  # of a later version: what is known
