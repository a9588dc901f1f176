"""The pytest plugin: fixtures, a marker and a report section, found by the entry point `pytest11`.

pytest imports this file in every project where the emulator is installed, so it imports other modules on use only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emulator.testing import BankFactory, RunningBank

MARKER = (
    "bank(**options): options of the bank that the fixture `bank` starts, such as seed=7, now='2026-03-02T09:00:00Z', "
    "settings={'progression': 'manual'} or scenario='slow-bank' (see emulator.testing.BankOptions)"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --bank-audit and --bank-data."""
    text = (
        "Write the conformance report of the whole run: .html, .xml (JUnit), else JSON. "
        "A failed check of level must ends the run with 1."
    )
    group = parser.getgroup("bank-emulator")
    group.addoption("--bank-audit", metavar="FILE", help=text)
    text = "A folder with fixtures and scenarios of your own, which tests name as they do ready ones."
    group.addoption("--bank-data", metavar="DIR", help=f"{text} Default: the ini value bank_data.")
    parser.addini("bank_data", f"{text} Relative to the root directory.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `bank`; with --bank-audit, collect the reports of banks."""
    config.addinivalue_line("markers", MARKER)
    if data := config.getoption("--bank-data"):
        _use_data("--bank-data", config.invocation_params.dir / data)
    elif data := config.getini("bank_data"):
        _use_data("bank_data", config.rootpath / data)
    if config.getoption("--bank-audit"):
        file = Path(config.getoption("--bank-audit"))
        if file.is_dir():
            raise pytest.UsageError(f"--bank-audit: {file} is a directory")
        if not file.parent.is_dir():
            raise pytest.UsageError(f"--bank-audit: there is no directory {file.parent}")
        config.pluginmanager.register(_Audit(file), "bank-emulator-audit")


def _use_data(source: str, folder: Path) -> None:
    from emulator.assemble import StartRefused, use_data
    from emulator.settings import data_folder

    try:
        use_data(data_folder(str(folder)))
    except (StartRefused, ValueError) as error:
        raise pytest.UsageError(f"{source}: {str(error).removeprefix('--data ')}") from None


class _Audit:
    """With --bank-audit: collects the reports of all banks, also of pytest-xdist's workers, into one."""

    def __init__(self, file: Path) -> None:
        from emulator.testing import running

        self._file = file
        self._audits: list[dict[str, Any]] = []
        self._report: dict[str, Any] | None = None
        running.AUDITS = self._audits

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._audits += getattr(node, "workeroutput", {}).get("bank_audits", [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; a failed check of level must fails a run whose tests have passed."""
        worker_output = getattr(session.config, "workeroutput", None)
        if worker_output is not None:
            worker_output["bank_audits"] = self._audits
            return
        from emulator.conformance import report

        self._report = merged = report.merged(self._audits)
        if self._file.suffix == ".html":
            text = report.html(merged)
        elif self._file.suffix == ".xml":
            text = report.junit_report(merged)
        else:
            text = json.dumps(merged, indent=2, ensure_ascii=False)
        self._file.write_text(text, encoding="utf-8")
        if report.exit_status(merged) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._report is None:
            return
        from emulator.conformance import report

        terminalreporter.section("bank audit")
        lines = [*report.failures(self._report, planned=True), "", f"{report.sums(self._report)}: {self._file}"]
        terminalreporter.write_line("\n".join(lines).strip())


@pytest.fixture
def bank_factory() -> Iterator[BankFactory]:
    """Starts banks: `bank_factory(fixtures="empty", seed=7, settings={"progression": "manual"}, now=datetime(...))`.

    The arguments are those of `emulator.testing.BankOptions`. Each bank is new, runs on a free port, and stops with
    the test.
    """
    from emulator.testing import banks

    with banks() as start:
        yield start


@pytest.fixture
def bank(request: pytest.FixtureRequest, bank_factory: BankFactory) -> RunningBank:
    """A new bank in its known state on a free port; its clock stands still until `bank.clock.advance(...)`.

    The marker `@pytest.mark.bank(seed=7, ...)` on a test, class or module sets its options; the closest one wins.
    """
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("bank"))):
        if marker.args:
            raise pytest.UsageError("the marker bank takes options by name, such as @pytest.mark.bank(seed=7)")
        options |= marker.kwargs
    return bank_factory(**options)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Generator[None, Any, None]:
    """Fail a test that has passed although a rule of `apply(..., must_match=True)` has matched no request."""
    outcome = yield
    running = sys.modules.get("emulator.testing.running")
    if running is not None and outcome.excinfo is None:
        unmatched = [f"{scenario}: {rule!r}" for bank in running.RUNNING for scenario, rule in bank.take_unmatched()]
        if unmatched:
            text = f"Rules that matched no request: {', '.join(unmatched)}."
            outcome.force_exception(pytest.fail.Exception(text, pytrace=False))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """Add the last requests of every running bank to the report of a failing test."""
    outcome = yield
    report = outcome.get_result()
    running = sys.modules.get("emulator.testing.running")  # imported only if a bank was started
    if report.failed and running is not None:
        for bank in running.RUNNING:
            if requests := bank.report():
                report.sections.append((f"requests of the bank at {bank.url}", requests))
