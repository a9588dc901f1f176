"""The baseline: checks that are known to fail, so that a build fails for new failures only (CONTRACT 17)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from emulator.conformance.report import summed


class BaselineError(Exception):
    """The baseline file cannot be used; the argument is a sentence."""


def load(file: Path, known: Collection[str]) -> frozenset[str]:
    """The check names of a baseline file, `known-failures: [name, ...]`, all in `known`; raises BaselineError."""
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise BaselineError(f"{file}: {error}") from None
    names = value.get("known-failures") if isinstance(value, dict) else None
    if not isinstance(names, list) or set(value) != {"known-failures"}:
        raise BaselineError(f"{file}: expected known-failures with a list of checks")
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown:
        raise BaselineError(f"{file}: there is no check {unknown[0]!r}")
    return frozenset(names)


def write(file: Path, report: Mapping[str, Any]) -> None:
    """Write the failing checks of a report to a baseline file; raises BaselineError."""
    names = [row["check"] for row in report["checks"] if row["verdict"] in ("fail", "warn", "known")]
    text = "# Checks that are known to fail. bank-emulator conformance ... --write-baseline writes this file.\n"
    try:
        file.write_text(text + yaml.safe_dump({"known-failures": names}, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise BaselineError(f"{file}: {error.strerror or error}") from None


def applied(report: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """The report in which failures of these checks are `known`, and the names of those that pass now."""
    rows = [
        {**row, "verdict": "known"} if row["check"] in names and row["verdict"] in ("fail", "warn") else row
        for row in report["checks"]
    ]
    fixed = [row["check"] for row in rows if row["check"] in names and row["verdict"] == "pass"]
    return summed(rows), fixed
