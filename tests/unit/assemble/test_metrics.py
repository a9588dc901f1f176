"""What /metrics shows, read by Prometheus' own parser, and the dashboard that is made of the same table."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from emulator.api.messages import Request, Response, Unfinished
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.bank import sandbox
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.control.operation import BankSpec
from emulator.metrics.page import METRICS, PROCESS
from emulator.settings import ServeSettings
from emulator.store import StoreUnwritable
from tests.api.desk import DeskClient
from tests.known_state import KARI, PAYMENT, STRAKS

ORDER = {**PAYMENT, "creditorAddress": {"country": "NO"}}

Samples = dict[tuple[str, ...], float]
"""Values by the name of the sample and the values of its labels, sorted by the name of the label."""


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    authority = CertificateAuthority(None, clock=real_now)
    authority.demo()
    return authority


class Process:
    """A process without sockets: each request is a turn of its own."""

    def __init__(self, authority: CertificateAuthority, **settings: Any) -> None:
        self.registry = registry_for(ServeSettings(ephemeral=True, seed=1, **settings), authority)
        self.application = application_of(self.registry, BankApplication)

    def send(self, *requests: Request) -> list[Response]:
        turn, answers = self.application.turn(), []
        for request in requests:
            answer = turn.handle(request)
            while isinstance(answer, Unfinished):
                turn.end()
                request.unfinished = answer
                answer = turn.handle(request)
            assert isinstance(answer, Response)
            answers.append(answer)
        turn.end()
        return answers

    def get(self, target: str, *headers: tuple[str, str]) -> Response:
        return self.send(Request("GET", target, headers))[0]

    def scrape(self) -> Samples:
        answer = self.get("/metrics")
        assert answer.status == 200, answer.body
        families = text_string_to_metric_families(answer.body.decode())
        samples = [sample for family in families for sample in family.samples]
        shown = {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples
        }
        assert len(shown) == len(samples)
        return shown


@pytest.fixture
def process(authority: CertificateAuthority) -> Process:
    return Process(authority)


def requests(samples: Samples, bank: str = "default") -> dict[tuple[str, ...], float]:
    return {key[2:]: value for key, value in samples.items() if key[:2] == ("bank_emulator_requests_total", bank)}


def test_requests_are_counted_once_by_operation_and_status_from_before_the_first_scrape_on(
    process: Process, authority: CertificateAuthority
) -> None:
    tpp = DeskClient(process.registry.default, authority).log_in(KARI)
    tpp.post(STRAKS, json=ORDER)
    process.get("/v1/accounts")
    before = process.scrape()
    assert requests(before) == {("createPayment", "201"): 1.0, ("getAccounts", "400"): 1.0}
    assert before["bank_emulator_refusals_total", "HTTP_HEADER_REQUIRED"] == 1
    process.send(*(Request("GET", target) for target in ("/v1/accounts", "/v1/nothing", "/v1/accounts")))
    after = process.scrape()
    assert requests(after) == {
        ("createPayment", "201"): 1.0,
        ("getAccounts", "400"): 3.0,
        ("unknown", "404"): 1.0,
    }
    assert after["bank_emulator_request_duration_seconds_count", "getAccounts"] == 3
    assert after["bank_emulator_request_duration_seconds_sum", "getAccounts"] > 0
    assert after["bank_emulator_other_requests_total", "metrics", "200"] == 1  # this one is not answered yet
    assert after["bank_emulator_turn_requests_bucket", "2.0"] < after["bank_emulator_turn_requests_bucket", "4.0"]
    for name in ("banks", "event_streams", "notifications_waiting", "compactions_total", "journal_bytes"):
        assert after[f"bank_emulator_{name}",] == (1 if name == "banks" else 0)
    assert after["process_resident_memory_bytes",] > 1_000_000


def test_a_request_in_the_turn_of_the_first_scrape_counts_once(authority: CertificateAuthority) -> None:
    """The lines of the log have the same requests at the end of the turn."""
    process = Process(authority, log_format="json")
    process.send(Request("GET", "/v1/accounts"), Request("GET", "/metrics"))
    assert requests(process.scrape()) == {("getAccounts", "400"): 1.0}


@pytest.mark.parametrize(
    ("operation", "method", "path", "body"),
    [
        ("createPayment", "POST", STRAKS, {"json": ORDER}),
        ("deleteSandboxCustomer", "DELETE", "/v1/sandbox/customers/{customer}", {}),  # in several steps
    ],
)
def test_what_cannot_be_stored_counts_as_what_the_client_is_told(
    process: Process,
    authority: CertificateAuthority,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    method: str,
    path: str,
    body: dict[str, Any],
) -> None:
    tpp = DeskClient(process.registry.default, authority).log_in(KARI)
    monkeypatch.setattr(sandbox, "PIECE", 1)
    customers = {one["customerNumber"]: one["customerId"] for one in tpp.get("/v1/sandbox/customers").json()}
    path = path.format(customer=customers[KARI])
    process.registry.default.log.clear()
    process.scrape()
    prepared = tpp.prepare(method, path, **body)
    asked = Request(method, path, tuple(prepared.headers.items()), prepared.body)

    def full() -> None:
        raise StoreUnwritable("the disk is full")

    documents = process.registry.documents()
    assert documents is not None
    with monkeypatch.context() as disk:
        disk.setattr(documents, "flush", full)
        assert process.send(asked)[0].status == 503
    assert requests(process.scrape()) == {(operation, "503"): 1.0}
    assert process.scrape()["bank_emulator_refusals_total", "SYSTEM_ERROR"] == 1


def test_of_a_hundred_banks_fifty_have_a_name_and_nothing_falls(process: Process) -> None:
    registry = process.registry
    process.scrape()
    names = [f"bank-{number}" for number in range(100)]
    for name in (*names, "other"):
        registry.make(name, BankSpec(fixture="empty"))

    def ask(name: str, times: int = 1) -> None:
        process.send(*(Request("GET", f"/banks/{name}/v1/accounts") for _ in range(times)))

    def shown() -> dict[str, float]:
        samples = process.scrape()
        total = {key[1]: value for key, value in samples.items() if key[0] == "bank_emulator_requests_total"}
        assert len(total) == 51
        return total

    ask("other", 9)  # a bank of this name is one of the others
    for name in names:
        ask(name)
    before = shown()
    assert before["other"] == 50 + 9
    assert sum(before.values()) == 109
    late = next(name for name in names if name not in before)
    ask(late, 3)
    after = shown()
    assert after[late] == 4  # all of its own, of which the others keep what they had
    assert after["other"] == before["other"] + 3
    registry.close_bank(late)
    last = shown()
    assert (late in last, last["other"]) == (False, after["other"])


def test_one_of_several_workers_says_which_it_is(authority: CertificateAuthority) -> None:
    shown = Process(authority, workers=2).scrape()
    own = [key for key in shown if key[0].startswith("bank_emulator_")]
    assert len(own) > 20
    assert all(str(os.getpid()) in key for key in own)


@pytest.mark.parametrize(
    ("settings", "opens"),
    [
        ({}, ["", "anything"]),
        ({"control_token": "c"}, ["c"]),
        ({"metrics_token": "m"}, ["m"]),
        ({"control_token": "c", "metrics_token": "m"}, ["c", "m"]),
    ],
)
def test_a_token_is_required_where_there_is_one(
    authority: CertificateAuthority, settings: dict[str, str], opens: list[str]
) -> None:
    process = Process(authority, **settings)
    for token in ("", "c", "m", "anything"):
        for target in ("/metrics", "/metrics/dashboard.json"):
            answer = process.get(target, *([("Authorization", f"Bearer {token}")] if token else []))
            assert (answer.status == 200) == (token in opens or not settings)
            assert answer.status == 200 or b"--metrics-token" in answer.body
    control = process.get("/_emulator/clock", ("Authorization", "Bearer m"))
    assert control.status == (401 if "control_token" in settings else 200)


def test_what_is_asked_for_wrongly_is_told_in_a_line(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.registry.make("a", BankSpec(fixture="empty"))
    for target in ("/banks/a/metrics", "/metrics/more"):
        answer = process.get(target)
        assert (answer.status, b"/metrics, for all banks" in answer.body) == (404, True)
    posted = process.send(Request("POST", "/metrics"))[0]
    assert (posted.status, dict(posted.headers)["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert process.get("/metrics", ("Host", "elsewhere.example")).status == 403
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    missing = process.get("/metrics")
    (message,) = json.loads(missing.body)["tppMessages"]
    assert (missing.status, message["text"]) == (501, "Metrics require an extra: pip install 'bank-emulator[metrics]'.")


def test_the_dashboard_shows_every_metric_and_no_other(process: Process) -> None:
    panels = json.loads(process.get("/metrics/dashboard.json").body)["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    text = process.get("/metrics").body.decode()
    served = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    expected = {metric.full_name for metric in METRICS} | set(PROCESS)
    assert {name.removesuffix("_bucket") for name in re.findall(r"(?:bank_emulator|process)_\w+", asked)} == expected
    assert expected <= served
    assert len({panel["title"] for panel in panels}) == len(panels)
