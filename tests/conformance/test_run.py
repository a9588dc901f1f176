"""The plan against a TPP in another language, started once per check; and what a plan says of commands that fail."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance.check import ready
from emulator.conformance.runner import RunFailed, persons_of
from emulator.scenario import transport
from emulator.scenario.transport import ReceivedAnswer, Running
from tests.e2e.process import command
from tests.explore.hooked import HttpMerchant, HttpWorld, hooked
from tests.explore.merchant import Merchant
from tests.tools import tool

NODE = Path(__file__).parents[1] / "explore" / "explorable.mjs"


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command("conformance", "run", *arguments)


@pytest.fixture
def claims(tmp_path: Path) -> Iterator[str]:
    """Where the program in Node says what it believes."""
    serving = [tool("node"), str(NODE), str(tmp_path), "claims"]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip().replace("{run}", "{check}")
        server.kill()


def test_a_tpp_in_node_passes(tmp_path: Path, claims: str) -> None:
    """A payment and a read; test_checks plays each check with a TPP in this process."""
    shop = shlex.join(["node", str(NODE), str(tmp_path)])
    few = ("--only", "certificate-in-order", "--only", "balance-follows-the-ledger")
    ended = plan("--command", shop, "--claims", claims, "--json", str(tmp_path / "report.json"), "--jobs", "2", *few)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert verdicts(tmp_path / "report.json") == {"certificate-in-order": "pass", "balance-follows-the-ledger": "pass"}


class RealTime(HttpWorld):
    """A plan advances bank time; its TPP pauses a little."""

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.6))


class Patient(HttpMerchant):
    """It waits for the customer as long as that takes."""

    def approve(self, link: str) -> None:
        Merchant.approve(self, link)


@pytest.mark.long
def test_a_tpp_behind_a_hook_passes_the_whole_plan(tmp_path: Path) -> None:
    with hooked(Patient, RealTime) as base:
        where = ("--hook", f"{base}/run", "--claims", f"{base}/claims/{{check}}")
        ended = plan(*where, "--json", str(tmp_path / "report.json"), "--jobs", "4")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert verdicts(tmp_path / "report.json") == {check.check: "pass" for check in ready()}


def verdicts(report: Path) -> dict[str, str]:
    return {row["check"]: row["verdict"] for row in json.loads(report.read_text())["checks"]}


def test_by_hand_it_waits_for_enter_and_ends_with_the_reason_where_nobody_can_press_it() -> None:
    line = ("conformance", "run", "--only", "honest-clock", "--only", "fresh-request-id")
    pressed = command(*line, given="\n\n")
    assert pressed.stderr.count("Press Enter when your TPP is done") == 2
    assert (pressed.returncode, "the TPP sent no request" in pressed.stderr) == (2, True)
    ended = command(*line, given="\n")
    assert (ended.returncode, ended.stderr.rpartition("bank-emulator: ")[2]) == (
        2,
        "stdin has ended: without --command or --hook each check waits for Enter\n",
    )


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b""])
def test_another_program_at_the_address_is_no_bank(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    class Other(Running):
        def control(self, *_: Any) -> ReceivedAnswer:
            return ReceivedAnswer(200, body=body)

    monkeypatch.setattr(transport, "Running", Other)
    ended = plan("--url", "http://127.0.0.1:1", "--command", "true")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "bank-emulator: http://127.0.0.1:1 does not answer as a bank does: is it another program?\n"
    )


def test_a_command_that_dies_or_hangs_is_told_and_the_other_checks_go_on() -> None:
    program = "echo no network; case $BANK_CHECK in *clock*) exit 3; esac; exec sleep 60"
    only = ("--only", "honest-clock", "--only", "signs-every-request")
    ended = plan("--command", shlex.join(["sh", "-c", program]), "--timeout", "0.5", *only)
    assert ended.returncode == 2
    assert "bank-emulator: the TPP sent no request in any check: the command " in ended.stderr
    assert "the command ended with status 3; it printed: no network" in ended.stderr
    assert "the command did not end within 0.5 s and was stopped" in ended.stderr
    assert "2 not seen" in ended.stdout


def test_checks_run_side_by_side_and_are_told_in_their_order() -> None:
    only = [
        word for name in ("signs-every-request", "honest-clock", "repeats-a-lost-answer") for word in ("--only", name)
    ]
    ending = ("--command", "true")
    one_by_one, together = plan(*ending, *only), plan(*ending, *only, "--jobs", "3")
    assert together.stderr == one_by_one.stderr
    assert together.stderr.count("not-seen") == 3


def test_by_hand_one_check_comes_after_another() -> None:
    assert "--jobs goes with --command or --hook" in plan("--jobs", "2").stderr


def test_the_last_lines_of_a_long_output_are_shown_whole() -> None:
    program = shlex.join([sys.executable, "-c", "for n in range(1000): print(f'line {n}.')\nraise SystemExit(3)"])
    _, failed, *shown, last = plan("--only", "honest-clock", "--command", program).stderr.splitlines()
    assert failed.endswith("it printed: line 999.")
    assert shown == [f"          line {number}." for number in range(1000 - len(shown), 1000)]
    assert len(shown) > 100
    assert "line 999." in last
    assert "line 998." not in last


def test_what_a_command_prints_is_shown_once_for_several_checks_that_fail_alike() -> None:
    program = shlex.join(["sh", "-c", "echo one; echo two; exit 3"])
    ended = plan("--only", "honest-clock", "--only", "signs-every-request", "--command", program)
    shown = ended.stderr.splitlines()
    assert (shown.count("          one"), sum("status 3; it printed: two" in line for line in shown)) == (1, 3)


def test_claims_of_checks_side_by_side_have_addresses_of_their_own() -> None:
    refused = plan("--command", "true", "--jobs", "2", "--claims", "http://127.0.0.1:1")
    assert refused.returncode == 2
    assert "--jobs needs {check} in --claims" in refused.stderr


@pytest.mark.parametrize("shop", ["exit 3", ":"])
def test_a_tpp_that_sends_nothing_ends_the_plan_with_a_failure(shop: str, tmp_path: Path) -> None:
    sending = ("--command", shlex.join(["sh", "-c", shop]), "--only", "honest-clock", "--only", "fresh-request-id")
    ended = plan(*sending, "--require-seen", "--json", str(tmp_path / "report.json"))
    assert ended.returncode == 2
    assert "bank-emulator: the TPP sent no request in any check" in ended.stderr
    assert ("the command ended with status 3" in ended.stderr) == (shop == "exit 3")
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["not-seen"] == 2


def test_what_a_plan_did_not_see_is_not_sent_to_the_plan() -> None:
    ended = plan("--command", "true", "--only", "honest-clock")
    assert "your TPP ended early, or does not use what it is about." in ended.stdout


def test_an_unknown_check_is_named_with_a_guess() -> None:
    ended = plan("--command", "true", "--only", "honest-clok")
    assert ended.returncode == 2
    assert "did you mean honest-clock?" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--command", ""), "in the command ''"),
        (
            ("--command", "/no/such/program --once"),
            "there is no program that can be run in the command '/no/such/program --once'",
        ),
        (("--command", "sh -c 'x"), "there is no program that can be run in the command"),
        (("--hook", "nonsense"), "--hook takes an http or https address"),
        (("--command", "true", "--baseline", "no-such-file"), "no-such-file"),
    ],
)
def test_what_can_never_run_is_refused_before_anything_runs(arguments: tuple[str, ...], problem: str) -> None:
    ended = plan("--only", "honest-clock", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert problem in ended.stderr
    assert "not-seen" not in ended.stderr


def test_a_plan_leaves_nothing_behind_and_its_bank_has_no_flags_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANK_EMULATOR_STORE", "postgresql://127.0.0.1:1/none")
    ended = command("conformance", "run", "--only", "honest-clock", "--command", "true")
    assert "1 not seen" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_bank_with_one_person_alone_cannot_be_used() -> None:
    alone = {"nationalId": "14888520059", "accounts": [{"iban": "NO8599901000014"}], "agreements": []}
    with pytest.raises(RunFailed, match="the checks need somebody else too"):
        persons_of([alone], "PRIVATE")
