"""`--workers N`: the tests in N processes, forked when all tests are collected.

Beside pytest-xdist this spends a tenth less processor time on a whole run: what takes seconds is done once (imports,
the collection, the origin of commands), and a test that has passed is one message. Each process takes the next file
when it is done with one; the tests of a browser are as one file, so that it is started once.
"""

from __future__ import annotations

import atexit
import os
import random
import struct
import sys
import traceback
import warnings
from io import StringIO
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, cast

import pytest
from coverage import Coverage

from tests import warm

NUMBER = struct.Struct("=I")


def number_of(wanted: str) -> int:
    """Of the processes. Tests of servers and browsers wait for a third of their time: three for two processors."""
    return (os.cpu_count() or 1) * 3 // 2 if wanted == "auto" else int(wanted)


class Telling:
    """In a process of tests: tells the first process what it reports itself."""

    def __init__(self, config: pytest.Config, first: Connection) -> None:
        self.config = config
        self.first = first

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or self.config.option.durations is not None:
            data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
            self.first.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        given = warning_message
        text = warnings.WarningMessage(str(given.message), given.category, given.filename, given.lineno)  # type: ignore[arg-type]
        arguments = {"warning_message": text, "when": when, "nodeid": nodeid, "location": location}
        self.first.send(("warning", arguments))


class Workers:
    def __init__(self, count: int) -> None:
        self.count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        files: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            name = "browser" if item.get_closest_marker("browser") else item.nodeid.partition("::")[0]
            files.setdefault(name, []).append(item)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        warm.folder()
        # Whoever reads a number from this pipe has taken this file.
        waiting, adding = os.pipe()
        os.write(adding, b"".join(map(NUMBER.pack, range(len(files)))))
        os.close(adding)
        telling: dict[Connection, int] = {}  # and the process ids
        for number in range(self.count):
            here, there = Pipe(duplex=False)
            pid = os.fork()
            if pid == 0:
                here.close()
                _work(session, list(files.values()), waiting, there, number)
            there.close()
            telling[here] = pid
        os.close(waiting)
        try:
            _listen(session, telling)
        finally:
            for here, pid in telling.items():  # those whose reports nobody wants any more
                here.close()
                os.waitpid(pid, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True


def _listen(session: pytest.Session, telling: dict[Connection, int]) -> None:
    """Report what the processes tell, to the end of the last; one that does not end well fails the run."""
    hook = session.config.hook
    lost: list[int] = []
    missing = {item.nodeid for item in session.items}
    while telling and not session.shouldfail:
        for one in cast("list[Connection]", wait(list(telling))):
            try:
                kind, content = one.recv()
            except EOFError:
                _, status = os.waitpid(telling.pop(one), 0)
                if status:
                    lost.append(os.waitstatus_to_exitcode(status))
                continue
            if kind == "warning":
                hook.pytest_warning_recorded.call_historic(kwargs=content)
                continue
            report = hook.pytest_report_from_serializable(config=session.config, data=content)
            missing.discard(report.nodeid)
            hook.pytest_runtest_logreport(report=report)
    if (lost or missing) and not session.shouldfail:
        session.shouldfail = f"processes of tests ended with {lost}; not run: {', '.join(sorted(missing)[:9]) or None}"


def _work(
    session: pytest.Session, files: list[list[pytest.Item]], waiting: int, first: Connection, number: int
) -> None:
    """Be a process of tests, to its end."""
    status = 1
    try:
        _be_another(session.config, number)
        session.config.pluginmanager.register(Telling(session.config, first))
        try:
            while not session.shouldfail and (taken := os.read(waiting, NUMBER.size)):
                items = files[NUMBER.unpack(taken)[0]]
                # What comes next is in the same session, which keeps what lasts as long as that.
                for item, following in zip(items, [*items[1:], session], strict=True):
                    if not session.shouldfail:
                        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            session._setupstate.teardown_exact(None)
            if (measuring := Coverage.current()) is not None:
                measuring.stop()
                measuring.save()
            atexit._run_exitfuncs()
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):  # the first process has ended, or does
        pass
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def _be_another(config: pytest.Config, number: int) -> None:
    """Share with the others nothing that is written to or drawn from."""
    random.seed()
    config.get_terminal_writer()._file = StringIO()
    capturing: Any = config.pluginmanager.get_plugin("capturemanager")
    capturing.stop_global_capturing()
    capturing.start_global_capturing()
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"worker{number}"
    factory._basetemp.mkdir(mode=0o700)
