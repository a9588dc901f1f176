"""What the tools act on: one bank, found or started, and the TPPs that sign for the agent."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from urllib.parse import parse_qsl, urlsplit

import click

from emulator.api.certificates import read_certificate
from emulator.bank.errors import BankError
from emulator.bank.problems import unknown
from emulator.ca.files import make_private, write_private
from emulator.cli.bank import connecting, control_token
from emulator.cli.options import bank_url, identity_of, state_directory
from emulator.client.clients import Tpp
from emulator.client.signing import Identity
from emulator.failure import Failed
from emulator.httpsig.sendable import Prepared
from emulator.scenario.transport import ReceivedAnswer

if TYPE_CHECKING:
    from emulator.testing import BankOptions

STOPPING = 5.0  # seconds in which a program and what belongs to it are gone
ANSWER_TIMEOUT = 65.0  # seconds; a scripted delay of a minute is still seen
AGENT = "agent"  # the TPP that signs unless another one is named
RECENT = 20  # requests of the log among which the one just sent is looked for


@dataclass(slots=True)
class Signer:
    """A TPP of the agent: its files, its requests at the bank, and the customer for whom it has a session."""

    tpp_id: str
    folder: Path
    tpp: Tpp
    customer: tuple[str, str | None] | None = None  # identity number and context


class Desk:
    """The bank that the tools act on. `context` is that of the command: its options name bank, state and CA."""

    def __init__(self, context: click.Context) -> None:
        self._undo = ExitStack()
        self._folder: Path | None = None
        self._signers: dict[tuple[str, str], Signer] = {}
        self._ending = Event()
        self._runs: list[Event] = []
        self.runs_commands = context.params.get("http") is None
        self.own_command: str | None = context.params.get("shell")
        self._state = state_directory(context.params.get("state"))
        with context.scope(cleanup=False):
            self.url = bank_url(context.params.get("url"))
            self.connect = connecting()  # for the threads of the tools, which have no context

    def close(self) -> None:
        """Stop the programs that run, and the banks that were started; delete their certificates."""
        self.stop()
        for ended in [*self._runs]:
            ended.wait(STOPPING)
        self._undo.close()

    def stop(self) -> None:
        """Have the programs end that run; no other one is started."""
        self._ending.set()

    @contextmanager
    def running(self) -> Iterator[Event]:
        """The block in which programs run: it has to end when the Event is set, and `close` waits for its end."""
        ended = Event()
        self._runs.append(ended)
        try:
            yield self._ending
        finally:
            self._runs.remove(ended)
            ended.set()

    # The bank

    def use(self, url: str) -> None:
        """Turn to the bank at this address if it answers; raises Failed."""
        address = bank_url(url)
        self.connect(address).ask("GET", "/clock")
        self.url = address

    def start(self, options: BankOptions) -> None:
        """Start a bank that ends with the server, and turn to it; raises Failed for an option that it refuses."""
        # Only on use: all that a bank consists of.
        from emulator.bank import fixtures
        from emulator.testing import banks

        fixture = options.get("fixtures", "known-state")
        if fixture not in fixtures.names():  # an agent elsewhere must not name a file of this machine
            raise Failed(unknown(fixture, fixtures.names(), "There is no fixture"))
        if (token := control_token()) is not None:
            options["control_token"] = token
        begin = self._undo.enter_context(banks())
        try:
            self.url = begin(**options).url
        except (TypeError, ValueError, BankError) as error:
            raise Failed(str(error)) from error
        if "now" not in options:
            self.ask("PUT", "clock", {"mode": "live"})

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer of the control interface; `path` follows `/_emulator/`. Raises Failed."""
        return self.connect(self.url).ask(method, f"/{path}", body)

    # Its TPPs

    def signer(self, name: str) -> Signer:
        """The TPP of this name, created if the bank has none; raises Failed if its key is elsewhere."""
        name = normalize("NFC", name)
        signer = self._signers.get((self.url, name))
        if signer is None:
            folder = self._folder_of(name)
            identity = Identity.from_folder(folder)
            tpp_id = read_certificate(identity.header).tpp.id
            signer = self._signers[self.url, name] = Signer(tpp_id, folder, Tpp(self.url, identity))
        return signer

    def _folder_of(self, name: str) -> Path:
        """The folder with the files of a TPP: in the state directory, or else with the files of a new one."""
        stored = self._state / "tpps" / name
        known = {tpp["name"]: tpp["certificate"] for tpp in self.ask("GET", "tpps?limit=1000")["tpps"]}
        if name in known and (stored / "certificate.pem").is_file():
            identity = identity_of(state=str(stored.parents[1]), tpp=name, certificate=None, key=None)
            if identity.certificate == read_certificate(known[name]).certificate:  # not of another bank's folder
                return stored.absolute()
        if name in known and name != AGENT:
            raise Failed(
                f"the key of the TPP {name} is where its bank runs: start the server with --state DIR, "
                "the state directory of that bank, or name another TPP, which is then created"
            )
        issued = self.ask("POST", "tpps", {"name": name, "replace": name == AGENT})
        if self._folder is None:
            self._folder = Path(self._undo.enter_context(tempfile.TemporaryDirectory(prefix="bank-emulator-")))
        folder = self._folder / _plain(urlsplit(self.url).netloc + urlsplit(self.url).path) / _plain(name)
        make_private(folder)
        for file, member in (("certificate", "certificate"), ("key", "key"), ("ca", "caCertificate")):
            write_private(folder / f"{file}.pem", issued[member].encode())
        return folder

    def log_in(self, signer: Signer, customer: str, context: str | None) -> None:
        """Give the TPP a session and a consent of the customer, unless it has them."""
        if signer.customer != (customer, context):
            asked = {"tpp": signer.tpp_id, "nationalId": customer, **({"context": context} if context else {})}
            signer.tpp.use_session(self.ask("POST", "sessions", asked))
            signer.customer = (customer, context)

    def returned(self, redirect: str) -> None:
        """The browser comes back from an SCA: its TPP takes the customer's ids from the redirect."""
        session = dict(parse_qsl(urlsplit(redirect).query)).get("tpp-session-id")
        for signer in self._signers.values():
            if signer.tpp.session_id == session:
                before = signer.tpp.psu_id
                signer.tpp.remember(redirect)
                signer.customer = signer.customer if signer.tpp.psu_id == before else None

    def forget_customers(self) -> None:
        """Forget all sessions: the bank has none of them after a reset."""
        for signer in self._signers.values():
            signer.tpp.forget()
            signer.customer = None

    def send(self, prepared: Prepared) -> tuple[ReceivedAnswer, str | None]:
        """The answer to a signed request, and its number in the request log; raises Failed."""
        answer = self.connect(self.url, timeout=ANSWER_TIMEOUT).send(prepared)
        for entry in self.ask("GET", f"requests?limit={RECENT}")["requests"]:
            if entry["method"] == prepared.method and prepared.target.endswith(entry["target"]):
                return answer, entry["id"]
        return answer, None  # refused before it reached the log


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)
