"""`bank-emulator serve`: starts the bank.

Its flags are the members of ServeSettings in `emulator/settings.py`; here is only the check for those that contradict
each other.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket
from threading import Thread
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from emulator.cli import logs
from emulator.cli.options import complete_fixture, complete_scenario
from emulator.failure import Failed, needs_extra
from emulator.settings import EMBEDDED, FLAGS, PREFIX, Flag, ServeSettings, read, schema_of
from emulator.signals import ending_signals

if TYPE_CHECKING:
    from emulator.web.handler import Application

logger = logging.getLogger(__name__)

EPILOG = """\b
The variable in brackets sets a flag too; a flag on the line takes precedence.
Example: bank-emulator serve --ephemeral --scenario insufficient-funds
"""
EXIT_TIMEOUT = 12.0  # seconds from SIGTERM to SIGKILL of a worker
RESTART_DELAY = 1.0  # seconds, so that a worker that dies at once is not started in a busy loop


def _option(flag: Flag) -> click.Option:
    name = f"--{flag.name}"
    notes = flag.variable if flag.default is None else f"{flag.variable}; default: {flag.default}"
    about = f"{flag.help}  [{notes}]"
    if flag.switch:
        return click.Option([f"{name}/--no-{flag.name}"], is_flag=True, default=None, help=about)
    completed = {"fixtures": complete_fixture, "scenario": complete_scenario}.get(flag.name)
    return click.Option([name], metavar=flag.takes, multiple=flag.repeatable, help=about, shell_complete=completed)


def _serve(**given: Any) -> None:
    """Start the bank. Prints READY and its address once it answers requests."""
    for flag in FLAGS:
        if flag.switch and isinstance(given[flag.member], bool):
            given[flag.member] = str(given[flag.member]).lower()
    settings = read(given)
    if (problem := _contradiction(settings)) is not None:
        raise Failed(problem, page="flags")
    logs.configure(settings.log_format)
    serve(settings)


command = click.Command(
    "serve",
    callback=_serve,
    params=[_option(flag) for flag in FLAGS],
    help=_serve.__doc__,
    epilog=EPILOG,
)


def _contradiction(settings: ServeSettings) -> str | None:
    """What is wrong with settings that contradict each other; None if they do not."""
    from emulator.api.guards import is_loopback

    reachable = [host for host in settings.host if not is_loopback(host)]
    if settings.control_token is None and reachable:
        required = "requires --control-token (BANK_EMULATOR_CONTROL_TOKEN)"
        return f"--host {reachable[0]} can be reached from other machines and {required}"
    if settings.workers > 1 and settings.store is None:
        return "--workers: several processes need a shared store; name it with --store"
    if settings.workers > 1 and settings.advertise is not None and re.search(r":[0-9]+$", settings.advertise):
        return "--advertise: workers cannot share a port; leave it out, and each takes a free one"
    if settings.store is not None and settings.ephemeral:
        return "--store and --ephemeral exclude each other"
    if settings.tls_port is not None and settings.tls_port == settings.port != 0:
        return "--tls-port and --port must differ"
    if (file := settings.ready_file) is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        problem = "it is a directory" if file.is_dir() else f"the directory {file.absolute().parent} does not exist"
        return f"--ready-file {file}: {problem}"
    return None


def serve(settings: ServeSettings) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; raises Failed when the bank cannot start."""
    gc.disable()  # objects of the start live on: collections would only slow it down
    try:
        with _store(settings) as settings:
            _listen_and_run(settings)
    finally:
        gc.enable()
        if settings.ready_file is not None:
            _remove_ready_file(settings.ready_file)


@contextmanager
def _store(settings: ServeSettings) -> Iterator[ServeSettings]:
    """The settings with the address of the store; an embedded server runs for as long as this context.

    Also where a signal ends the start: until the web server has handlers of its own, it ends both.
    """
    if settings.store != EMBEDDED:
        yield settings
        return
    with needs_extra("postgresql", "--store: a shared store"):
        from emulator.store.postgres.connection import StoreUnusable
        from emulator.store.postgres.embedded import server
    for number in ending_signals():
        signal.signal(number, lambda *_: sys.exit(0))
    with ExitStack() as running:
        try:
            url = running.enter_context(server(settings.state / "postgresql"))
        except StoreUnusable as error:
            raise Failed(f"--store: {error}") from error

        def end(*_: object) -> None:
            running.close()
            os._exit(0)  # an exception is passed over in the callback of a weak reference, as imports have them

        for number in ending_signals():
            signal.signal(number, end)
        yield replace(settings, store=url)


@contextmanager
def without_trust_roots() -> Iterator[None]:
    """A context in which importing aiohttp does not read the trust roots of the system.

    aiohttp reads them twice on import, for its client, which takes a fifth of the start. Use this only in a process
    that is nothing but a bank: an HTTPS client in it would trust no certificate.
    """
    original = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = os.devnull
    try:
        yield
    finally:
        if original is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = original


def _listen_and_run(settings: ServeSettings) -> None:
    with without_trust_roots():
        from emulator.web.server import WebServer, listen, run

    plain = listen(settings.host, settings.port)
    tls = None if settings.tls_port is None else listen(settings.host, settings.tls_port, flag="tls-port")
    ready: Callable[[list[str]], None] = partial(_started_at, settings=settings)
    if settings.workers > 1:
        ready = fork(settings.workers, ready)
        logs.configure(settings.log_format)  # the thread that writes the log has stayed in the parent process
    application = _starting(settings, plain)
    documents = "memory" if settings.ephemeral else settings.state.absolute()
    if settings.store is not None:
        documents = f"PostgreSQL, schema {schema_of(settings.store, settings.store_schema)}"
    logger.info("documents in %s, certificates in %s", documents, settings.state.absolute())
    try:
        run(WebServer(application, settings, plain=plain, tls=tls), ready)
        logger.info("stopped; every connection is closed")
    finally:
        application.close()


def _starting(settings: ServeSettings, plain: list[socket]) -> Application:
    """The application. While it loads large documents, the plain address answers with the progress."""
    from emulator.assemble import assemble
    from emulator.assemble.application import Progress, StartingApplication, is_slow

    if not is_slow(settings):
        return assemble(settings)
    from emulator.web.server import WebServer, run_loop

    progress = Progress()
    # pending connections belong to the socket, so closing its duplicates does not drop them
    sockets = [bound.dup() for bound in plain]
    server = WebServer(StartingApplication(progress), settings, plain=sockets)

    async def load() -> Application:
        await server.start()
        try:
            return await asyncio.to_thread(assemble, settings, progress=progress)
        finally:
            await server.stop()

    return run_loop(load())


def _started_at(urls: list[str], settings: ServeSettings) -> None:
    from emulator.cli.bank import hint

    facts = _facts(urls, settings)
    if settings.ready_file is not None:
        _write_ready_file(settings.ready_file, facts)
    variables = {"TLS_URL" if name == "tlsUrl" else name.upper(): value for name, value in facts.items()}
    exports = [f"export {PREFIX}{name}={shlex.quote(value)}" for name, value in variables.items()]
    ready(urls, exports if settings.print_env else None)
    hint(first_steps(urls[0], settings))


def _facts(urls: list[str], settings: ServeSettings) -> dict[str, str]:
    """What a program needs to use the bank."""
    state = settings.state.absolute()
    tpp = state / "tpps" / "demo"
    files = {"ca": state / "ca.pem", "certificate": tpp / "certificate.pem", "key": tpp / "key.pem", "state": state}
    return {**dict(zip(("url", "tlsUrl"), urls, strict=False)), **{name: str(path) for name, path in files.items()}}


def _write_ready_file(file: Path, facts: dict[str, str]) -> None:
    """Write it at once, so that nobody reads a part of it; raises Failed."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        unfinished.write_text(json.dumps({**facts, "pid": os.getpid()}, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise Failed(f"--ready-file {file}: {error.strerror}") from error


def _remove_ready_file(file: Path) -> None:
    """Remove it if it is this process's: a worker and an earlier process leave the one of another."""
    with suppress(OSError, ValueError):
        facts = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(facts, dict) and facts.get("pid") == os.getpid():
            file.unlink()


def first_steps(url: str, settings: ServeSettings) -> str:
    """Next steps for people: the pages of the bank, and a command that works from any folder."""
    standard = ServeSettings()
    address = "" if url == f"http://{standard.host[0]}:{standard.port}" else f" --url {url}"
    lines = {
        "console": f"{url}/console",
        "manual": f"{url}/docs",
        "try": f"bank-emulator request GET /v1/accounts --state {shlex.quote(str(settings.state.absolute()))}{address}",
        "stop": "Ctrl+C",
    }
    return "\n".join(f"  {name:<9}{text}" for name, text in lines.items())


def ready(urls: list[str], exports: Iterable[str] | None = None) -> None:
    """Print the READY lines on stdout; raises Failed if it cannot be written.

    A shell that reads `exports` takes the READY lines after them for comments.
    """
    lines = [f"READY {url}" for url in urls]
    if exports is not None:
        lines = [*exports, *(f"# {line}" for line in lines)]
    try:
        os.write(sys.stdout.fileno(), os.fsencode("".join(f"{line}\n" for line in lines)))  # paths may be any bytes
    except BrokenPipeError:
        logger.info("nobody reads stdout")
    except OSError as error:
        raise Failed(f"stdout cannot be written: {error.strerror}") from error


# Several processes that serve one port over a shared store (`--workers`)


def fork(number: int, ready: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """Start `number` children. Returns only in these, a function that a child calls with its addresses once it answers.

    The parent accepts no connections. The second child starts when the first one answers, so that a start that fails
    says why once. The parent calls `ready` when all children answer, replaces a child that dies, forwards signals, and
    exits after its children. If it is killed, they stop: the port is free for the next start.
    """
    report_in, report_out = os.pipe()
    wakeup_in, wakeup_out = os.pipe()
    alive_in, alive_out = os.pipe()  # only the parent can write to it: it ends with the parent
    os.set_blocking(wakeup_out, False)
    stops: list[int] = []
    ends = ending_signals()
    handlers = {number: signal.getsignal(number) for number in (*ends, signal.SIGCHLD)}
    for stop in ends:
        signal.signal(stop, lambda number, _: stops.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wakeup_out, warn_on_full_buffer=False)
    running: set[int] = set()
    answering: set[int] = set()

    def start() -> bool:
        """Fork a child; True in the child."""
        process = os.fork()
        if process:
            running.add(process)
            return False
        signal.set_wakeup_fd(-1)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for unused in (report_in, wakeup_in, wakeup_out, alive_out):
            os.close(unused)
        Thread(target=_stop_with_parent, args=(alive_in,), name="parent", daemon=True).start()
        return True

    def report(urls: list[str]) -> None:
        os.write(report_out, json.dumps([os.getpid(), urls]).encode() + b"\n")

    if start():
        return report
    all_answer, partial_line = False, b""
    while not stops:
        readable, _, _ = select.select([report_in, wakeup_in], [], [])
        if wakeup_in in readable:
            os.read(wakeup_in, 4096)
        if report_in in readable:
            *lines, partial_line = (partial_line + os.read(report_in, 65536)).split(b"\n")
            urls: list[str] = []
            for line in lines:
                process, urls = json.loads(line)
                answering.add(process)
            while answering and not all_answer and len(running) < number:
                if start():
                    return report
            if not all_answer and len(answering) >= number:
                all_answer = True
                ready(urls)
        for process, code in _exited(running):
            if not all_answer:  # a start that fails; the child has printed why
                _stop(running)
                raise Exit(abs(code))
            logger.error("process %d has exited (status %d); a new one replaces it", process, code)
            time.sleep(RESTART_DELAY)
            if not stops and start():
                return report
    raise Exit(_stop(running))


def _stop_with_parent(alive_in: int) -> None:
    """Stop this process when its parent has exited without stopping it."""
    os.read(alive_in, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _exited(running: set[int]) -> list[tuple[int, int]]:
    """Remove the processes that have exited from `running`; returns them with their exit status."""
    exited = []
    for process in list(running):
        reaped, status = os.waitpid(process, os.WNOHANG)
        if reaped:
            running.discard(process)
            exited.append((process, os.waitstatus_to_exitcode(status)))
    return exited


def _stop(running: set[int]) -> int:
    """Stop all processes; returns the highest exit status (of a killed process: the number of its signal)."""
    for process in running:
        os.kill(process, signal.SIGTERM)
    status, deadline = 0, time.monotonic() + EXIT_TIMEOUT
    while running:
        if time.monotonic() > deadline:
            for process in running:
                os.kill(process, signal.SIGKILL)
        status = max([status, *(abs(code) for _, code in _exited(running))])
        time.sleep(0.02)
    return status


COMMANDS = {"serve": command}
