"""Programs that tests run beside Python (`.ci/tools` installs them); where one is missing its tests are left out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable

import pytest

MISSING = "missing tool: "  # begins the reason of such a test


def tool(*names: str) -> str:
    """The path of the first of these programs that this machine has; without any, the test is left out."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    pytest.skip(MISSING + names[0])


def missing(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """The tool for want of which a test was left out."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return None
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    return reason.removeprefix(MISSING) if reason.startswith(MISSING) else None


def summary(reports: Iterable[pytest.TestReport]) -> str:
    """One line that names each missing tool and the number of tests without it; empty if none is missing."""
    counts = Counter(name for report in reports if (name := missing(report)) is not None)
    listed = ", ".join(f"{name} ({number})" for name, number in sorted(counts.items()))
    return f"Left out, as tools are missing that .ci/tools would install: {listed}." if counts else ""
