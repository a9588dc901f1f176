"""A client with a bank of its own, which it asks for things in the service while something fails.

Nobody else changes that bank, so what it may be is a small set of states: each answer leaves those that explain it. A
request without an answer may be carried out once, for as long as a process or a network that stands still may hold it;
one that was answered with 503 has changed nothing. Requests that are sent together act in any order. A subclass says
what the states are, what it asks for, and what each request makes of a state.
"""

from __future__ import annotations

import random
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from time import monotonic
from typing import Any, Generic, TypeVar

from emulator.client import Identity, TppClient
from tests.postgres.cluster import ask, fine
from tests.postgres.history import Problem

State = TypeVar("State", bound=Hashable)
Kind = tuple[str, ...]
"""A request: a word, and what it is about."""

Answer = tuple[int, Hashable]
"""The status of an answer, and what it shows of the bank."""

World = tuple[State, frozenset[tuple[int, Kind]]]
"""What may be: the bank, and the requests without an answer that may still be carried out, with their numbers."""

BEGINS = "2026-03-02T09:00:00+01:00"
PATIENCE = 20.0  # seconds
# of what takes several steps: the process ends, or cannot store the next one
PARTS = ("the changes made so far remain", "generated and stored before")
LATE = 12.0  # seconds in which a request without an answer may still be carried out
UNANSWERED = 3  # of these, at most, but for what is sent together with others
UNCHANGED = (503, None)


@dataclass(frozen=True)
class Site:
    """Where the service is, a TPP that it knows, and when the run is over."""

    url: Callable[[], str]
    demo: Identity
    over: threading.Event


class OwnBank(threading.Thread, ABC):
    """Asks any process for things about a bank that nobody else asks for; notes what is wrong in `problems`."""

    kind: str
    bank_spec: Mapping[str, Any] = {"fixtures": "known-state", "now": BEGINS, "clock": "frozen"}

    def __init__(self, number: int, site: Site, seed: int) -> None:
        self.bank = f"{self.kind}-{number}"
        super().__init__(name=self.bank, daemon=True)
        self.problems: list[Problem] = []
        self.failure: str | None = None
        self.operations = 0
        self.chooser = random.Random(f"{self.bank} {seed}")
        self.site = site
        self._clients: dict[str, TppClient] = {}
        self._session: Mapping[str, str] | None = None
        self._done: list[str] = []

    @abstractmethod
    def begin(self) -> None:
        """Make the bank, before anything fails."""

    @abstractmethod
    def turn(self) -> None:
        """The next requests."""

    def end(self) -> None:
        """What is to be judged once nothing fails any more."""

    def run(self) -> None:
        """One turn after the other until it is over."""
        try:
            while not self.site.over.is_set():
                self.turn()
        except Exception as error:  # of the test itself
            self.failure = f"{self.name}: {type(error).__name__}: {error}"
            raise

    @property
    def url(self) -> str:
        """The address of the bank; a process that was started again has another port."""
        return f"{self.site.url()}/banks/{self.bank}"

    def control(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of a request to the bank's control interface."""
        return self.asked(f"{self.url}/_emulator/{path}", method, body)

    def asked(self, url: str, method: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of an unsigned request."""
        return self._whole(*ask(url, method, "", body, timeout=PATIENCE))

    def signed(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        """Status and body of a request of the TPP."""
        answer = self.tpp.request(method, path, **options)
        return self._whole(answer.status, answer.json() if answer.body else None)

    def _whole(self, status: int, answer: Any) -> tuple[int, Any]:
        if any(part in str(answer) for part in PARTS):
            raise HTTPException(str(answer))
        if status == 503:
            self._done.append(f"  {answer}")
        return status, answer

    @property
    def tpp(self) -> TppClient:
        """The TPP, with the session of `log_in`."""
        url = self.url
        if url not in self._clients:
            self._clients[url] = TppClient(url, self.site.demo, timeout=PATIENCE)
            if self._session is not None:
                self._clients[url].use_session(self._session)
        return self._clients[url]

    def make_bank(self) -> None:
        """Make the bank anew."""
        fine(lambda: self.asked(f"{self.site.url()}/_emulator/banks/{self.bank}", "PUT", dict(self.bank_spec)))

    def log_in(self, national_id: str) -> None:
        """A session and a consent of this customer."""
        self._session = self.needed("POST", "sessions", {"tpp": "demo", "nationalId": national_id})

    def needed(self, method: str, path: str, body: Any = None) -> Any:
        """What the bank's control interface answers, which must be fine."""
        return fine(lambda: self.control(method, path, body))

    def created(self, path: str, body: Any = None, *, attempts: int = 8) -> Any:
        """What a POST of the TPP has made: the same request until it is answered; None if it is not."""
        request_id = str(uuid.uuid4())
        for _ in range(attempts):
            try:
                status, answer = self.signed("POST", path, json=body, headers={"X-Request-ID": request_id})
            except (OSError, HTTPException, ValueError):
                status, answer = UNCHANGED
            if status == 201:
                return answer
            if status != 503:
                raise AssertionError(f"POST {path} was answered {status} {answer}")
            if self.site.over.wait(0.2):
                break
        return None


class Owner(OwnBank, Generic[State]):
    """Notes what no bank of its own can have answered."""

    reads: Collection[str] = ("read",)  # the words of requests that change nothing
    alone: Collection[str] = ()  # the words of requests that are not sent together with others
    width = 1  # requests that are sent together, at most

    def __init__(self, number: int, site: Site, seed: int) -> None:
        super().__init__(number, site, seed)
        self._worlds: set[World[State]] = set()
        self._silent: dict[int, tuple[float, Kind]] = {}  # by number: when a request got no answer, and its kind
        self._pool = ThreadPoolExecutor(self.width)

    @abstractmethod
    def prepare(self) -> State:
        """Make the bank, before anything fails; the first state."""

    @abstractmethod
    def weights(self, states: set[State]) -> Mapping[Kind, float]:
        """What may be asked for next, and how often, given what the bank may be."""

    @abstractmethod
    def request(self, kind: Kind) -> Answer:
        """Send a request; OSError, HTTPException, ValueError where no answer came."""

    @abstractmethod
    def step(self, state: State, kind: Kind) -> Iterable[tuple[State, Answer]]:
        """What a request may make of the bank, and the answer to each."""

    def unanswered(self, state: State, kind: Kind) -> Iterable[tuple[State, Kind | None]]:
        """What a request without an answer may make of the bank, and what is left to do of it, None for nothing."""
        return [(after, None) for after, _ in self.step(state, kind)]

    def begin(self) -> None:
        """Prepare, and begin with the first state."""
        self._worlds = {(self.prepare(), frozenset())}

    def turn(self) -> None:
        """The next requests; after several without an answer only those that change nothing.

        Each of them doubles what may be, and more: finding out would keep the processor from those that answer.
        """
        weights = self.weights(self.states())
        if len(self._silent) >= UNANSWERED:
            weights = {kind: weight for kind, weight in weights.items() if kind[0] in self.reads}
            if not weights:
                self._forget_old()
                self.site.over.wait(0.1)
                return
        number = self.chooser.randint(1, self.width)
        kinds = self.chooser.choices(list(weights), list(weights.values()), k=number)
        self.do(next(([kind] for kind in kinds if kind[0] in self.alone), kinds))

    def states(self) -> set[State]:
        """What the bank may be."""
        return {state for state, _ in self._worlds}

    def silent(self) -> Collection[tuple[float, Kind]]:
        """The requests that may still be carried out, and when they were sent."""
        return self._silent.values()

    def change(self, how: Callable[[State], State]) -> None:
        """What only this client knows has changed."""
        self._worlds = {(how(state), waiting) for state, waiting in self._worlds}

    def do(self, kinds: Sequence[Kind]) -> None:
        """These requests at the same time: which of the possible banks explain the answers?"""
        self._forget_old()
        answers = list(self._pool.map(self._answer, kinds) if len(kinds) > 1 else map(self._answer, kinds))
        silent = set[tuple[int, Kind]]()
        for kind, answer in zip(kinds, answers, strict=True):
            if answer is None and kind[0] not in self.reads:
                number = len(self._done)
                silent.add((number, kind))
                self._silent[number] = monotonic(), kind
            self._note(kind, answer)
        self.operations += len(kinds)
        todo = [(kind, answer) for kind, answer in zip(kinds, answers, strict=True) if answer not in (None, UNCHANGED)]
        before = self.states()
        self._worlds = set(self._explained(todo, silent))
        if not self._worlds:
            states = "\n".join(f"  {state}" for state in list(before)[:8])
            history = "\n".join(f"  {line}" for line in self._done[-30:])
            text = f"bank {self.bank} was one of\n{states}\nand the last answers are not explained:\n{history}"
            self.problems.append(Problem("history", text))
            self.site.over.wait()  # it cannot go on from there

    def _answer(self, kind: Kind) -> Answer | None:
        try:
            status, shown = self.request(kind)
        except (OSError, HTTPException, ValueError):
            self.site.over.wait(0.05)
            return None
        return UNCHANGED if status == 503 else (status, shown)

    def _explained(self, todo: Sequence[tuple[Kind, Answer]], silent: set[tuple[int, Kind]]) -> Iterator[World[State]]:
        """What may be once all these were answered, with those without an answer in any place or still to come."""
        every = frozenset(range(len(todo)))
        reached = set[tuple[State, frozenset[tuple[int, Kind]], frozenset[int]]]()
        new = [(state, waiting | silent, every) for state, waiting in self._worlds]
        while new:
            world = state, waiting, left = new.pop()
            if world in reached:
                continue
            reached.add(world)
            if not left:
                yield state, waiting
            for one in left:
                kind, answer = todo[one]
                new += [(after, waiting, left - {one}) for after, given in self.step(state, kind) if given == answer]
            for request in waiting:
                for after, rest in self.unanswered(state, request[1]):
                    also = frozenset[tuple[int, Kind]]() if rest is None else frozenset({(request[0], rest)})
                    new.append((after, waiting - {request} | also, left))

    def _forget_old(self) -> None:
        old = {number for number, (at, _) in self._silent.items() if at < monotonic() - LATE}
        self._worlds = {
            (state, frozenset(one for one in waiting if one[0] not in old)) for state, waiting in self._worlds
        }
        self._silent = {number: one for number, one in self._silent.items() if number not in old}

    def _note(self, kind: Kind, answer: Answer | None) -> None:
        text = "no answer" if answer is None else f"{answer[0]} {'' if answer[1] is None else answer[1]}"
        self._done.append(f"{' '.join(kind):<40} {text[:200]}")
