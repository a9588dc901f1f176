"""`bank-emulator state`: verify, repair and copy stored data without a running bank."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.bank import show
from emulator.cli.options import OrderedGroup, authority_in, output_option, state_directory, state_option
from emulator.failure import Damaged, Failed, needs_extra
from emulator.settings import EMBEDDED, FLAGS, ServeSettings, schema_of
from emulator.signals import end_as_interrupted

if TYPE_CHECKING:
    from emulator.assemble.copying import Place
    from emulator.assemble.stored_service import StoredService
    from emulator.store import StoreDamaged
    from emulator.store.check import CheckReport

EPILOG = "Example: bank-emulator state check --state .bank-emulator --repair"


def _read(flag: str, value: str) -> str:
    """The value of a flag that `serve` has too."""
    [known] = [one for one in FLAGS if one.name == flag]
    try:
        text: str = known.parse(value)
    except ValueError as error:
        raise Failed(f"--{flag} {error}", page="flags") from None
    return text


schema_option = click.option(
    "--store-schema",
    metavar="NAME",
    default=ServeSettings().store_schema,
    callback=lambda _context, _parameter, name: _read("store-schema", name),
    help="The schema in PostgreSQL.",
)


@click.group(cls=OrderedGroup, name="state", epilog=EPILOG)
def command() -> None:
    """Verify, repair and copy stored data."""


@command.command(epilog=EPILOG)
@click.option("--repair", is_flag=True, help="Repair damage, after copying the files that change.")
@output_option
@click.option("--store", metavar="URL", help="Verify a shared store in PostgreSQL, also while it is in use.")
@schema_option
@state_option
def check(repair: bool, output: str, store: str | None, store_schema: str, state: str | None) -> None:
    """Verify the stored data of every bank. Exit 3 if any is damaged."""
    if store is None:
        _check_folder(state_directory(state), output, repair=repair)
    elif repair or (state is not None and store != EMBEDDED):
        raise click.UsageError(f"--{'repair' if repair else 'state'} is for a state directory, not for --store")
    else:
        _check_shared(_read("store", store), store_schema, output, state_directory(state))


def _check_folder(root: Path, output: str, *, repair: bool) -> None:
    from emulator.assemble.copying import complete
    from emulator.assemble.storage import damaged_snapshots
    from emulator.bank.kinds import KINDS
    from emulator.ca.files import check_private
    from emulator.store import StoreExhausted, StoreTooNew
    from emulator.store.check import repair as repair_bank
    from emulator.store.check import verify

    try:
        if root.is_dir():
            check_private(root)  # a repair writes, and must not write where a link of somebody else points
            complete(root)
    except OSError as error:
        raise Failed(f"--state {error.filename}: {error.strerror}", page="recover-data") from error
    directory = root / "banks"
    folders = sorted(directory.iterdir()) if directory.is_dir() else []
    banks = [path for path in folders if path.is_dir() and path.name[0] != "."]
    if not banks:
        raise Failed(f"{directory.absolute()} holds no bank; name the state directory of `serve` with --state DIR")
    reports: list[tuple[CheckReport, list[StoreDamaged]]] = []
    refused: list[str] = []
    for bank in banks:
        try:
            report = repair_bank(bank, KINDS) if repair else verify(bank, KINDS)
            snapshots: list[StoreDamaged] = []
            reports.append((report, snapshots))
            if not report.in_use:
                snapshots += damaged_snapshots(bank / "snapshots")
        except (StoreExhausted, StoreTooNew) as error:
            refused.append(str(error))
        except OSError as error:
            refused.append(f"--state {error.filename or bank}: {error.strerror or error}")
    if output == "json":
        click.echo(json.dumps([_as_json(*entry) for entry in reports], indent=2))
    else:
        for entry in reports:
            _print(*entry)
    if refused:
        raise Failed("; ".join(refused))
    for report, _ in reports:
        if report.in_use is not None:
            raise Failed(f"{report.directory} is in use by {report.in_use}")
        if report.findings:
            first = report.findings[0]
            final = repair or first.intact
            advice = f"it cannot be repaired: move {report.directory} away" if final else "--repair repairs it"
            raise Damaged(f"{first.file} is damaged at byte {first.offset}: {first.reason} ({advice})")
    if (root / "ca.pem").exists():  # a start makes a CA where there is none, so that is no damage
        with authority_in(root) as authority:
            authority.check()
    if bad := [snapshot for _, snapshots in reports for snapshot in snapshots]:
        raise Damaged(f"{bad[0]} (the bank still starts; delete the snapshot or save it again)")


def _as_json(report: CheckReport, snapshots: list[StoreDamaged]) -> dict[str, Any]:
    return {
        "bank": report.directory.name,
        "inUse": report.in_use,
        "changes": report.sequence,
        "documents": report.documents,
        "damage": [_finding(finding) for finding in report.findings],
        "snapshots": [_finding(snapshot) for snapshot in snapshots],
        "torn": _finding(report.torn) if report.torn else None,
        "actions": list(report.actions),
        "copies": str(report.copies) if report.copies else None,
    }


def _finding(finding: StoreDamaged) -> dict[str, Any]:
    return {"file": str(finding.file), "offset": finding.offset, "reason": finding.reason}


def _print(report: CheckReport, snapshots: list[StoreDamaged]) -> None:
    from emulator.bank.errors import counted

    name = report.directory.name
    if report.in_use is not None:
        click.echo(f"{name}: in use by {report.in_use}, not checked")
        return
    condition = "damaged" if report.findings else "intact"
    documents = counted(sum(report.documents.values()), "document")
    click.echo(f"{name}: {condition}, {documents} after {counted(report.sequence, 'change')}")
    for bad in [*report.findings, *snapshots]:
        click.echo(f"  {bad.file.name} at byte {bad.offset}: {bad.reason}")
    if report.torn is not None:
        click.echo(f"  {report.torn.file.name} ends in a torn or damaged record; the next start drops it")
    for action in report.actions:
        click.echo(f"  {action}")
    if report.copies is not None:
        click.echo(f"  copies of changed files: {report.copies}")


@command.command(epilog="Example: bank-emulator state copy .bank-emulator postgresql")
@click.argument("source")
@click.argument("target")
@click.option("--replace", is_flag=True, help="Delete the banks of the target first.")
@schema_option
@output_option
@state_option
def copy(source: str, target: str, replace: bool, store_schema: str, output: str, state: str | None) -> None:
    """Copy every bank from SOURCE to TARGET, with snapshots, CA and TPPs.

    SOURCE and TARGET are each a state directory that no process uses, the postgresql:// URL of a shared store, or the
    word postgresql for the server in --state.
    """
    from emulator.bank.errors import counted

    if source == target == EMBEDDED:
        raise click.UsageError("SOURCE and TARGET are the same server")
    if state is not None and EMBEDDED not in (source, target):
        raise click.UsageError("--state is the directory of the server that the word postgresql stands for")
    from emulator.assemble.copying import copy as copy_service

    with _store_errors(), ExitStack() as servers:
        directory = state_directory(state)
        places = [servers.enter_context(_place(text, store_schema, directory)) for text in (source, target)]
        copied = copy_service(*places, replace=replace)
    counts = [counted(copied.banks, "bank"), counted(copied.snapshots, "snapshot"), counted(copied.tpps, "TPP")]
    text = f"Copied {counts[0]}, {counts[1]} and {counts[2]} from {places[0]} to {places[1]}."
    shown = {"source": str(places[0]), "target": str(places[1]), **asdict(copied)}
    show(shown, output, lambda _: click.echo(text))


@contextmanager
def _place(text: str, schema: str, state: Path) -> Iterator[Place]:
    """A directory, or the tables of a PostgreSQL."""
    from emulator.assemble.copying import Directory

    if text != EMBEDDED and "://" not in text:
        yield Directory(Path(text))
        return
    with _shared(text, schema, state) as service:
        yield service


@contextmanager
def _shared(text: str, schema: str, state: Path) -> Iterator[StoredService]:
    """The tables of a PostgreSQL: at a URL, or in the server of a state directory, which runs meanwhile.

    Other signals end that, too, as Ctrl+C does.
    """
    with needs_extra("postgresql", "a shared store"):
        from emulator.assemble.stored_service import StoredService
        from emulator.store.postgres.embedded import server
    if text != EMBEDDED:
        yield StoredService(_read("store", text), schema_of(text, schema))
        return
    end_as_interrupted()
    with server(state / "postgresql") as url:
        yield StoredService(url, schema_of(url, schema))


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn the errors of a store into those that end a command."""
    from emulator.store import StoreDamaged, StoreError, StoreShared

    try:
        yield
    except StoreDamaged as error:
        raise Damaged(f"{error} (`state check` lists all damage)") from error
    except StoreShared as error:
        raise (Damaged if error.unreadable else Failed)(f"--store: {error}") from error
    except StoreError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror or error}") from error


def _check_shared(store: str, schema: str, output: str, state: Path) -> None:
    from emulator.bank.errors import counted

    with _store_errors(), _shared(store, schema, state) as service:
        from emulator.assemble.stored_service import check as check_service

        checks = check_service(service)
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in checks], indent=2))
    else:
        for one in checks:
            condition = "damaged" if one.problems else "intact"
            documents = f", {counted(one.documents, 'document')}" if one.documents else ""
            click.echo(f"{one.name}: {condition}{documents} after {counted(one.sequence, 'change')}")
            for problem in one.problems:
                click.echo(f"  {problem}")
    for one in checks:
        if one.problems:
            raise Damaged(f"{one.name} is damaged: {one.problems[0]} (restore it from a backup of PostgreSQL)")


COMMANDS = {"state": command}
