"""Fixtures and scenarios of a team's own folder (prepare-data.md#a-folder-of-your-own)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from emulator import packaged
from emulator.api.messages import Request, Response
from emulator.assemble import assemble, authority_for
from emulator.assemble.application import BankApplication
from emulator.cli import main
from emulator.failure import Failed
from emulator.settings import ServeSettings
from tests.e2e.process import pytest_in

CUSTOMERS = """fixture: our-customers
summary: One customer.
customers:
  - customerNumber: "14888520059"
    name: Our Customer
    type: private
accounts:
  - customerNumber: "14888520059"
    bban: "99901000014"
    balance: "1.00"
"""
OUTAGE = """scenario: our-outage
summary: Everything is down.
start: {from: our-customers}
rules:
  - name: down
    when: {operation: getAccounts}
    then: {answer: {status: 503}}
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "team-data"
    for name, text in {"fixtures/our-customers.yaml": CUSTOMERS, "scenarios/our-outage.yml": OUTAGE}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    yield folder
    packaged.use(None)


def started(data: Path, **settings: Any) -> BankApplication:
    return assemble(ServeSettings(data=data, **settings), authority=authority_for(None))


def shown(application: BankApplication, path: str) -> str:
    answer = application.handle(Request("GET", path, (("Host", "127.0.0.1:8080"),)))
    assert isinstance(answer, Response)
    assert answer.status == 200
    return answer.body.decode()


def test_a_bank_offers_own_files_wherever_it_offers_ready_ones(data: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    application = started(data, state=state, fixtures="our-customers", scenario=("our-outage",))
    assert "Our Customer" in shown(application, "/console/customers")
    listed = shown(application, "/console/scenarios")
    assert "Everything is down." in listed
    assert "slow-bank" in listed
    assert '<option value="our-customers"' in shown(application, "/console/reset")
    assert '"our-customers"' in shown(application, "/_emulator/scenario-schema.json")

    # Damaged after the start: listed with its problem, the others as before.
    (data / "scenarios" / "our-outage.yml").write_text("scenario: our-outage\nrule: []\n")
    listed = shown(application, "/console/scenarios")
    assert "our-outage.yml:2:1: There is no member" in listed
    assert "slow-bank" in listed
    application.close()

    # The bank keeps its fixture, also without the folder.
    packaged.use(None)
    application = assemble(ServeSettings(state=state, fixtures="known-state"), authority=authority_for(None))
    assert "Our Customer" in shown(application, "/console/customers")
    application.close()


def test_an_own_file_is_used_in_place_of_a_ready_one_and_the_log_says_so(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "scenarios" / "slow-bank.yaml").write_text(OUTAGE.replace("our-outage", "slow-bank"))
    with caplog.at_level(logging.WARNING):
        application = started(data, state=Path(), ephemeral=True, scenario=("slow-bank",))
    application.close()
    assert f"{data}/scenarios/slow-bank.yaml is used in place of the ready one" in caplog.text
    assert "our-outage" not in caplog.text


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("fixtures/bad.yaml", "customer: []\n", "bad.yaml:1:1: There is no member 'customer'"),
        ("scenarios/bad.yaml", "scenario: bad\nrules: [", "bad.yaml:3:1: "),
        (
            "scenarios/Bad Name.yaml",
            "scenario: Bad Name\n",
            "Bad Name.yaml: A scenario has the name of its file, which is",
        ),
        (
            "scenarios/Bad Name.yaml",
            "scenario: bad-name\n",
            "Bad Name.yaml: A scenario has the name of its file, which is",
        ),
        ("scenarios/bad.yaml", "scenario: good\n", "bad.yaml:1:1: It has the name of its file, bad"),
    ],
)
def test_a_file_with_problems_is_one_line_that_names_it(data: Path, file: str, text: str, expected: str) -> None:
    (data / file).write_text(text)
    with pytest.raises(Failed, match=r"^--data ") as refused:
        started(data, state=Path(), ephemeral=True)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("taken", ["fixtures/our-customers.yml", "scenarios/our-outage.yaml"])
def test_two_files_of_one_name_are_refused_by_all_who_read_them(
    data: Path, capsys: pytest.CaptureFixture[str], taken: str
) -> None:
    (data / taken).write_text(CUSTOMERS if taken.startswith("fix") else OUTAGE)
    for command in (["serve", "--data", str(data)], ["scenario", "list", "--data", str(data)]):
        assert main.run(command) == 2
        output = capsys.readouterr().err
        assert all(f"{data / taken.partition('.')[0]}{end}" in output for end in (".yaml", ".yml"))


@pytest.mark.parametrize(
    ("added", "path", "body"),
    [
        ("fixtures/our-customers.yml", "reset", {"fixtures": "our-customers"}),
        ("scenarios/our-outage.yaml", "scenario", {"name": "our-outage"}),
    ],
)
def test_a_second_file_of_one_name_that_comes_while_the_bank_runs_is_refused(
    data: Path, added: str, path: str, body: dict[str, Any]
) -> None:
    application = started(data, state=Path(), ephemeral=True)
    (data / added).write_text(CUSTOMERS if path == "reset" else OUTAGE)
    headers = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
    answer = application.handle(Request("POST", f"/_emulator/{path}", headers, json.dumps(body).encode()))
    application.close()
    assert isinstance(answer, Response)
    [message] = json.loads(answer.body)["tppMessages"]
    assert (answer.status, "delete one of the two" in message["text"]) == (400, True)


def test_a_story_cannot_play_another_one(data: Path) -> None:
    """It would go on in itself for ever."""
    (data / "scenarios" / "itself.yaml").write_text(
        "scenario: itself\nstory: [{control: POST scenarios/itself/play}]\n"
    )
    application = started(data, state=Path(), ephemeral=True)
    headers = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
    answer = application.handle(Request("POST", "/_emulator/scenarios/itself/play", headers, b"{}"))
    assert isinstance(answer, Response)
    (step,) = json.loads(answer.body)["steps"]
    assert (step["found"]["status"], step["found"]["json"]["tppMessages"][0]["code"]) == (409, "CONFLICT")
    application.close()


@pytest.mark.parametrize("name", ["fixtures", "scenarios"])
def test_a_pipe_is_refused_without_waiting_for_its_writer(data: Path, name: str) -> None:
    os.mkfifo(data / name / "pipe.yaml")
    with pytest.raises(Failed, match=r"pipe\.yaml: This is not a regular file"):
        started(data)


def test_the_commands_about_scenarios_know_them(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "scenarios" / "bad.yaml").write_text("scenario: bad\nrule: []\n")
    assert main.run(["scenario", "list", "--data", str(data)]) == 0
    output = capsys.readouterr()
    assert "our-outage" in output.out
    assert "slow-bank" in output.out
    assert "bad.yaml:2:1: There is no member 'rule'" in output.err
    assert len(output.err.splitlines()) == 1
    assert main.run(["scenario", "check", "our-outage", "--data", str(data)]) == 0
    (data / "fixtures" / "bad.yaml").write_text("customer: []\n")
    capsys.readouterr()
    assert main.run(["scenario", "check", "--data", str(data)]) == 1
    checked = capsys.readouterr().out
    assert f"{data}/fixtures/bad.yaml:1:1: There is no member 'customer'" in checked
    assert f"{data}/scenarios/bad.yaml:2:1: There is no member 'rule'" in checked
    assert f"{data}/fixtures/our-customers.yaml: fine" in checked
    assert f"{data}/scenarios/our-outage.yml: fine" in checked
    assert main.run(["scenario", "check"]) == 2
    assert main.run(["scenario", "show", "our-outage"]) == 2
    monkeypatch.setenv("BANK_EMULATOR_DATA", str(data))
    assert main.run(["scenario", "show", "our-outage"]) == 0
    monkeypatch.delenv("BANK_EMULATOR_DATA")
    assert main.run(["scenario", "list", "--data", str(data / "scenarios")]) == 2
    assert "--data takes a folder that holds" in capsys.readouterr().err
    completion = ShellComplete(main.group, {}, "bank-emulator", "_BANK_EMULATOR_COMPLETE")
    for words, incomplete, expected in (
        (["scenario", "apply", "--data", str(data)], "our", "our-outage"),
        (["serve", "--data", str(data), "--fixtures"], "our", "our-customers"),
    ):
        packaged.use(None)
        assert [item.value for item in completion.get_completions(words, incomplete)] == [expected]


def test_tests_name_them(data: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nbank_data = team-data\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.bank(fixtures='our-customers')\n"
        "def test_it(bank):\n"
        "    bank.apply('our-outage')\n"
        "    assert bank.customer().view()['name'] == 'Our Customer'\n"
    )
    run = pytest_in(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    (data / "scenarios" / "our-outage.yml").write_text("scenario: our-outage\nrule: []\n")
    run = pytest_in(tmp_path)
    assert run.returncode == 4
    assert f"bank_data: {data}/scenarios/our-outage.yml:2:1: There is no member" in run.stderr
