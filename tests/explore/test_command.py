"""The commands as a user calls them: a program behind a hook, a command, and what is wrong with either."""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import ClassVar
from xml.etree import ElementTree

import pytest

from emulator import explore as package
from tests.e2e.process import command
from tests.explore.hooked import HttpMerchant, hooked
from tests.explore.merchant import Order
from tests.warm import Command

NODE = Path(__file__).parent / "explorable.mjs"


class HttpAccpIsPaid(HttpMerchant):
    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        if status == "ACCP":
            order |= {"state": "paid", "final": True}


def explore(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command("conformance", "explore", *arguments)


class Crashes(HttpMerchant):
    """It crashes in each run after the trial, until one does not end."""

    runs: ClassVar = itertools.count(1)
    hangs = threading.Event()

    def run(self) -> None:
        number = next(self.runs)
        if number > 6:
            self.hangs.set()
            time.sleep(60)
        self.ask("GET", "/v1/accounts")
        if number > 1:
            raise RuntimeError("the hook crashes")


def test_ctrl_c_reports_also_the_failure_that_is_being_made_smaller(tmp_path: Path) -> None:
    report, saved = tmp_path / "r.json", tmp_path / "found"
    with hooked(Crashes) as base:
        line = ("--hook", f"{base}/run", "--timeout", "60", "--json", str(report), "--save", str(saved))
        with Command("conformance", "explore", *line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as searching:
            assert Crashes.hangs.wait(60)
            searching.send_signal(signal.SIGINT)
            out, err = searching.communicate(timeout=60)
    assert searching.returncode == 130, err
    assert "FOUND: crash" in out
    assert "1 found" in out
    assert [one["what"] for one in json.loads(report.read_text())["found"]] == ["crash"]
    assert len(list(saved.iterdir())) == 1


class GoesAway(HttpMerchant):
    """It crashes in the run after the trial, and then there is no hook any more."""

    runs: ClassVar = itertools.count(1)

    def run(self) -> None:
        self.ask("GET", "/v1/accounts")
        self.hook_status = {1: 200, 2: 500}.get(next(self.runs), 404)


def test_a_program_that_cannot_be_run_any_more_ends_a_search_and_a_replay_with_their_report(tmp_path: Path) -> None:
    report, saved = tmp_path / "r.json", tmp_path / "found"
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text("tasks: [pay]\n")
    with hooked(GoesAway) as base:
        where = ("--hook", f"{base}/run", "--json", str(report))
        ended = explore(*where, "--save", str(saved), "--task", "pay")
        searched = json.loads(report.read_text())
        GoesAway.runs = itertools.count(2)
        replayed = command("conformance", "replay", str(tmp_path), *where)
    assert (ended.returncode, replayed.returncode) == (2, 2)
    for stderr in (ended.stderr, replayed.stderr):
        assert stderr == "bank-emulator: the hook answered 404 (see bank-emulator docs find-the-fault)\n"
    assert "FOUND: crash" in ended.stdout
    assert "1 found" in ended.stdout
    assert [one["what"] for one in searched["found"]] == ["crash"]
    assert len(list(saved.iterdir())) == 1
    assert "1 schedule played again, 1 fail" in replayed.stdout
    assert [one["what"] for one in json.loads(report.read_text())["schedules"]] == ["crash"]


ACCP = """tasks: [pay]
faults:
- {fault: statuses, of: createPayment, path: [ACTC, ACCP, {RJCT: 3d}]}
"""


def test_a_good_program_behind_a_hook_survives(tmp_path: Path) -> None:
    with hooked() as base:
        where = ("--hook", f"{base}/run", "--claims", f"{base}/claims/{{run}}")
        ended = explore("--debug", *where, "--runs", "2", "--jobs", "2", "--junit", str(tmp_path / "r.xml"))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    assert ended.stdout.startswith("2 schedules, 3 runs; 0 found\nFaults met: ")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("failures") == "0"


def test_a_saved_schedule_is_replayed_in_every_form(tmp_path: Path) -> None:
    saved = tmp_path / "found"
    saved.mkdir()
    (saved / "accp.yaml").write_text(ACCP)
    html, report = tmp_path / "r.html", tmp_path / "r.json"
    with hooked(HttpAccpIsPaid) as base:
        where = ("--hook", f"{base}/run", "--claims", f"{base}/claims/{{run}}")
        ended = command("conformance", "replay", str(saved), *where, "--html", str(html), "--json", str(report))
    assert ended.returncode == 1
    assert ended.stderr == "bank-emulator: failed: accp (see bank-emulator docs find-the-fault)\n"
    assert "FAIL  accp" in ended.stdout
    assert "believes: paid" in ended.stdout
    assert "true: failed (RJCT)" in ended.stdout
    assert "What was true" in html.read_text()
    (case,) = json.loads(report.read_text())["schedules"]
    assert (case["what"], case["rule"]) == ("believed-paid", 2)
    with hooked() as base:
        where = ("--hook", f"{base}/run", "--claims", f"{base}/claims/{{run}}")
        mended = command("conformance", "replay", str(saved), *where)
        for_programs = command("conformance", "replay", str(saved), *where, "--output", "json")
    assert (mended.returncode, mended.stdout) == (0, "pass  accp\n1 schedule played again, 0 fail\n")
    assert [case["what"] for case in json.loads(for_programs.stdout)["schedules"]] == [""]
    assert for_programs.stderr == "pass  accp\n"


@pytest.fixture
def node_claims(tmp_path: Path) -> Iterator[str]:
    serving = ["node", str(NODE), str(tmp_path), "claims"]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_program_in_node_is_killed_and_started_again(tmp_path: Path, node_claims: str) -> None:
    shop = shlex.join(["node", str(NODE), str(tmp_path)])
    killed = tmp_path / "killed.yaml"
    killed.write_text("tasks: [pay, read]\nrestarts: [1, 3]\n")
    ended = command("conformance", "replay", str(killed), "--command", shop, "--claims", node_claims)
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "pass  killed"), ended.stdout + ended.stderr


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_bug_in_node_is_found(tmp_path: Path, node_claims: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "accp-is-paid")
    shop = shlex.join(["node", str(NODE), str(tmp_path)])
    saved = tmp_path / "found"
    tasks = ("--task", "pay", "--runs", "40", "--seed", "7", "--jobs", "2", "--save", str(saved))
    ended = explore("--command", shop, "--claims", node_claims, *tasks)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "believes: paid" in ended.stdout
    assert len(list(saved.glob("believed-paid-*.yaml"))) == 1


PYTHON = shlex.quote(sys.executable)
NODE_STACK = r"shop.mjs:3\nthrow new Error()\n\nError: no bank\n    at shop.mjs:3:7\n\nNode.js v20.20.2\n"
UNSIGNED = "import os, urllib.request; urllib.request.urlopen(os.environ['BANK_URL'] + '/v1/accounts')"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "use --command or --hook"),
        (
            ("--hook", "http://127.0.0.1:1/run"),
            "the TPP sent no request: the hook cannot be reached: Connection refused",
        ),
        (("--command", "sh -c 'printf \"\\033[2Jno bank\"; exit 3'"), "ended with status 3; it printed: ?[2Jno bank"),
        (("--command", "true"), "the TPP sent no request: it ended without one"),
        (
            ("--command", f'{PYTHON} -c "{UNSIGNED}"'),
            "without any fault the bank refuses what the TPP sends: getAccounts -> 400 HTTP_HEADER_REQUIRED Signature",
        ),
        (("--command", f"{PYTHON} -c 'print(1/0)'"), "ZeroDivisionError: division by zero"),
        (("--command", f"sh -c 'printf \"{NODE_STACK}\"; exit 1'"), "it printed: Error: no bank"),
        (("--command", "sleep 60", "--timeout", "0.3"), "the command did not end within 0.3 s"),
        (("--command", "true", "--runs", "1", "--minutes", "1"), "use --runs or --minutes, not both"),
        (("--command", "true", "--claims", "http://127.0.0.1:1", "--jobs", "2"), "--jobs needs {run} in --claims"),
        (("--hook", "http://127.0.0.1:1", "--restarts"), "--restarts needs --command"),
        (("--command", "true", "--save", "/dev/null/found"), "--save /dev/null/found:"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    ended = explore(*arguments)
    assert ended.returncode == 2
    assert line in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (None, "the hook did not answer within 0.3 s"),
        (b"", "the hook cannot be reached"),
        (b"hello\r\n\r\n", "the answer of the hook is not HTTP"),
        (b"HTTP/1.1 404 No\r\n\r\n", "the hook answered 404"),
        (b"HTTP/1.1 302 No\r\nLocation: /\r\n\r\n", "the hook answered 302"),
    ],
)
def test_a_hook_that_is_none_is_one_line(answer: bytes | None, line: str) -> None:
    class Hook(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            if answer is not None:
                self.wfile.write(answer)
            else:
                self.rfile.read()  # until the client goes away

    with ThreadingTCPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        patience = "0.3" if answer is None else "20"
        ended = explore("--hook", f"http://127.0.0.1:{server.server_address[1]}/run", "--timeout", patience)
        server.shutdown()
    assert ended.returncode == 2
    assert line in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("claims", "line"),
    [
        ("http://127.0.0.1:1", "cannot be reached: Connection refused"),
        ("{base}/nonsense", "answered"),
    ],
)
def test_claims_that_cannot_be_read_are_one_line(claims: str, line: str) -> None:
    with hooked() as base:
        ended = explore("--hook", f"{base}/run", "--claims", claims.format(base=base), "--runs", "1", "--task", "pay")
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("bank-emulator: --claims: ")
    assert line in ended.stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "There is no such file, or it cannot be read."),
        ("tasks: [pay]\nfaults: [{fault: losst}]\n", "There is no fault 'losst'; did you mean lost?"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | None, line: str) -> None:
    file = tmp_path / "one.yaml"
    if text is not None:
        file.write_text(text)
    ended = command("conformance", "replay", str(file), "--command", "true")
    assert ended.returncode == 2
    assert line in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_saved_schedule_is_printed_as_a_scenario_where_one_can_say_it(tmp_path: Path) -> None:
    for name, part in (("Lost_1", ""), ("waits", "time: [{after: 1, passes: 1h}]\n")):
        file = tmp_path / f"{name}.yaml"
        file.write_text(f"tasks: [pay]\n{part}faults: [{{fault: lost, of: createPayment, at: 1, when: after}}]\n")
        ended = command("conformance", "replay", str(file), "--as-scenario")
        if part:
            assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
        else:
            assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "scenario: lost-1")


def test_an_empty_folder_is_one_line(tmp_path: Path) -> None:
    ended = command("conformance", "replay", str(tmp_path), "--command", "true")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)


def test_without_hypothesis_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("search", "draw"):
        monkeypatch.delitem(sys.modules, f"emulator.explore.{module}", raising=False)
        monkeypatch.delattr(package, module, raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    ended = explore("--command", "true")
    assert (ended.returncode, ended.stderr) == (
        2,
        "bank-emulator: conformance explore requires an extra: pip install 'bank-emulator[explore]'"
        " (see bank-emulator docs find-the-fault)\n",
    )
