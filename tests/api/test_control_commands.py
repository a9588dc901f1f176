"""The commands for a running bank: what they print, what they ask, and how they end."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.shell_completion import ShellComplete

from emulator.api.service import BankService
from emulator.assemble import composition
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.cli import bank, main, sca
from emulator.scenario import transport as transports
from emulator.scenario.transport import ReceivedAnswer, Running
from tests.api.conftest import Run
from tests.api.desk import DeskClient
from tests.known_state import DOMESTIC, KARI, PAYMENT


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the TPP `demo`."""
    directory = tmp_path_factory.mktemp("state")
    CertificateAuthority(directory, clock=real_now).demo()
    return directory


def pay(tpp: DeskClient) -> str:
    created = tpp.log_in(KARI).post(DOMESTIC, json=PAYMENT)
    return str(created.json()["paymentId"])


def test_the_clock_is_shown_set_and_moved(run: Run) -> None:
    assert run("clock", "show") == (0, "2026-03-02T08:00:00+00:00 frozen\n", "")
    assert run("clock", "advance", "1h30m")[1] == "2026-03-02T09:30:00+00:00 frozen\n"
    assert run("clock", "set", "2026-03-03T00:00:00Z")[1] == "2026-03-03T00:00:00+00:00 frozen\n"
    assert run("clock", "set", "--mode", "live")[0] == 0
    status, out, err = run("clock", "advance", "soon")
    assert (status, out) == (2, "")
    expected = "Expected a duration such as 10s, 2m, 1h30m, 3d or PT1H, found the text 'soon'."
    assert err == f"bank-emulator: by: {expected}\n"


def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_EMULATOR_CONTROL_TOKEN", "first\nsecond")
    status, out, refused = run("clock", "show")
    assert (status, out) == (2, "")
    assert refused.startswith("bank-emulator: BANK_EMULATOR_CONTROL_TOKEN holds a line break")
    assert "second" not in refused


def test_payments_and_their_sca(run: Run, tpp: DeskClient) -> None:
    payment = pay(tpp)
    assert "RCVD" in run("payments", "list")[1]
    assert json.loads(run("payments", "list", "--output", "json")[1])[0]["paymentId"] == payment
    assert "started" in run("sca", "list")[1]
    assert "psu-id=" in run("sca", "approve", payment)[1]
    status, _, err = run("sca", "approve", payment)
    assert (status, err) == (2, "bank-emulator: The SCA has already ended: finalised.\n")
    assert "ACSC" in run("payments", "advance", payment, "--to", "ACSC")[1]
    other = pay(tpp)
    (link,) = [s["id"] for s in json.loads(run("sca", "list", "--output", "json")[1]) if s["target"] == other]
    assert "code=SCA_INVALID" in run("sca", "reject", f"http://127.0.0.1:8080/sca/{link}")[1]
    pay(tpp)
    assert "code=SCA_EXPIRED" in run("sca", "expire")[1]
    pay(tpp)
    assert "system=core" in run("sca", "fail", "latest", "--status", "503")[1]


def test_an_approval_that_the_bank_refuses_ends_with_2_and_the_reason(run: Run, tpp: DeskClient) -> None:
    tpp.get("/v1/accounts")
    status, out, err = run("sca", "approve", "latest", "--national-id", "00000000000")
    assert (status, "code=PSU_CREDENTIALS_INVALID" in out) == (2, True)
    assert err.splitlines()[-1] == (
        "bank-emulator: not approved: PSU_CREDENTIALS_INVALID, The bank knows no customer with this identity number."
    )
    payment = pay(tpp)
    run("clock", "advance", "11m")
    status, out, err = run("sca", "approve", payment)
    assert (status, "code=SCA_EXPIRED" in out, "not approved: SCA_EXPIRED, " in err) == (2, True, True)
    run("rules", "add", '{"name": "leaves", "then": {"sca": "abandon"}}')
    status, _, err = run("sca", "approve", pay(tpp))
    assert (status, err) == (2, "bank-emulator: not approved: a rule makes the customer leave\n")


def test_the_latest_sca_is_named_and_an_older_one_is_never_taken_for_it(run: Run, tpp: DeskClient) -> None:
    older, latest = pay(tpp), pay(tpp)
    status, redirect, err = run("sca", "approve", "latest")
    assert (status, err.startswith(f"approve payment {latest} of PSDNO-SBX-")) == (0, True)
    status, out, err = run("sca", "approve", "latest")
    assert (status, out) == (2, "")
    assert f"the latest SCA, payment {latest} of " in err
    assert " was approved already at " in err
    assert err.endswith(f" Its browser goes to {redirect}")  # an address that can be copied
    status, out, err = run("sca", "reject")
    assert (status, "to reject an older one, name its id" in err) == (2, True)
    assert run("sca", "approve", older)[0] == 0


def test_the_latest_sca_of_a_tpp_or_a_kind_is_chosen(
    run: Run, service: BankService, authority: CertificateAuthority
) -> None:
    shop, budget = (DeskClient(service, authority, name=name) for name in ("shop", "budget"))
    payment = pay(shop)
    budget.get("/v1/accounts")
    for number in range(100):  # as many as a list has by default
        authority.issue(f"later {number}")
    status, _, err = run("sca", "approve", "--tpp", "shop")
    assert (status, f"payment {payment}" in err) == (0, True)
    assert "approved already" in run("sca", "approve", "--for", "payment")[2]
    given = ("--for", "consent", "--tpp", "budget", "--national-id", KARI)
    assert "approve access of " in run("sca", "approve", *given)[2]
    missing = run("sca", "reject", "--tpp", "nobody", "--for", "payment")[2]
    assert "there is no SCA of TPP nobody for a payment yet" in missing
    assert "--tpp and --for go with the TARGET latest" in run("sca", "approve", payment, "--for", "payment")[2]


def test_requests_are_followed_shown_and_counted(run: Run, tpp: DeskClient) -> None:
    pay(tpp)
    tpp.get("/v1/accounts", tamper="bit-flipped")
    lines = run("requests", "tail", "--no-follow")[1].splitlines()
    assert [line.split()[2:5] for line in lines] == [["201", "POST", DOMESTIC], ["400", "GET", "/v1/accounts"]]
    assert "BAD_REQUEST Signature" in lines[1]
    assert json.loads(run("requests", "tail", "--no-follow", "--last", "1", "--output", "json")[1])["status"] == 400
    assert "signature: refused" in run("requests", "show")[1]
    first = json.loads(run("requests", "tail", "--no-follow", "--output", "json")[1].splitlines()[0])
    assert "signature: valid" in run("requests", "show", first["id"])[1]
    assert run("requests", "count", '{"status": 201}')[1] == "1\n"
    assert run("requests", "count", "{")[0] == 2
    assert run("requests", "clear")[0] == 0
    assert run("requests", "count")[1] == "0\n"


def test_latest_is_named_on_a_terminal_so_that_nobody_approves_another_sca(
    run: Run, tpp: DeskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay(tpp)
    payment = pay(tpp)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status, out, err = run("sca", "reject")
    assert (status, "code=SCA_INVALID" in out) == (0, True)
    assert err.startswith(f"reject payment {payment} of PSDNO-SBX-")
    assert f"customer {KARI}" in err


def test_an_sca_is_named_by_its_address_which_also_names_its_bank() -> None:
    for target, url, base, name in (
        ("token", None, "http://127.0.0.1:8080", "token"),
        ("https://bank.example:8443/sca/token", None, "https://bank.example:8443", "token"),
        ("https://bank.example/banks/a/sca/token/", None, "https://bank.example/banks/a", "token"),
        ("http://bank:8080/banks/a/sca/token", "http://127.0.0.1:9", "http://127.0.0.1:9/banks/a", "token"),
        ("http://bank:8080/banks/a/sca/token?x=1", "http://h/banks/a", "http://h/banks/a", "token"),
    ):
        assert sca.sca_place(target, url) == (base, name), target


def test_events_are_followed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {"type": "payment", "id": "3f2b", "status": "ACSC", "at": "2026-03-02T08:00:00Z"},
        {"type": "request", "id": "7", "at": "x", "status": 200, "method": "GET", "target": "/v1/accounts"},
    ]
    monkeypatch.setattr("emulator.cli.requests.connecting", lambda: lambda _url: Mock(events=lambda: iter(events)))
    assert run("events", "tail")[1].splitlines() == [
        "payment 3f2b 2026-03-02T08:00:00Z ACSC",
        "request 7 x 200 GET /v1/accounts",
    ]
    assert [json.loads(line) for line in run("events", "tail", "--output", "json")[1].splitlines()] == events


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_that_comes_while_the_last_are_listed_is_told_once(
    run: Run, service: BankService, tpp: DeskClient, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The stream of events tells what comes from when it was opened."""

    def events() -> Iterator[dict[str, Any]]:
        seen = service.log.entries()

        def unseen() -> Iterator[dict[str, Any]]:
            for entry in service.log.entries():
                if entry not in seen:
                    yield {"type": "request", **entry.summary()}

        return unseen()

    def ask(*asked: Any) -> Any:
        if when == "before":
            tpp.get("/v1/meanwhile")
        listed = bank.ask(*asked)
        if when == "after":
            tpp.get("/v1/meanwhile")
        return listed

    monkeypatch.setattr("emulator.cli.requests.connecting", lambda: lambda _url: Mock(events=events))
    monkeypatch.setattr("emulator.cli.requests.ask", ask)
    tpp.get("/v1/accounts")
    lines = run("requests", "tail")[1].splitlines()
    assert [line.split()[4] for line in lines] == ["/v1/accounts", "/v1/meanwhile"]


def test_the_bank_is_reset_kept_and_brought_back(run: Run) -> None:
    assert run("snapshot", "save", "monday")[1] == "monday\n"
    assert run("settings", "calendar=norway", 'progression={"polls": 2}', "straks_limit=100.00")[0] == 0
    assert 'progression={"polls": 2}\n' in run("settings")[1]
    assert run("reset", "--fixtures", "empty", "--scenario", "slow-bank")[1] == "empty slow-bank\n"
    assert "every third read is slow" in run("rules", "list")[1]
    assert run("snapshot", "load", "monday")[0] == 0
    assert run("settings", "--output", "json")[1].count('"always-open"') == 1
    assert "monday" in run("snapshot", "list")[1]
    assert run("snapshot", "delete", "monday")[0] == 0
    assert run("snapshot", "load", "monday")[2] == "bank-emulator: There is no snapshot monday.\n"
    assert run("settings", "calendar")[0] == 2


def test_rules_banks_consents_people_ledger_and_generate(run: Run, tpp: DeskClient) -> None:
    tpp.log_in(KARI)
    assert run("rules", "add", '{"name": "slow", "then": {"delay": "1s"}}')[0] == 0
    assert run("rules", "remove", "slow")[0] == 0
    assert run("rules", "remove", "slow")[2] == "bank-emulator: There is no rule slow.\n"
    assert run("rules", "clear")[0] == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/banks/cli-1\n", run("banks", "make", "cli-1", "--seed", "3")[1])
    assert "cli-1" in run("banks", "list")[1]
    assert run("banks", "delete", "cli-1")[0] == 0
    consent = json.loads(run("consents", "list", "--output", "json")[1])[0]["consentId"]
    assert "revoked" in run("consents", "revoke", consent)[1]
    assert "Kari Kladd" in run("people")[1]
    assert run("ledger")[1].endswith("balanced\n")
    assert run("generate", "--customers", "2", "--transactions", "3", "--seed", "1")[1] == (
        "2 customers, 4 accounts, 12 transactions\n"
    )
    one = ("--customers", "1", "--accounts", "1", "--transactions", "1")
    assert run("generate", *one)[1] == "1 customer, 1 account, 1 transaction\n"


def test_columns_have_headings_in_a_terminal_and_none_for_programs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for nothing, words in (("payments list", "payments"), ("scenario status", "rules of scenarios")):
        assert run(*nothing.split()) == (0, "", f"no {words}\n"), "an empty list says so, and stdout stays empty"
        assert run(*nothing.split(), "--output", "json") == (0, "[]\n", "")
    plain = run("ledger")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    heading, *lines = run("ledger")[1].splitlines()
    assert heading.split() == ["iban", "currency", "opening", "bookings", "balance", "reserved"]
    assert [line.split() for line in lines] == [line.split() for line in plain.splitlines()]
    monkeypatch.setattr(sys, "stdout", None)  # as `>&-` leaves it
    assert main.run(["ledger"]) == 0


NAMING = (
    *("rules remove", "banks make", "banks delete", "snapshot save", "snapshot load", "snapshot delete"),
    *("consents revoke", "payments advance", "requests show", "explain --request"),
    *("sca approve", "sca reject", "sca expire", "sca fail"),
)


def test_what_is_no_name_is_wrong_use_and_changes_nothing(run: Run) -> None:
    run("rules", "add", '{"name": "slow", "then": {"delay": "1s"}}')
    for name, message in (("", "must not be empty"), ("bl\udce5", "must be UTF-8")):
        for command in NAMING:
            status, out, err = run(*command.split(), name)
            assert (status, out, err.count("\n")) == (2, "", 1), (command, name)
            assert message in err, (command, name)
            assert "slow" in run("rules", "list")[1], (command, name)


def test_a_bank_that_is_not_there_is_one_line_and_2(run: Run) -> None:
    status, out, err = run("clock", "show", "--url", "http://127.0.0.1:9")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "http://127.0.0.1:9 does not answer" in err


def test_an_address_that_is_none_is_told_with_where_it_was_given(
    run: Run, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    monkeypatch.setenv("BANK_EMULATOR_STATE", str(state))
    for command, url in (
        *(("clock show", url) for url in ("nonsense", "http://[::1", "http://127.0.0.1:abc", "http://", "ftp://[::1]")),
        ("request GET /v1/accounts", "nonsense"),
        ("scenario play slow-bank --here", "nonsense"),
        ("proxy", "nonsense"),
    ):
        message = f"{url.rstrip('/')} is not the address of a bank, such as http://127.0.0.1:8080\n"
        assert run(*command.split(), "--url", url) == (2, "", f"bank-emulator: --url: {message}"), (command, url)
        monkeypatch.setenv("BANK_EMULATOR_URL", url)
        assert run(*command.split()) == (2, "", f"bank-emulator: BANK_EMULATOR_URL: {message}"), (command, url)
        if command == "proxy":
            assert run("proxy", "--to", url) == (2, "", f"bank-emulator: --to: {message}")
        monkeypatch.delenv("BANK_EMULATOR_URL")


def test_a_scenario_is_shown_whatever_the_address_of_the_bank(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("scenario", "show", "slow-bank")
    monkeypatch.setenv("BANK_EMULATOR_URL", "localhost")
    assert run("scenario", "show", "slow-bank") == shown


def test_a_closed_stdin_is_empty(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    status, out, err = run("explain", "-")
    assert (status, out, err.startswith("bank-emulator: -: ")) == (2, "", True)
    assert sys.stdin is None


def test_scenarios_are_listed_shown_checked_and_applied(run: Run, tmp_path: Path) -> None:
    assert "slow-bank" in run("scenario", "list")[1]
    text = run("scenario", "show", "slow-bank")[1]
    own = tmp_path / "own.yaml"
    own.write_text(text.replace("scenario: slow-bank", "scenario: own"))
    schema = text.splitlines()[0].partition("$schema=")[2]
    assert schema == "http://127.0.0.1:8080/_emulator/scenario-schema.json", "where an editor finds it from any folder"
    assert run("scenario", "show", str(own))[1] == own.read_text()
    assert run("scenario", "check", str(own))[:2] == (0, f"{own}: fine\n")
    clock = "bank time 2026-03-02T08:00:00+00:00 frozen"
    assert run("scenario", "apply", str(own))[1] == f"own: documents stay, {clock}, 1 rule\n"
    chosen = ("--set", "creditor=ACME*")
    assert run("scenario", "apply", "lost-answer", *chosen)[1] == f"lost-answer: documents stay, {clock}, 1 rule\n"
    assert '"creditorName": "ACME*"' in run("rules", "list", "--output", "json")[1]
    rows = [line.split()[:1] + line.split()[-2:] for line in run("scenario", "status")[1].splitlines()]
    assert rows == [["own", "0", "0"], ["lost-answer", "0", "0"]]
    left_alone = (
        "the bank cancels: payments/instant-norwegian-domestic-credit-transfers-straks has no step from ACTC to PDNG"
    )
    waits = ("cancelled-by-bank", "pending-for-days")
    for command in (("check", *waits), ("apply", waits[0]), ("status",)):
        assert left_alone in run("scenario", *command)[1]
    assert left_alone in run("rules", "list")[1]
    own.write_text(text.replace("delay", "dealy").replace("every: 3", "every: 0"))
    status, out, err = run("scenario", "check", str(own))
    assert (status, err) == (1, "")
    lines = [
        f"{own}:15:13: Expected a number of at least 1, found the number 0. (rules[0].times.every)",
        f"{own}:16:12: There is no member 'dealy'; did you mean delay? (rules[0].then.dealy)",
    ]
    assert out.splitlines() == lines
    status, out, _ = run("scenario", "check", str(own), "slow-bank", "--output", "json")
    assert [len(result["mistakes"]) for result in json.loads(out)] == [2, 0]
    status, out, err = run("scenario", "apply", str(own))
    mistakes = "; ".join(lines)
    assert (status, out, err) == (2, "", f"bank-emulator: {own} has 2 problems: {mistakes}\n")
    for missing in ("none.yaml", "slow-bnk"):
        status, out, err = run("scenario", "check", missing)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"bank-emulator: {missing}: There is no ")


MISFIT = """\
scenario: misfit
start:
  from: known-state
  change:
    - account: NO00
      balance: "0.00"
story:
  - clock: advance 1s
"""


def test_what_only_the_fixture_shows_to_be_wrong_is_told_with_its_place_too(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "misfit.yaml"
    file.write_text(MISFIT)
    problem = (
        f"{file}:5:7: There is no account NO00; an IBAN, BBAN or resourceId was expected. (start.change[0].account)"
    )
    assert run("scenario", "check", str(file)) == (1, f"{problem}\n", "")
    assert run("scenario", "apply", str(file)) == (2, "", f"bank-emulator: {problem}\n")
    status, out, err = run("scenario", "play", str(file), "slow-bank")
    assert (status, err) == (2, "bank-emulator: 1 of 2 failed: misfit\n")
    assert out.splitlines()[1:3] == ["    0 failed  start misfit", f"      {problem}"]
    assert "slow-bank: " in out
    for base in ("current", "snapshot:monday"):  # what stands there only a running bank knows
        file.write_text(MISFIT.replace("known-state", base))
        assert run("scenario", "check", str(file)) == (0, f"{file}: fine\n", "")


@pytest.mark.parametrize("start", ["", "start: {from: current}\n", "start: {from: nowhere}\n"])
def test_a_file_that_names_no_fixture_is_checked_without_waiting_for_a_bank(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    bank = Mock()
    monkeypatch.setattr(composition, "separate_bank", bank)
    file = tmp_path / "rules.yaml"
    file.write_text(f"scenario: rules-alone\nsummary: A slow bank.\n{start}rules: [{{then: {{delay: 1s}}}}]\n")
    assert run("scenario", "check", str(file))[0] == ("nowhere" in start)
    assert bank.mock_calls == []


def test_a_long_file_is_no_longer_for_a_bank_because_of_its_letters(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    rule = f"{{then: {{answer: {{json: {'å' * 500_000}}}}}}}"
    file.write_text(f"scenario: long\nsummary: s\nstart: {{from: empty}}\nrules: [{rule}]\n", "utf-8")
    assert run("scenario", "check", str(file)) == (0, f"{file}: fine\n", "")
    assert run("scenario", "apply", str(file), "--yes")[0] == 0


def test_a_file_that_no_bank_takes_as_json_is_not_fine(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    quotes = '"' * 600_000  # each of them has two bytes in JSON
    rule = f"{{then: {{answer: {{json: '{quotes}'}}}}}}"
    file.write_text(f"scenario: long\nsummary: s\nstart: {{from: empty}}\nrules: [{rule}]\n", "utf-8")
    for command in ("check", "apply"):
        status, out, err = run("scenario", command, str(file))
        assert status != 0
        assert "1048576 bytes" in out + err


STORY = """\
scenario: two-steps
summary: One step goes well, one does not.
start: {from: known-state}
as: {nationalId: "14888520059"}
story:
  - tpp: GET /v1/accounts
    save: {account: "accounts[0].resourceId"}
  - tpp: GET /v1/accounts/${account}
    expect: {status: 201, json: {account: {iban: NO1, bban: "99901000014"}}}
  - clock: advance 1s
"""


def test_a_story_is_told_step_by_step_with_what_was_expected_and_what_came(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "two-steps.yaml"
    file.write_text(STORY)
    junit = tmp_path / "junit.xml"
    status, out, err = run("scenario", "play", str(file), "--junit", str(junit))
    assert (status, err) == (1, "bank-emulator: 1 of 1 failed: two-steps\n")
    lines = out.splitlines()
    assert lines[0] == "two-steps: One step goes well, one does not."
    assert lines[1] == "    1 passed  tpp GET /v1/accounts"
    assert lines[2].startswith("    2 failed  tpp GET /v1/accounts/")
    assert lines[3] == "      status: expected the number 201, found the number 200"
    assert lines[4] == "      account.iban: expected the text 'NO1', found the text 'NO8599901000014'"
    assert lines[5].startswith('      expected: {"status": 201')
    assert lines[6].startswith('      received: {"status": 200, "json": {"account":')
    assert lines[7] == "    3 skipped clock advance 1s"
    assert '<testsuite name="two-steps" tests="3" failures="1" skipped="1"' in junit.read_text()
    assert 'message="status: expected the number 201, found the number 200; account.iban' in junit.read_text()
    status, out, _ = run("scenario", "play", str(file), "--output", "json")
    assert [step["outcome"] for step in json.loads(out)[0]["steps"]] == ["passed", "failed", "skipped"]


@pytest.mark.parametrize(
    "step, reason",
    [
        ("{tpp: GET /v1/accounts/ø, expect: {status: 404}}", "an address is ASCII without blanks (write %20), not"),
        ('{tpp: "GET /v1/accounts?x=${who}"}', "an address is ASCII without blanks (write %20), not"),
        ('{control: "GET payments/${who}", expect: {status: 404}}', "an address is ASCII without blanks"),
        (
            '{tpp: GET /v1/accounts, headers: {X-Test: "a\\nb"}}',
            "the value of the header X-Test must be one line of text, not",
        ),
    ],
)
def test_a_step_that_cannot_be_sent_fails_and_the_next_story_plays(
    run: Run, tmp_path: Path, step: str, reason: str
) -> None:
    file = tmp_path / "unsendable.yaml"
    saved = '{control: GET people, save: {who: "people[0].name"}}'
    file.write_text(f"scenario: unsendable\nstart: {{from: known-state}}\nstory:\n  - {saved}\n  - {step}\n")
    status, out, err = run("scenario", "play", str(file), "slow-bank")
    assert (status, err) == (1, "bank-emulator: 1 of 2 failed: unsendable\n")
    assert f"The request cannot be sent: {reason}" in out
    assert "slow-bank: " in out


def test_an_address_that_cannot_be_asked_is_one_line_and_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANK_EMULATOR_STATE", str(tmp_path))
    CertificateAuthority(tmp_path, clock=real_now).demo()
    for arguments, message in (
        (["clock", "show", "--url", "http://localhost:99999"], "http://localhost:99999 is not the address of a bank"),
        (["requests", "tail", "--url", "http://[x"], "http://[x is not the address of a bank"),
        (["clock", "show", "--url", "http://a..b"], "--url: http://a..b is not the address of a bank"),
        (
            ["clock", "show", "--url", "http://127.0.0.1:1/banks/a b"],
            "--url: http://127.0.0.1:1/banks/a b is not the address",
        ),
        (["request", "GET", "/v1/a b", "--url", "http://127.0.0.1:1"], "an address is ASCII"),
        (["request", "GET", "/v1/ø", "--url", "http://127.0.0.1:1"], "an address is ASCII"),
        (["proxy", "--to", "http://localhost:99999"], "http://localhost:99999 is not the address of a bank"),
    ):
        assert main.run(arguments) == 2, arguments
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), arguments
        assert message in err, arguments
        assert "--debug" not in err, arguments


def test_a_scenario_without_a_story_is_said_to_have_none(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rules-alone.yaml"
    file.write_text("scenario: rules-alone\nsummary: No story.\n")
    output = "rules-alone: No story.\n  it has no story: only its start is tried\n"
    assert run("scenario", "play", str(file)) == (0, output, "")


@pytest.mark.parametrize(
    "values, message",
    [
        (["creditr=x"], "There is no parameter 'creditr'; did you mean creditor?"),
        (["creditor"], "'creditor' is not NAME=VALUE"),
        (["=x"], "'=x' is not NAME=VALUE"),
    ],
)
def test_a_parameter_that_is_none_is_wrong_use(run: Run, values: list[str], message: str) -> None:
    status, out, err = run("scenario", "apply", "lost-answer", *(part for one in values for part in ("--set", one)))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert run("rules", "list")[1] == ""


def test_who_would_lose_something_is_asked(run: Run, tpp: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    payment = pay(tpp)
    status, out, err = run("scenario", "apply", "accept-fix-before")
    assert (status, out) == (2, "")
    assert err.startswith("bank-emulator: accept-fix-before replaces 4 customers, ")
    assert "1 payment" in err
    assert err.endswith("; --yes applies it\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for answer, applied in (("n", False), ("", False), ("y", True)):
        asked: list[str] = []

        def confirm(text: str, _answer: str = answer, _asked: list[str] = asked, **_: Any) -> bool:
            _asked.append(text)
            return _answer == "y"

        monkeypatch.setattr("click.confirm", confirm)
        status, out, _ = run("scenario", "apply", "accept-fix-before")
        assert len(asked) == 1
        assert (status, "documents replaced" in out) == ((0, True) if applied else (2, False))
        assert (payment in run("payments", "list")[1]) is not applied
    pay(tpp)
    assert run("scenario", "apply", "accept-fix-before", "--yes")[0] == 0


def test_a_story_touches_a_running_bank_only_when_told_so(
    run: Run, tpp: DeskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = pay(tpp)
    monkeypatch.setenv("BANK_EMULATOR_URL", "http://127.0.0.1:8080")
    assert run("scenario", "play", "slow-bank")[0] == 0
    assert payment in run("payments", "list")[1], "the environment alone is no reason to reset a bank"
    assert run("scenario", "play", "slow-bank", "--here")[0] == 0
    assert payment not in run("payments", "list")[1]


def test_wrong_use_is_one_line_and_2(run: Run) -> None:
    for arguments, message in (
        (["scenario", "play"], "name a scenario or a file, or use --all"),
        (["scenario", "play", "slow-bnk"], "did you mean slow-bank?"),
        (["scenario", "play", "none.yaml"], "There is no such file"),
        (["scenario", "play", "slow-bank", "--junit", "/nowhere/x.xml"], "--junit /nowhere/x.xml: No such file"),
        (["scenario", "apply"], "Missing argument"),
        (["sca", "approve", "http://["], "http://[ is no address: Invalid IPv6 URL"),
        (["sca", "approve", "/"], "/ names no SCA"),
        (["notifications", "--target", "\udce5"], "a value is not UTF-8"),
        (["collection", "--proxy", "localhost:9090"], "--proxy: localhost:9090 is not the address of a bank, such as"),
        (["serve", "--seed", "9" * 19], "--seed takes a whole number of at most 18 digits"),
        (["clock", "advance", "-1h"], "No such option '-1': a value that begins with - is written after -- (see"),
        (["clock", "advance", "--", "-1h"], "by: Expected a duration such as 10s"),
    ):
        status, _, err = run(*arguments)
        assert (status, err.count("\n")) == (2, 1), arguments
        assert message in err, arguments


def test_json_that_nobody_reads_is_one_line_and_2(run: Run) -> None:
    for text in (
        *("[" * 50_000, "[" * 800 + "]" * 800, '{"a":' * 900 + "1" + "}" * 900, "9" * 5000),
        *("NaN", "[-Infinity]", "1e999", '{"name": "\\ud800"}', '{"name": "\udce5"}', "\udce5", "\x00", ""),
    ):
        for command in (
            ("rules", "add", text),
            ("requests", "count", text),
            ("settings", f"progression={text}"),
            ("scenario", "apply", "amended-when-booked", "--set", f"percent={text}"),
        ):
            status, out, err = run(*command)
            assert (status, out, err.count("\n")) == (2, "", 1), command[0]
            assert "--debug" not in err, ascii(text[:20])


@pytest.mark.parametrize(
    "command, options",
    [
        (("conformance", "run"), ("--junit", "--html", "--json", "--write-baseline")),
        (("conformance", "explore"), ("--junit", "--html", "--json")),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    run: Run, tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    begun = tmp_path / "begun"
    for option in options:
        for file, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "x", "No such file or directory")):
            status, out, err = run(*command, "--command", f"touch {begun}", option, str(file))
            assert (status, out, err) == (2, "", f"bank-emulator: {option} {file}: {why}\n")
    assert not begun.exists()


def test_a_bank_to_play_on_that_does_not_run_is_2_as_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["scenario", "play", "slow-bank", "--url", "http://127.0.0.1:1"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "http://127.0.0.1:1 does not answer" in err


@pytest.mark.parametrize("noun", ["scenario", "state", "rules"])
def test_a_group_without_a_command_prints_its_help_and_is_2(run: Run, noun: str) -> None:
    assert run(noun) == (2, run(noun, "--help")[1], "")


NOUNS = (
    *("scenario", "clock", "sca", "payments", "consents", "requests", "reset", "snapshot", "settings", "rules"),
    *("banks", "people", "ledger", "generate"),
)


def test_every_command_has_help_with_an_example(run: Run) -> None:
    for noun in NOUNS:
        command = main.group.commands[noun]
        inner = getattr(command, "commands", {})
        for name in inner or [""]:
            arguments = [noun, name, "--help"] if name else [noun, "--help"]
            status, out, _ = run(*arguments)
            assert status == 0, noun
            assert "Example: bank-emulator" in " ".join(out.split()), noun


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, bytes], None]:
    """Puts a program at the address of the bank that answers alike whatever it is asked."""

    def put(status: int, body: bytes) -> None:
        class Program(Running):
            def control(self, *_: Any) -> ReceivedAnswer:
                return ReceivedAnswer(status, body=body)

        monkeypatch.setattr(transports, "Running", Program)

    return put


def test_another_program_at_the_address_is_no_bank(run: Run, answering: Callable[[int, bytes], None]) -> None:
    message = "bank-emulator: http://127.0.0.1:8080 does not answer as a bank does: is it another program?\n"
    for status, body in (
        *((200, body) for body in (b"<html>", b"[]", b"", b"{}", b"[" * 100_000)),
        *((302, b""), (404, b"<html>"), (502, b'"x"')),
    ):
        answering(status, body)
        for command in (
            "clock show",
            "reset",
            "payments list",
            "requests tail --no-follow",
            "explain --request latest",
        ):
            assert run(*command.split()) == (2, "", message), (status, body[:9], command)


def test_a_refusal_by_another_program_is_told(run: Run, answering: Callable[[int, bytes], None]) -> None:
    for messages in (5, [5], [{}], [{"text": 5}]):
        answering(500, json.dumps({"tppMessages": messages}).encode())
        assert run("clock", "show") == (2, "", "bank-emulator: the bank answered 500\n"), messages


def test_a_name_that_no_file_can_have_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state" / "tpps").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for command in ("tpp list --state", "request GET / --state state --tpp", "scenario show", "scenario check"):
        status, out, err = run(*command.split(), "x" * 300)
        assert (status, out, err.count("\n")) == (2, "", 1), command
        assert err.endswith("File name too long\n"), command


@pytest.mark.parametrize("body", [b"<html>", b"{}", b""])
def test_what_another_program_answers_is_no_stream_of_events(
    run: Run, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    connection = Mock()
    connection.getresponse.return_value = Mock(
        status=200, **{"getheader.return_value": None, "read.return_value": body}
    )
    monkeypatch.setattr(transports, "Running", Running)
    monkeypatch.setattr(transports, "connection_to", lambda *_, **__: connection)
    message = "bank-emulator: http://127.0.0.1:8080 does not answer as a bank does: is it another program?\n"
    assert run("requests", "tail", "--last", "0") == (2, "", message)


def test_an_answer_that_never_comes_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Running):
        def control(self, *_: Any) -> ReceivedAnswer:
            return ReceivedAnswer(lost=True)

    monkeypatch.setattr(transports, "Running", Silent)
    assert "closed the connection" in run("clock", "show")[2]


def test_a_shell_completes_values(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, incomplete, expected in (
        (["scenario", "apply"], "slow-b", "slow-bank"),
        (["reset", "--scenario"], "lost-a", "lost-answer"),
        (["tpp", "new", "shop", "--flaw"], "exp", "expired"),
        (["settings"], "straks_l", "straks_limit="),
        (["request", "--tpp"], "de", "demo"),
    ):
        monkeypatch.setenv("BANK_EMULATOR_STATE", str(state))
        completion = ShellComplete(main.group, {}, "bank-emulator", "_BANK_EMULATOR_COMPLETE")
        assert [item.value for item in completion.get_completions(words, incomplete)] == [expected], words
