"""The TPP under test as a program: a command that is started anew, or a hook that is POSTed to, and what it claims.

It answers `GET {claims}/payments/{id}` with `{"state": "paid|open|failed"}` and `GET {claims}/accounts/{id}` with
`{"balance": "100.00", "transactions": 12}`. It omits a member that it does not know; other members are ignored.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Event
from typing import IO, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from emulator.bank.threads import aside
from emulator.conformance.check import decimal
from emulator.failure import Failed

T = TypeVar("T")

VISIT_TIMEOUT = 10.0  # seconds for an answer to the customer's browser
OUTPUT_SHOWN = 2000  # the last characters of the output of a command
STATES = ("paid", "open", "failed")
MEMBERS = {"payments": ("state",), "accounts": ("balance", "transactions")}
CLAIM_TIMEOUT = 5.0  # seconds for one claim
MOST_CLAIMED = 65_536  # bytes of one claim
LOOKING = 0.5  # seconds after which a signal is handled at the latest


class RunFailed(Failed):
    """The TPP cannot be run; the argument is a sentence. A search ends with it, and of a plan only the one check."""

    def __init__(self, text: str) -> None:
        super().__init__(text, page="find-the-fault")


class ClaimUnreadable(Exception):
    """The claims address gave no usable answer; the argument is a sentence that names the address."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the TPP ended: `problem` says how it failed, None if it did not; `printed`: the last that it printed.

    `refused`: its hook takes no runs.
    """

    problem: str | None = None
    printed: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The TPP: a command that is started for each run, a hook that is POSTed to, or a person where both are None.

    `claims`: the address of what it claims, with a placeholder for the name of the run; `timeout`: the seconds of one
    run; `stopped` ends those that go on.
    """

    command: str | None = None
    hook: str | None = None
    claims: str | None = None
    timeout: float = 30.0
    stopped: Event = field(default_factory=Event, compare=False)

    def run(self, environment: Mapping[str, str], accompany: Callable[[Future[Any]], bool]) -> Ending:
        """Run it once, beside `accompany`, which is given its end.

        `accompany` returns before the end if the run is over, or there is no time left; True: how it ends does not
        count. Raises RunFailed.
        """
        if self.command is None:
            answer = aside(partial(_post, self.hook or "", environment, self.timeout))
            return Ending() if accompany(answer) else answer.result()
        with tempfile.TemporaryFile() as output:
            with _started(self.command, environment, output) as process:
                is_over = accompany(aside(process.wait))
                status = process.poll()
            printed = _printed(output)
        return Ending(None if is_over else _failure(status, self.timeout, _reason(printed)), printed)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_open = build_opener(ProxyHandler({}), _NoRedirect()).open
_open_claim = build_opener(ProxyHandler({})).open


def credentials(folder: Path, certificate: str, key: str) -> dict[str, str]:
    """Write the certificate and key (PEM) of the TPP to files; returns their environment variables."""
    paths = {}
    for name, text in (("certificate", certificate), ("key", key)):
        path = folder / f"{name}.pem"
        path.touch(mode=0o600)
        path.write_text(text, encoding="ascii")
        paths[f"BANK_{name.upper()}"] = str(path)
    return paths


@contextmanager
def _started(command: str, environment: Mapping[str, str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The running command, which is killed at the end with all that it has started; raises RunFailed."""
    try:
        process = subprocess.Popen(
            shlex.split(command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise RunFailed(f"the command cannot be started: {error}") from None
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def awaited(future: Future[T]) -> T:
    """What a thread returns, for the main thread, which Ctrl+C ends.

    The wait ends now and then: a signal that arrives just before it is handled between two instructions only.
    """
    while not wait([future], timeout=LOOKING).done:
        pass
    return future.result()


def _printed(output: IO[bytes]) -> str:
    """The last that a command has printed, in whole lines, without what would act on a terminal."""
    before = output.seek(0, os.SEEK_END) - OUTPUT_SHOWN
    output.seek(max(0, before))
    text = output.read().decode("utf-8", "replace").strip()
    if before > 0:
        text = text.partition("\n")[2] or text
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)


_ERROR = re.compile(r"^(?!\s).*(error|exception|panic)", re.IGNORECASE)


def _reason(text: str) -> str:
    """The line of what a command has printed that says why it ended: the last one about an error, else the last.

    Python prints that line last; Node prints its stack and its version after it.
    """
    lines = text.splitlines()
    return next(filter(_ERROR.search, reversed(lines)), "".join(lines[-1:]))


def _failure(status: int | None, timeout: float, text: str) -> str | None:
    """How a command failed that has printed this text, None if it did not; its status is None if it was stopped."""
    if status == 0:
        return None
    last = f"; it printed: {text}" if text else ""
    if status is None:
        return f"the command did not end within {timeout:g} s and was stopped{last}"
    return f"the command ended with {'signal' if status < 0 else 'status'} {abs(status)}{last}"


def _post(hook: str, environment: Mapping[str, str], timeout: float) -> Ending:
    """POST the environment to the hook, with the texts of the credentials."""
    body = {name.removeprefix("BANK_").lower(): value for name, value in environment.items()}
    for name in ("certificate", "key"):
        body[name] = Path(body[name]).read_text(encoding="ascii")
    try:
        request = Request(hook, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
        with _open(request, timeout=timeout):
            return Ending()
    except HTTPError as error:
        return Ending(f"the hook answered {error.code}", refused=error.code < 500)
    except TimeoutError:
        return Ending(f"the hook did not answer within {timeout:g} s")
    except (OSError, ValueError) as error:
        return Ending(f"the hook cannot be reached: {_cause(error)}")
    except HTTPException:
        return Ending("the answer of the hook is not HTTP")


def _cause(error: Exception) -> object:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or reason


def visit(redirect: str) -> None:
    """Open an address of the TPP as the customer's browser would; addresses of apps cannot be opened here."""
    if redirect.startswith(("http://", "https://")):
        with suppress(URLError, OSError, HTTPException, ValueError), _open(redirect, timeout=VISIT_TIMEOUT):
            pass


def claims_of(address: str, wanted: Mapping[str, Iterable[str]]) -> tuple[dict[str, Any], list[str]]:
    """What the TPP claims of the payments and accounts with these ids, and a sentence for each request that failed."""
    beliefs: dict[str, Any] = {}
    problems: list[str] = []
    for kind, identity in [(kind, one) for kind, ids in wanted.items() for one in ids]:
        try:
            claim = claim_of(address, kind, identity)
        except ClaimUnreadable as problem:
            problems.append(str(problem))
            continue
        if claim is None:
            problems.append(f"{_place(address, kind, identity)} answered 404")
        else:
            beliefs[identity] = claim
    return beliefs, problems


def _place(address: str, kind: str, identity: str) -> str:
    return f"{address.rstrip('/')}/{kind}/{quote(identity, safe='')}"


def claim_of(address: str, kind: str, identity: str) -> dict[str, Any] | None:
    """What the TPP claims of one of `payments` or `accounts`; None: it knows no such thing. Raises ClaimUnreadable."""
    url = _place(address, kind, identity)
    if not url.startswith(("http://", "https://")):
        raise ClaimUnreadable(f"{url} is not an http or https address")
    try:
        with _open_claim(url, timeout=CLAIM_TIMEOUT) as answer:
            text = answer.read(MOST_CLAIMED + 1)
    except HTTPError as error:
        if error.code == 404:
            return None
        raise ClaimUnreadable(f"{url} answered {error.code}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        raise ClaimUnreadable(f"{url} cannot be reached: {_cause(error)}") from None
    if len(text) > MOST_CLAIMED:
        raise ClaimUnreadable(f"{url} answered more than {MOST_CLAIMED} bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ClaimUnreadable(f"{url} answered something that is not JSON") from None
    problem = _unreadable(kind, value)
    if problem is not None:
        raise ClaimUnreadable(f"{url} answered {problem}")
    return {name: value[name] for name in MEMBERS[kind] if name in value}


def _unreadable(kind: str, value: Any) -> str | None:
    """What is wrong with a claim of `kind` (payments or accounts); None if nothing is."""
    if not isinstance(value, dict):
        return "something that is not an object"
    if kind == "payments":
        state = value.get("state")
        return None if state in STATES else f"the state {state!r:.80}, which is none of {', '.join(STATES)}"
    balance, transactions = value.get("balance"), value.get("transactions")
    if balance is not None and decimal(balance) is None:
        return f"the balance {balance!r:.80}, which is not a decimal in a string"
    if transactions is not None and (not isinstance(transactions, int) or isinstance(transactions, bool)):
        return f"the transactions {transactions!r:.80}, which are not an integer"
    return None
