"""The audit from outside: the pytest plugin, --bank-audit, and the command against a bank that runs."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from emulator.assemble.application import BankApplication
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.threads import run_to_end
from emulator.conformance import END_OF_PAGE, facts, observer
from emulator.conformance.auditor import Auditor
from emulator.conformance.check import ready
from emulator.testing import RunningBank
from tests.e2e.process import command, pytest_in
from tests.known_state import DOMESTIC, EVEN, KARI, PAYMENT


def audit(bank: RunningBank, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command("conformance", "audit", "--url", bank.url, *arguments)


def test_a_test_asks_what_the_bank_says_of_the_tpp(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    tpp.get("/v1/accounts")
    report = bank.audit()
    verdicts = {row["check"]: row["verdict"] for row in report["checks"]}
    assert verdicts["signs-every-request"] == "pass"
    assert verdicts["repeats-a-lost-answer"] == "not-seen"
    assert report["summary"]["fail"] == 0


def test_a_bank_that_is_down_is_an_occasion_for_the_report(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    bank.apply("bank-down")
    for minutes in (0, 10):
        bank.clock.advance(f"{minutes}m")
        tpp.get("/v1/accounts")
    (row,) = [row for row in bank.audit()["checks"] if row["check"] == "backs-off-on-503"]
    assert row["verdict"] == "pass"


def test_a_reset_begins_the_report_again_and_so_does_a_scenario_that_replaces_the_documents(bank: RunningBank) -> None:
    for args in (["reset"], ["scenario", "apply", "accept-fix-after", "--yes"]):
        bank.tpp().log_in().get("/v1/accounts")
        assert command(*args, "--url", bank.url).returncode == 0
        assert {row["verdict"] for row in bank.audit()["checks"]} == {"not-seen"}, args


def verdict(bank: RunningBank, check: str) -> tuple[str, str]:
    """The verdict of a check, with its text."""
    (row,) = [row for row in bank.audit()["checks"] if row["check"] == check]
    return row["verdict"], row["text"]


def test_what_is_due_by_the_end_is_judged_when_the_report_is_requested(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    bank.apply("lost-answer")
    prepared = tpp.prepare("POST", DOMESTIC, json=PAYMENT)
    with pytest.raises(RemoteDisconnected):
        tpp.send(prepared)
    assert verdict(bank, "repeats-a-lost-answer")[0] == "fail"
    ended = audit(bank, "--only", "repeats-a-lost-answer")
    assert (ended.returncode, "failed: repeats-a-lost-answer" in ended.stderr) == (1, True)
    tpp.send(prepared)
    assert verdict(bank, "repeats-a-lost-answer") == ("pass", "")


def test_an_occasion_that_nothing_has_decided_is_told_apart_from_none(bank: RunningBank) -> None:
    tpp = bank.tpp()
    assert verdict(bank, "takes-psu-id-and-session") == ("not-seen", "There was no occasion.")
    tpp.approve(tpp.get("/v1/accounts").json()["_links"]["scaRedirect"]["href"], nationalId=KARI)
    assert verdict(bank, "takes-psu-id-and-session")[1].startswith("The occasion arose")
    tpp.get("/v1/accounts")
    assert verdict(bank, "takes-psu-id-and-session")[0] == "pass"


@pytest.mark.bank(settings={"progression": "manual"})
def test_a_pace_is_that_of_bank_time_where_only_a_test_advances_it(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    status = tpp.post(DOMESTIC, json=PAYMENT).json()["_links"]["status"]["href"]
    for _ in range(4):
        tpp.get(status)
        bank.clock.advance(days=1)
    assert verdict(bank, "polls-at-a-measured-pace") == ("pass", "")
    for _ in range(4):
        tpp.get(status)
    assert verdict(bank, "polls-at-a-measured-pace")[0] == "warn"


def test_two_customers_of_a_usual_client_whose_clock_stands_still_fail_nothing(bank: RunningBank) -> None:
    kari, even = bank.tpp(), bank.tpp()
    asked = [tpp.get("/v1/accounts").json()["_links"]["scaRedirect"]["href"] for tpp in (kari, even)]
    kari.approve(asked[0], nationalId=KARI)
    even.approve(asked[1], nationalId=EVEN)
    for tpp in (kari, even, kari):
        for account in tpp.get("/v1/accounts").json()["accounts"]:
            tpp.get(account["_links"]["transactions"]["href"])
    kari.forget()
    kari.log_in(EVEN).get("/v1/accounts")
    kari.log_in(KARI).get("/v1/accounts")
    assert bank.audit()["summary"]["fail"] == 0


def test_a_customer_who_comes_back_after_the_session_has_not_renewed_too_early(bank: RunningBank) -> None:
    tpp = bank.tpp()
    for _ in range(3):
        tpp.approve(tpp.get("/v1/accounts").json()["_links"]["scaRedirect"]["href"], nationalId=KARI)
        tpp.get("/v1/accounts")
        bank.clock.advance(hours=2)
    assert verdict(bank, "renews-the-consent-in-time")[0] == "pass"


@pytest.mark.bank(settings={"progression": "manual"})
def test_a_payment_is_rejected_late_also_if_it_was_accepted_before_the_report_began(bank: RunningBank) -> None:
    payment = bank.tpp().log_in().post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    bank.approve(payment)
    bank.call(lambda service: observer.conformance_of(service).forget())
    bank.advance_payment(payment, "RJCT")
    assert verdict(bank, "notices-a-late-rejection")[0] == "fail"


def test_the_setting_conformance_turns_the_judging_off(bank: RunningBank) -> None:
    bank.settings(conformance=False)
    bank.tpp().log_in().get("/v1/accounts")
    assert {row["verdict"] for row in bank.audit()["checks"]} == {"not-seen"}


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The run of a project with one test of a good client and one of a client that does not sign."""
    (folder / "test_shop.py").write_text(
        "def test_good(bank):\n    bank.tpp().log_in().get('/v1/accounts')\n\n"
        "def test_bad(bank):\n    bank.tpp().get('/v1/accounts', headers={'Signature': None})\n"
    )
    return pytest_in(folder, "--bank-audit", *arguments)


def test_a_run_whose_tests_pass_fails_for_a_must_and_prints_the_failures(tmp_path: Path) -> None:
    ended = suite(tmp_path, "audit.json")
    report = json.loads((tmp_path / "audit.json").read_text())
    assert [row["check"] for row in report["checks"] if row["verdict"] == "fail"] == ["signs-every-request"]
    assert ended.returncode == 1
    assert "2 passed" in ended.stdout
    assert "FAIL: signs-every-request (must, " in ended.stdout
    assert "    seen:    GET /v1/accounts answered 400" in ended.stdout


def test_a_run_of_a_good_client_is_judged_into_a_page_and_ends_with_0(tmp_path: Path) -> None:
    ended = suite(tmp_path, "audit.html", "-k", "good")
    assert ended.returncode == 0, ended.stdout
    assert "FAIL" not in ended.stdout
    assert "signs-every-request" in (tmp_path / "audit.html").read_text()


def test_a_report_that_cannot_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    ended = suite(tmp_path, "reports/audit.json")
    assert (ended.returncode, "--bank-audit: there is no directory reports" in ended.stderr) == (4, True)


def test_the_command_ends_with_1_for_a_must_that_failed_and_names_it(bank: RunningBank, tmp_path: Path) -> None:
    bank.tpp().get("/v1/accounts", headers={"Signature": None})
    ended = audit(bank, "--json", str(tmp_path / "report.json"))
    assert ended.returncode == 1
    assert "failed: signs-every-request" in ended.stderr
    assert "FAIL      signs-every-request" in ended.stdout
    report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"]["fail"] == 1
    written = audit(bank, "--write-baseline", str(tmp_path / "known.yaml"))
    assert (written.returncode, "FAIL      signs-every-request" in written.stdout) == (0, True)
    assert audit(bank, "--baseline", str(tmp_path / "known.yaml")).returncode == 0


def test_an_empty_log_is_no_failure_unless_every_occasion_is_demanded(bank: RunningBank) -> None:
    ended = audit(bank)
    assert ended.returncode == 0
    assert "A check that is not seen has not passed" in ended.stdout
    assert audit(bank, "--require-seen").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--only", "signs-every-requst"), "did you mean signs-every-request?"),
        (("--claims", "nonsense"), "--claims takes an http or https address"),
    ],
)
def test_wrong_words_are_one_line(bank: RunningBank, arguments: tuple[str, ...], problem: str) -> None:
    ended = audit(bank, *arguments)
    assert ended.returncode == 2
    assert problem in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_what_waits_is_bounded_and_judged_in_the_end(bank: RunningBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MOST_QUEUED", 3)
    monkeypatch.setattr(BankApplication, "_use_idle_time", lambda _: None)
    tpp = bank.tpp().log_in()
    for _ in range(10):
        tpp.get("/v1/accounts")
    assert bank.call(lambda service: service.observer.judge_some(0)) <= 3
    (row,) = [row for row in bank.audit()["checks"] if row["check"] == "signs-every-request"]
    assert row["passed"] == 10


@pytest.mark.parametrize("messages", [[{"code": ["x"]}], 5, {"code": "x"}, [{"code": {}}, None, "x"]])
def test_an_answer_of_any_form_that_a_rule_gives_is_judged(bank: RunningBank, messages: Any) -> None:
    answer = {"status": 400, "json": {"tppMessages": messages}}
    bank.apply(
        {"scenario": "odd", "start": {"from": "current"}, "rules": [{"name": "odd", "then": {"answer": answer}}]}
    )
    bank.tpp().get("/v1/accounts")
    (row,) = [row for row in bank.audit()["checks"] if row["check"] == "signs-every-request"]
    assert row["passed"] == 1


def test_the_links_of_long_pages_are_known_and_their_rest_is_not_held(bank: RunningBank) -> None:
    plan = DataPlan(customers=1, accountsPerCustomer=1, transactionsPerAccount=60, days=30, seed=1)
    person = bank.call(lambda service: run_to_end(generate_in_pieces(service.bank, plan)))["customers"][0]
    tpp = bank.tpp().log_in(person["nationalId"])
    account = tpp.get("/v1/accounts").json()["accounts"][0]["resourceId"]
    address, pages = f"/v1/accounts/{account}/transactions?limit=25", 0
    while address:
        answer = tpp.get(address)
        pages += 1
        address = answer.json()["transactions"]["_links"].get("next", {}).get("href")
    assert len(answer.body) > 2 * END_OF_PAGE
    checks = {row["check"]: row for row in bank.audit()["checks"]}
    assert checks["follows-the-links-of-pages"]["passed"] == pages - 1
    assert checks["ends-at-the-last-page"]["verdict"] == "pass"


def test_the_most_recent_links_are_known_and_those_of_long_ago_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MOST_KNOWN", 10)
    known = facts.Links()
    for number in range(100):
        known.add(
            b'{"paymentId":"%d","_links":{"self":{"href":"https://bank.example/x/v1/payments/%d"}}}' % (number, number)
        )
        recent = range(max(0, number - 4), number + 1)
        assert all(str(one) in known.ids and f"/v1/payments/{one}" in known.addresses for one in recent)
        assert sum(str(one) in known.ids for one in range(100)) <= 10


def test_a_client_that_sends_its_headers_in_another_order_each_time_and_new_ones_is_judged_alike_and_as_fast(
    bank: RunningBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    tpp = bank.tpp().log_in()
    for _ in range(10):
        tpp.get("/v1/accounts")
    tpp.get("/v1/accounts", headers={"X-Request-ID": "twice"})
    tpp.get("/v1/accounts?withBalance=true", headers={"X-Request-ID": "twice"})
    seen = list(bank.call(lambda service: service.log.newest()))[::-1]
    rows: Counter[Auditor] = Counter()
    row_of = Auditor._row
    monkeypatch.setattr(Auditor, "_row", lambda self, observed: rows.update([self]) or row_of(self, observed))
    as_sent, rotated = Auditor(ready()), Auditor(ready())
    for turn, exchange in enumerate(seen):
        sent = list(exchange.request.headers)
        turned = (*sent[turn % len(sent) :], (f"X-Trace-{turn}", "1"), *sent[: turn % len(sent)])
        as_sent.request(exchange, 0.0)
        rotated.request(replace(exchange, request=replace(exchange.request, headers=turned)), 0.0)
    assert rows[as_sent] == rows[rotated] > 0
    counts, same = (
        {name: (record.passed, record.failed) for name, record in auditor.verdicts(0.0, 0.0).items()}
        for auditor in (as_sent, rotated)
    )
    assert counts == same
    assert any(failed for _, failed in counts.values())
