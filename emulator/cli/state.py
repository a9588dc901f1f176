"""`bank-emulator state`: whether the documents on disk are whole, without starting the bank."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.failure import Failed, StateDamaged
from emulator.cli.folders import state_directory, state_option

if TYPE_CHECKING:
    from emulator.store import StoreDamaged
    from emulator.store.inspection import Finding, Report

EPILOG = "Example: bank-emulator state check --state .bank-emulator --repair"


@click.group(name="state", epilog=EPILOG)
def command() -> None:
    """Look after the documents on disk."""


@command.command(epilog=EPILOG)
@click.option("--repair", is_flag=True, help="Mend what is damaged; a copy of what changes is kept.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@state_option
def check(repair: bool, output: str, state: str | None) -> None:
    """Verify journal and snapshots of every bank. Exit 3 when something is damaged."""
    from emulator.bank.kinds import KINDS
    from emulator.bank.snapshots import damaged
    from emulator.store import StoreTooNew
    from emulator.store.inspection import verify
    from emulator.store.repair import repair as mend

    directory = state_directory(state) / "banks"
    banks = (
        sorted(path for path in directory.iterdir() if path.is_dir() and path.name[0] != ".")
        if directory.is_dir()
        else []
    )
    if not banks:
        raise Failed(f"{directory} holds no bank")
    reports: list[tuple[Report, list[StoreDamaged]]] = []
    refused: list[str] = []
    for bank in banks:
        try:
            report = mend(bank, KINDS) if repair else verify(bank, KINDS)
            saved: list[StoreDamaged] = []
            reports.append((report, saved))
            if not report.in_use:
                saved += damaged(bank / "snapshots")
        except StoreTooNew as error:
            refused.append(str(error))
        except OSError as error:
            refused.append(f"--state {error.filename or bank}: {error.strerror or error}")
    if output == "json":
        click.echo(json.dumps([_shown(*found) for found in reports], indent=2))
    else:
        for found in reports:
            _tell(*found)
    if refused:
        raise Failed("; ".join(refused))
    for report, _ in reports:
        if report.in_use is not None:
            raise Failed(f"{report.directory} is in use by {report.in_use}")
        if report.findings:
            first = report.findings[0]
            help_ = f"it cannot be mended; move {report.directory} away" if repair else "--repair mends it"
            raise StateDamaged(f"{first.file} is damaged at byte {first.offset}: {first.reason} ({help_})")
    if bad := [snapshot for _, saved in reports for snapshot in saved]:
        raise StateDamaged(f"{bad[0]} (the bank starts all the same; delete the snapshot, or save it anew)")


def _shown(report: Report, snapshots: list[StoreDamaged]) -> dict[str, Any]:
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


def _finding(finding: Finding | StoreDamaged) -> dict[str, Any]:
    return {"file": str(finding.file), "offset": finding.offset, "reason": finding.reason}


def _tell(report: Report, snapshots: list[StoreDamaged]) -> None:
    from emulator.bank.errors import counted

    name = report.directory.name
    if report.in_use is not None:
        click.echo(f"{name}: in use by {report.in_use}, not looked at")
        return
    whole = "damaged" if report.findings else "whole"
    documents = counted(sum(report.documents.values()), "document")
    click.echo(f"{name}: {whole}, {documents} after {counted(report.sequence, 'change')}")
    damage: list[Finding | StoreDamaged] = [*report.findings, *snapshots]
    for bad in damage:
        click.echo(f"  {bad.file.name} at byte {bad.offset}: {bad.reason}")
    if report.torn is not None:
        click.echo(f"  {report.torn.file.name} ends in a record that is torn or damaged; a start drops it")
    for action in report.actions:
        click.echo(f"  {action}")
    if report.copies is not None:
        click.echo(f"  copies of what changed: {report.copies}")
