"""Settings of all tests; the PostgreSQL that some share; the cluster that others can run against."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from coverage import Coverage
from hypothesis import settings

from tests import keys, tools

if TYPE_CHECKING:
    from tests.postgres.remote import RemoteBanks
    from tests.postgres.server import PostgreSQL

ROOT = Path(__file__).parents[1]

# The same examples every time, however slow the machine; `.ci/run long` draws many others.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=10)
settings.register_profile("long", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Modules and collected tests live to the end: the garbage collector need not look at them again and again, which took
# a seventh of the processor time of all tests. What tests leave behind it looks at seldom, as in a served bank.
gc.disable()
gc.set_threshold(100_000, 10, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Begin with a part of the modules, each process of xdist with another: what one has compiled the others read.

    In a new checkout pytest rewrites the assertions of each of them, which takes as long as the rest of the collection.
    """
    given = getattr(session.config, "workerinput", None)
    if given is not None and session.config.args == session.config.getini("testpaths"):
        modules = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
        for path in modules[int(given["workerid"].removeprefix("gw")) :: given["workercount"]]:
            if path.with_name("__init__.py").exists():
                with suppress(Exception, pytest.skip.Exception):  # which the collection tells
                    import_module(".".join(path.with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three processes for two processors: tests of servers and browsers wait for a third of their time."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_configure(config: pytest.Config) -> None:
    keys.share(getattr(config, "workerinput", {}).get("keys", []))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """To each process of xdist, before it starts."""
    node.workerinput["keys"] = keys.drawn()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server, one per test process; a test that stops it starts it again."""
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    from tests.postgres import server

    if server.binaries() is None:
        pytest.skip(server.MISSING)
    with server.running() as running:
        yield running


@pytest.fixture
def store_url(postgresql: PostgreSQL) -> Iterator[str]:
    """The URL of an empty database; its role may do everything in it, nothing elsewhere."""
    url = postgresql.database()
    yield url
    postgresql.empty(url)


# Under coverage a test takes twice to three times as long. Those of not_measured.txt run next to no line that no other
# test runs (`--cov-context=test` shows it), and are not measured: folders, files, and tests that cost much, by how
# their names begin; by their marks browsers, kills, drawn examples.
NOT_MEASURED = tuple((ROOT / "tests" / "not_measured.txt").read_text().split())
MARKS_NOT_MEASURED = ("browser", "crash", "hypothesis")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End what has begun to measure a process of xdist, as one that a measured one started, and as pytest-cov's first.

    These would go on whenever that of pytest-cov which begins now is stopped.
    """
    while hasattr(session.config, "workerinput") and (begun := Coverage.current()) is not None:
        begun.stop()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Leave out a test that is not measured, with its fixtures and what it starts.

    With --cov-context, which is for choosing those, none is left out.
    """
    measuring = None if item.config.getoption("cov_context", None) else Coverage.current()
    if measuring is None or not (
        item.nodeid.startswith(NOT_MEASURED) or any(map(item.get_closest_marker, MARKS_NOT_MEASURED))
    ):
        yield
        return
    with mock.patch.dict(os.environ):
        del os.environ["COVERAGE_PROCESS_CONFIG"]
        measuring.stop()
        yield
        measuring.start()


# Tests that use one of these speak to a bank, and can speak to a cluster.
BANKS = frozenset({"service", "emulator", "stage_play"})


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "run the tests of the interface, control, scenarios and console against N processes over one PostgreSQL"
    parser.addoption("--processes", type=int, default=0, metavar="N", help=about)
    parser.addoption("--need-tools", action="store_true", help="fail where a tool is missing that .ci/tools installs")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With --need-tools: a test that was left out for want of a tool has failed."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    name = tools.missing(report)
    if name is not None and item.config.getoption("--need-tools"):
        report.outcome, report.longrepr = "failed", f"{name} is missing; .ci/tools installs it"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = tools.summary(terminalreporter.getreports("skipped"))
    if left_out:
        terminalreporter.write_line(left_out)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say how long a test may take.

    With --processes: leave out what has no bank, and what is marked to drive a bank in its own process.
    """
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(3600))
    if not config.getoption("--processes"):
        return
    fit = [
        one for one in items if BANKS & set(getattr(one, "fixturenames", ())) and not one.get_closest_marker("inside")
    ]
    fit_ids = {id(one) for one in fit}
    config.hook.pytest_deselected(items=[one for one in items if id(one) not in fit_ids])
    items[:] = fit


@pytest.fixture(scope="session")
def remote_banks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RemoteBanks | None]:
    """With --processes: the cluster instead of banks in this process."""
    processes = request.config.getoption("--processes")
    if not processes:
        yield None
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    from tests.postgres.cluster import cluster
    from tests.postgres.remote import RemoteBanks, Wire

    url = server.database()
    with cluster(tmp_path_factory.mktemp("cluster"), url, "--seed", "1", nodes=processes, silence=60) as running:
        yield RemoteBanks(Wire(running.url), running.demo)
        assert "Traceback" not in "".join(node.log() for node in running.nodes)
    server.drop(url)
