"""What the commands share which run a TPP and judge it: their options with the checks of these, and its banks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import click

from emulator.api.service import BankService
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.assemble.registry import BankRegistry
from emulator.bank.clock import real_now, stamp
from emulator.bank.documents import Restored
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority, Credentials
from emulator.cli.bank import writable_file, write_file
from emulator.cli.failure import Failed
from emulator.cli.options import Command, words
from emulator.conformance.explore.play import Result, RunBank
from emulator.control.operation import BankSpec
from emulator.settings import ServeSettings
from emulator.web.server import LoopThread, WebServer, listen


def report_files(command: Command) -> Command:
    """The options that name files of the report; see `write_report`."""
    for name, form in (("json", "JSON"), ("html", "one HTML page"), ("junit", "JUnit XML")):
        about = f"Write the report as {form}."
        option = click.option(f"--{name}", f"{name}_file", metavar="FILE", callback=writable_file, help=about)
        command = option(command)
    return command


def write_report(
    where: Mapping[str, str | None], report: Any, *, junit: Callable[[Any], str], html: Callable[[Any], str]
) -> None:
    """Write the report to the files that the options name."""
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    for name, text in (("junit", junit), ("html", html), ("json", as_json)):
        file = where[f"{name}_file"]
        if file is not None:
            write_file(f"--{name}", file, text(report))


def program_options(each: str) -> Callable[[Command], Command]:
    """The options that name the TPP, which does a task for each check or run; see `check_program`."""

    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                "--timeout",
                metavar="SECONDS",
                type=click.FloatRange(0.1, 3600),
                default=30.0,
                show_default=True,
                help=f"The time for one {each}.",
            ),
            click.option(
                "--hook", metavar="URL", help=f"The address to POST each {each} to; it answers when the TPP is done."
            ),
            click.option(
                "--command", "shell", metavar="CMD", help=f"The command that runs the TPP, once for each {each}."
            ),
        ):
            command = option(command)
        return command

    return decorate


def check_program(shell: str | None, hook: str | None, claims: str | None) -> None:
    """Refuse a command that is no program, and addresses that are none."""
    if shell is not None and hook is not None:
        raise click.UsageError("use --command or --hook, not both")
    if shell is not None and not (command := words(shell)):
        raise click.UsageError("--command is empty or has an unclosed quotation mark")
    if shell is not None and shutil.which(command[0]) is None:
        raise Failed(f"--command: there is no program {command[0]} that can be run")
    for option, address in (("--hook", hook), ("--claims", claims)):
        if address is not None and not address.startswith(("http://", "https://")):
            raise click.UsageError(f"{option} takes an http or https address")


NAME = "explored"
DATE_SKEW = 10**6  # seconds: bank time is not that of the TPP


class LocalBanks:
    """The banks of one command. `serves`: at a free port of this machine; else their application is called directly."""

    def __init__(self, *, serves: bool = True, notify: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self._authority = CertificateAuthority(None, clock=real_now)
        settings = ServeSettings(ephemeral=True, port=0, allow_notify=tuple(map(Host, notify)))
        self._registry: BankRegistry = registry_for(settings, self._authority)
        self.application: BankApplication = application_of(self._registry, BankApplication)
        self._server: WebServer | None = None
        self.base = "http://127.0.0.1:8080"
        if serves:
            self._loop = LoopThread()
            self._server = WebServer(self.application, host="127.0.0.1", plain=listen(("127.0.0.1",), 0, copies=1))
            self._loop.run(self._server.start())
            self.base = self._server.urls[0]

    @cached_property
    def issued(self) -> Credentials:
        """The TPP of the banks that `open` gives."""
        return self._authority.issue(NAME)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the banks' thread, between two requests."""
        return work() if self._server is None else self._loop.call(work)

    def open(self, name: str, *, seed: int, now: datetime, settings: Mapping[str, Any]) -> RunBank:
        """A new bank in its known state, whose clock stands still."""

        made_with = {"date_skew": DATE_SKEW, **settings}

        def prepare(service: BankService, _undo: ExitStack) -> None:
            service.bank.change_settings(made_with)

        restored: Restored = {"now": stamp(now), "clock": "frozen", "settings": made_with}
        spec = BankSpec(seed=seed, restored=restored, prepare=prepare)
        service = self.call(lambda: self._registry.make(name, spec))
        return RunBank(
            f"{self.base}/banks/{name}",
            self.issued.certificate_pem,
            self.issued.key_pem.decode(),
            service,
            self.call(lambda: self.application.scenario_target(service)),
            self.call,
            lambda: self.call(lambda: self._registry.close_bank(name)),
        )

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._loop.run(self._server.stop())
        self.call(self.application.close)
