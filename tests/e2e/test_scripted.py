"""Scripted faults and many banks over a real port."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.client import Identity, TppClient
from emulator.scenario.transport import Running
from tests.e2e import process
from tests.e2e.process import Served, served
from tests.known_state import DOMESTIC, KARI, PAYMENT
from tests.warm import Command

TOKEN = "s3cret"
control = partial(process.control, token=TOKEN)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("state"), "--ephemeral", "--control-token", TOKEN) as running:
        yield running


def kari_at(bank: Served, url: str) -> TppClient:
    client = TppClient(url, Identity.from_folder(bank.state / "tpps" / "demo"))
    client.use_session(control(url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI}))
    return client


def test_many_banks_in_use_at_once_do_not_mix(bank: Served) -> None:
    def use(number: int) -> tuple[list[str], str, list[str], bool]:
        url = control(bank.url, "PUT", f"banks/many-{number}", {"seed": number})["baseUrl"]
        kari = kari_at(bank, url)
        control(url, "PUT", "clock", {"mode": "frozen"})
        control(url, "POST", "clock/advance", {"by": f"{number + 1}d"})
        rule = {"name": f"fee {number}", "then": {"fee": f"{number + 1}.00"}, "when": {"operation": "createPayment"}}
        control(url, "POST", "rules", rule)
        fees = []
        for _ in range(3):
            created = kari.post(DOMESTIC, json={**PAYMENT, "creditorName": f"Creditor {number}"}).json()
            fees.append(created["transactionFees"]["amount"])
            control(url, "POST", f"sca/{created['paymentId']}/approve")
        control(url, "POST", "clock/advance", {"by": "10s"})
        names = {payment["creditorName"] for payment in control(url, "GET", "payments")["payments"]}
        operations = [entry["operation"] for entry in control(url, "GET", "requests")["requests"]]
        return fees, str(names), operations, control(url, "GET", "ledger")["balanced"]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(use, range(4)))
    for number, (fees, names, operations, balanced) in enumerate(results):
        assert fees == [f"{number + 1}.00"] * 3
        assert names == str({f"Creditor {number}"})
        assert operations == ["createPayment"] * 3
        assert balanced
    assert len(control(bank.url, "GET", "banks?limit=1000")["banks"]) >= 5
    assert control(bank.url, "GET", "payments") == {"payments": []}


def test_an_answer_without_an_end_is_seen_to_begin(bank: Served) -> None:
    answer = Running(bank.url, token=TOKEN, timeout=10).control("GET", "/events")
    assert (answer.status, answer.lost, answer.body) == (200, False, b"")


def test_stories_play_over_the_wire(
    bank: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = control(bank.url, "PUT", "banks/stage")["baseUrl"]
    monkeypatch.setenv("BANK_EMULATOR_CONTROL_TOKEN", TOKEN)
    names = ["lost-answer", "lost-request", "malformed-answers", "bank-down", "first-contact", "two-signatures"]
    assert main.run(["scenario", "play", *names, "--url", url, "--junit", str(tmp_path / "j.xml")]) == 0
    assert capsys.readouterr().out.count(" passed ") > 20
    monkeypatch.delenv("BANK_EMULATOR_CONTROL_TOKEN")
    assert main.run(["clock", "show", "--url", url]) == 2
    assert capsys.readouterr().err.endswith("(BANK_EMULATOR_CONTROL_TOKEN is not set)\n")
    monkeypatch.setenv("BANK_EMULATOR_CONTROL_TOKEN", f"{TOKEN}-of-another")
    assert main.run(["clock", "show", "--url", url]) == 2
    assert capsys.readouterr().err.endswith("(BANK_EMULATOR_CONTROL_TOKEN is a different token)\n")


def test_requests_are_followed_as_they_come(bank: Served) -> None:
    url = control(bank.url, "PUT", "banks/followed")["baseUrl"]
    kari = kari_at(bank, url)
    line = ("requests", "tail", "--url", url, "--output", "json")
    environment = {**os.environ, "BANK_EMULATOR_CONTROL_TOKEN": TOKEN}
    kari.get("/v1/accounts")
    with Command(*line, stdout=subprocess.PIPE, env=environment) as tail:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["operation"] == "getAccounts"
        # What came before the stream was open is not repeated: ask until it is.
        stop = threading.Event()

        def keep_asking() -> None:
            while not stop.wait(0.05):
                kari.get("/v1/agreements")

        thread = threading.Thread(target=keep_asking)
        thread.start()
        try:
            assert json.loads(tail.stdout.readline())["operation"] == "getAgreements"
        finally:
            stop.set()
            thread.join()
            tail.kill()
