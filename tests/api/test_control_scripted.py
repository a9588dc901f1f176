"""Rules and scenarios over the control interface: kept, counted, listed, refused with every mistake named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.api.messages import Request
from emulator.assemble.composition import in_process, registry_for
from emulator.assemble.registry import BankRegistry
from emulator.assemble.storage import FolderStorage
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.scenario import loader
from emulator.scenario.rules import RuleSet
from emulator.settings import ServeSettings
from emulator.store import StoreUnwritable, WriteGroup
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, approve, ok
from tests.known_state import DOMESTIC, KARI, PAYMENT, PERIODIC, SEPA
from tests.unit.payments.world import domestic, sepa

DOWN = {"then": {"answer": {"status": 503, "text": "Closed."}}}


def test_a_rule_is_given_back_as_it_came(desk: ControlDesk) -> None:
    first = {"name": "slow", "when": {"operation": "getAccounts"}, "times": {"every": 2}, "then": {"delay": "1s"}}
    second = {"then": {"malformed": "empty"}}
    assert desk.ask("POST", "/rules", first).status == 201
    assert desk.do("POST", "/rules", {"rules": [second, first]})["rules"] == [first, second, first]
    shown = desk.get("/rules")
    assert shown["rules"] == [first, second, first]
    assert shown["counts"][1] == {"name": "rule 2", "scenario": None, "matched": 0, "acted": 0}
    assert desk.do("POST", "/rules", shown["rules"])["rules"] == [*shown["rules"], *shown["rules"]]
    assert desk.ask("DELETE", "/rules/slow").status == 204
    assert desk.get("/rules")["rules"] == [second, second]
    assert desk.ask("DELETE", "/rules/slow").status == 404
    desk.do("DELETE", "/rules")
    assert desk.get("/rules") == {"rules": [], "counts": []}


def test_a_rule_without_a_name_is_called_by_its_place_after_a_restart_too(desk: ControlDesk) -> None:
    def called() -> list[str]:
        return [count["name"] for count in desk.get("/rules")["counts"]]

    desk.do("POST", "/rules", [{"then": {"delay": "1s"}}, {"name": "mine", **DOWN}])
    desk.do("POST", "/scenario", {"scenario": "theirs", "rules": [{"then": {"fee": "1.00"}}]})
    assert called() == ["rule 1", "mine", "rule 3"]
    assert [count["name"] for count in RuleSet(desk.service.bank).counts()] == called()
    desk.do("DELETE", "/rules/rule%201")
    desk.do("POST", "/rules", {"then": {"delay": "2s"}})
    assert called() == ["mine", "rule 2", "rule 3"]


def test_a_rule_without_a_name_is_never_called_as_another_one_is_named(desk: ControlDesk) -> None:
    desk.do("POST", "/rules", [{"name": "rule 2", **DOWN}, {"then": {"delay": "1s"}}])
    called = ["rule 2", "rule 2 without a name"]
    assert [count["name"] for count in desk.get("/rules")["counts"]] == called
    desk.do("DELETE", "/rules/rule%202%20without%20a%20name")
    assert [count["name"] for count in desk.get("/rules")["counts"]] == called[:1]


def test_rules_with_a_mistake_are_refused_altogether(desk: ControlDesk) -> None:
    for body, message in (
        ({"then": {"delay": "-1s"}}, "then.delay"),
        ({"when": {"operation": "getAcounts"}, "then": {"delay": "1s"}}, "when.operation"),
        ({"rules": [DOWN, {"then": {"delay": 1}}]}, "rules[1].then.delay"),
        ({"times": {"chance": 2}, "then": {"delay": "1s"}}, "times.chance"),
        ([DOWN, {"then": {"delay": "-1s"}}], "[1].then.delay"),
        ([DOWN, {}], "[1].then"),
        ([], None),
        ({}, "then"),
        ({"rules": 5}, "rules"),
        ({"rules": [DOWN], "foo": 1}, "foo"),
        ({"rules": []}, "rules"),
    ):
        answer = desk.ask("POST", "/rules", body)
        assert (answer.status, answer.errors()[0]) == (400, ("FORMAT_ERROR", message)), body
        assert desk.get("/rules")["rules"] == [], body


def test_rules_outlive_a_restart_and_count_anew(desk: ControlDesk, kari: DeskClient) -> None:
    desk.do("POST", "/rules", {"name": "down", "times": {"first": 1}, **DOWN})
    assert kari.get("/v1/accounts").status == 503
    assert kari.get("/v1/accounts").status == 200
    assert desk.get("/rules")["counts"] == [{"name": "down", "scenario": None, "matched": 2, "acted": 1}]
    again = RuleSet(desk.service.bank)
    assert again.sources() == desk.get("/rules")["rules"]
    assert again.counts()[0]["matched"] == 0


def test_requests_are_listed_filtered_shown_and_counted(desk: ControlDesk, kari: DeskClient) -> None:
    created = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    kari.get(f"{DOMESTIC}/{created}/status")
    kari.get("/v1/accounts", tamper="no-signature")
    requests = desk.get("/requests")["requests"]
    assert [entry["operation"] for entry in requests] == ["getAccounts", "getPaymentStatus", "createPayment"]
    assert len(desk.get(f"/requests?paymentId={created}")["requests"]) == 2
    assert len(desk.get("/requests?operation=createPayment&status=201&tpp=demo&limit=1")["requests"]) == 1
    assert desk.get("/requests?operation=createPayment&status=400")["requests"] == []
    refused = desk.ask("GET", "/requests?operation=createPaymnt")
    assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", "operation")])
    assert refused.texts() == "There is no operation 'createPaymnt'; did you mean createPayment?"
    detail = desk.get(f"/requests/{requests[0]['id']}")
    assert detail["signature"]["valid"] is False
    assert detail["response"]["status"] == 400
    count = "/requests/count"
    assert desk.do("POST", count, {"match": {}}) == {"count": 3}
    assert desk.do("POST", count, {"match": {"operation": "createPayment", "status": 201}}) == {"count": 1}
    assert desk.do("POST", count, {"match": {"status": {"gt": 399}}}) == {"count": 1}
    refused = desk.ask("POST", count, {"match": {"status": "twohundred"}})
    assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", "match.status")])
    assert desk.do("POST", count, {"match": {"body": {"creditorName": "Even*"}, "tpp": "demo"}}) == {"count": 1}
    assert desk.do("POST", count, {"match": {"psu": KARI, "headers": {"psu-context": "PRIVATE"}}}) == {"count": 3}
    assert desk.do("POST", count, {"match": {"headers": {"Signature": {"absent": True}}}}) == {"count": 1}
    assert desk.ask("POST", count, {}).status == 400
    assert desk.ask("POST", count, {"match": {"operaton": "x"}}).errors() == [("FORMAT_ERROR", "match.operaton")]
    assert desk.ask("GET", "/requests?limit=0").errors() == [("FORMAT_ERROR", "limit")]
    assert desk.ask("GET", "/requests/99").status == 404
    desk.do("DELETE", "/requests")
    assert desk.get("/requests") == {"requests": []}


def test_a_request_whose_body_was_cut_is_not_repeated_and_not_counted_in_silence(
    desk: ControlDesk, tpp: DeskClient
) -> None:
    large = {**PAYMENT, "ultimateDebtor": "x" * 100_000}
    for _ in range(2):
        tpp.post(DOMESTIC, json=large)
    tpp.post(DOMESTIC, json=PAYMENT)
    exchange = list(desk.service.log.newest())[-1]
    exchange.cut()  # as the oldest of very many
    refused = desk.ask("POST", f"/requests/{exchange.id}/repeat")
    assert (refused.status, refused.errors()) == (409, [("CONFLICT", None)])
    assert refused.texts().startswith(f"The log has only 65536 of the {exchange.sizes[0]} bytes")
    for match, count in (
        ({"body": {"creditorName": PAYMENT["creditorName"]}}, {"count": 2, "cut": 1}),
        ({"body": {"creditorName": "Nobody"}, "operation": "createPayment"}, {"count": 0, "cut": 1}),
        ({"body": {"creditorName": "Nobody"}, "operation": "getAccounts"}, {"count": 0}),
        ({"operation": "createPayment"}, {"count": 3}),
    ):
        assert desk.do("POST", "/requests/count", {"match": match}) == count


def test_a_scenario_of_another_body_is_checked_as_one_that_is_applied(desk: ControlDesk) -> None:
    """And all that is wrong with it is named in the same way."""
    for method, path in (("POST", "/reset"), ("PUT", "/banks/a"), ("PUT", "/banks/default")):
        for scenario, at_fault in (
            ("first-contact", "play"),
            ({"scenario": "x", "play": "only"}, "play"),
            (
                {"scenario": "x", "start": {"change": [{"account": "NO00", "balance": "1.00"}]}},
                "start.change[0].account",
            ),
            ({"scenario": "x", "rules": [{"then": {}}]}, "rules[0].then"),
        ):
            before = desk.get("/state")
            refused = desk.ask(method, path, {"scenario": scenario})
            assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", f"scenario.{at_fault}")]), scenario
            assert desk.get("/state") == before


@pytest.mark.parametrize("forgetting", ["initialize", "snapshot"])
def test_a_count_knows_the_customer_of_a_request_that_the_bank_has_forgotten(
    desk: ControlDesk, tpp: DeskClient, forgetting: str
) -> None:
    desk.do("PUT", "/snapshots/before")
    tpp.log_in(KARI)
    tpp.get("/v1/accounts")
    tpp.post(DOMESTIC, json=PAYMENT)
    match = {"match": {"psu": KARI}}
    assert desk.do("POST", "/requests/count", match) == {"count": 2}
    if forgetting == "initialize":
        tpp.post("/v1/sandbox/initialize", headers={"PSU-ID": None})
    else:
        desk.do("POST", "/snapshots/before/restore")
    assert desk.do("POST", "/requests/count", match) == {"count": 2}


CONTEXTS = {
    "a session": ("GET", "/v1/accounts", {}, "PRIVATE"),
    "a header": ("GET", "/v1/accounts", {"PSU-Context": "PRIVATE"}, "PRIVATE"),
    "a firm's session": ("GET", "/v1/accounts", {}, "CORPORATE"),
    "a firm's agreements": ("GET", "/v1/agreements", {}, "CORPORATE"),
    "a payment": ("POST", DOMESTIC, {}, "PRIVATE"),
    "an identity number": ("POST", DOMESTIC, {"PSU-ID": None, "X-PSU-IDENTITY": KARI}, "PRIVATE"),
    "nobody's data": ("GET", "/v1/sandbox/customers", {"PSU-ID": None, "TPP-Session-ID": None}, None),
}


def test_a_rule_and_a_count_find_the_same_context(desk: ControlDesk, tpp: DeskClient) -> None:
    for answered in (True, False):
        for request_of in CONTEXTS:
            method, path, headers, context = CONTEXTS[request_of]
            desk.do("DELETE", "/rules")
            desk.do("DELETE", "/requests")
            if context == "CORPORATE":
                tpp.log_in("21909220006", context="CORPORATE")
            else:
                tpp.log_in(KARI)
            tpp.psu_context = None
            headers = {"PSU-Context": None, **headers}
            then = {"answer": {"status": 418}} if answered else {"delay": "1s"}
            for name in ("PRIVATE", "CORPORATE"):
                desk.do("POST", "/rules", {"name": name, "when": {"context": name}, "then": then})
            tpp.request(method, path, headers=headers, **({"json": PAYMENT} if method == "POST" else {}))
            matched = {rule["name"]: rule["matched"] for rule in desk.get("/rules")["counts"]}
            counted = {
                name: desk.do("POST", "/requests/count", {"match": {"context": name}})["count"]
                for name in ("PRIVATE", "CORPORATE")
            }
            assert matched == counted == {name: int(name == context) for name in matched}, (request_of, answered)


def test_a_list_and_a_count_of_requests_go_by_one_rule(desk: ControlDesk, kari: DeskClient) -> None:
    created = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    kari.get(f"{DOMESTIC}/{created}/status")
    kari.get("/v1/accounts", tamper="no-signature")
    kari.get("/v1/accounts", tamper="bit-flipped")
    desk.do("POST", "/rules", {"unsigned": True, "when": {"tpp": "demo"}, **DOWN})
    assert kari.get("/v1/accounts").status == 503, "before the signature a rule goes by what the certificate says"

    def both(parameter: str, member: str, value: str) -> tuple[int, int]:
        listed = desk.get(f"/requests?{parameter}={value}")["requests"]
        return len(listed), desk.do("POST", "/requests/count", {"match": {member: value}})["count"]

    assert both("tpp", "tpp", "demo") == (3, 3), "what nobody has signed is nobody's"
    assert both("tpp", "tpp", "PSDNO-SBX-demo") == (3, 3)
    assert both("tpp", "tpp", "dem") == (0, 0)
    assert both("paymentId", "payment", created) == (2, 2)
    desk.do("DELETE", "/rules")
    desk.do("POST", "/rules", {"then": {"disconnect": "before"}})
    kari.get("/v1/accounts")
    listed = desk.get("/requests?status=0")["requests"]
    counted = desk.do("POST", "/requests/count", {"match": {"status": 0}})["count"]
    assert (len(listed), counted) == (1, 1), "what was not answered has the status that the list shows"


def test_a_scenario_is_applied_by_name_as_json_and_as_yaml(desk: ControlDesk) -> None:
    source = dict(loader.named("lost-answer").source)
    clock = {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    done = {"scenario": "lost-answer", "reset": False, "clock": clock, "rules": 1, "settings": {}}
    assert desk.do("POST", "/scenario", {"name": "lost-answer"}) == done
    assert desk.get("/scenario") == source
    assert desk.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert desk.do("POST", "/scenario", source) == done
    text = loader.library()["lost-answer"].read_bytes()
    for content_type in ("application/yaml", "application/yaml; charset=utf-8", "application/x-yaml"):
        response = desk.raw("POST", "/scenario", ("Content-Type", content_type), body=text)
        assert (response.status, json.loads(response.body)) == (200, done)
    latin = ("Content-Type", "application/yaml; charset=iso-8859-1")
    assert (
        desk.raw("POST", "/scenario/preview", latin, body="scenario: a\nsummary: Blåbær".encode("latin-1")).status
        == 200
    )
    for kind in ("application/yaml", "application/json"):
        for more in (("Content-Encoding", "gzip"), ("Content-Type", f"{kind}; charset=utf-16")):
            headers = [("Content-Type", kind), more] if more[0] == "Content-Encoding" else [more]
            assert desk.raw("POST", "/scenario", *headers, body=b"name: lost-answer").status == 415
    by_name = desk.raw("POST", "/scenario", ("Content-Type", "application/yaml"), body=b"name: lost-answer")
    assert (by_name.status, json.loads(by_name.body)) == (200, done)
    (rule,) = desk.get("/rules")["rules"]
    assert rule == {**source["rules"][0], "when": {"operation": "createPayment", "body": {"creditorName": "*"}}}
    desk.do("DELETE", "/scenario")
    assert desk.ask("GET", "/scenario").status == 404
    assert desk.get("/rules")["rules"] == []
    assert desk.ask("DELETE", "/scenario").status == 204


def test_a_scenario_on_the_current_state_adds_to_it(desk: ControlDesk, kari: DeskClient) -> None:
    kari.post(DOMESTIC, json=PAYMENT)
    desk.do("POST", "/rules", {"name": "mine", "then": {"delay": "1s"}})
    scenario = {
        "scenario": "more",
        "start": {
            "from": "current",
            "settings": {"calendar": "norway"},
            "change": [{"account": "9990 10 00014", "balance": "5.00", "creditLine": "1.00"}],
            "add": {
                "customers": [{"customerNumber": "41829310021", "name": "Nina Ny", "type": "private"}],
                "accounts": [{"customerNumber": "41829310021", "accountName": "Ny", "bban": "99901200021"}],
            },
        },
        "rules": [{"name": "theirs", "then": {"delay": "2s"}}],
    }
    desk.do("POST", "/scenario", scenario)
    desk.do("POST", "/scenario", {"scenario": "other", "rules": scenario["rules"]})
    scenario["start"] = {}
    desk.do("POST", "/scenario", scenario)
    assert len(desk.get("/payments")["payments"]) == 1
    assert [count["name"] for count in desk.get("/rules")["counts"]] == ["mine", "theirs", "theirs"]
    desk.do("DELETE", "/scenario")
    assert desk.ask("GET", "/scenario").status == 404
    assert [count["name"] for count in desk.get("/rules")["counts"]] == ["mine"], "and none is at work any more"
    assert desk.get("/settings")["calendar"] == "norway"
    ledger = desk.get("/ledger")
    assert ledger["balanced"] is True
    assert [a["balance"] for a in ledger["accounts"] if a["iban"] == "NO8599901000014"] == ["5.00"]
    assert "41829310021" in {person["nationalId"] for person in desk.get("/people")["people"]}


def test_a_scenario_that_does_not_fit_the_bank_changes_nothing(desk: ControlDesk) -> None:
    for start, path in (
        ({"clock": "2020-01-01T00:00:00Z"}, "start.clock"),
        ({"change": [{"account": "99901000014", "balance": "1.234"}]}, "start.change[0].balance"),
        ({"change": [{"account": "99901000014", "creditLine": "1.234"}]}, "start.change[0].creditLine"),
        ({"change": [{"agreement": "Nobody", "signatures": 2}]}, "start.change[0].agreement"),
        ({"change": [{"agreement": "310001007", "signatures": 2}]}, "start.change[0].signatures"),
        ({"change": [{"agreement": "*", "signatures": 2, "persons": [KARI, KARI]}]}, "start.change[0].signatures"),
        ({"change": [{"agreement": "310001007", "persons": ["1"]}]}, "start.change[0].persons[0]"),
        ({"add": {"accounts": [{"customerNumber": "12345678", "accountName": "x", "bban": "1"}]}}, None),
        ({"from": "snapshot:none"}, "start.from"),
    ):
        before = desk.service.bank.documents.dump()
        settings = {"settings": {"calendar": "norway"}} if "from" not in start else {}
        wrong = {"scenario": "x", "start": {**settings, **start}, "rules": [DOWN]}
        answer = desk.ask("POST", "/scenario", wrong)
        assert answer.status == 400, start
        if path is not None:
            assert answer.errors() == [("FORMAT_ERROR", path)], start
        assert desk.service.bank.documents.dump() == before, start
        assert desk.get("/settings")["calendar"] == "always-open", start
        assert desk.get("/rules")["rules"] == [], start


def test_what_falls_due_before_the_clock_of_a_start_happens_before_its_changes(
    desk: ControlDesk, kari: DeskClient
) -> None:
    order = domestic(frequency="Daily", startDate="2026-03-03", endDate="2026-03-04")
    payment_id = ok(kari.post(PERIODIC, json=order), 201)["paymentId"]
    approve(kari.service, payment_id)
    emptied = {"account": "99901000014", "balance": "0.00"}
    start = {"clock": "2026-03-04T12:00:00+01:00", "settings": {"calendar": "norway"}, "change": [emptied]}
    desk.do("POST", "/scenario", {"scenario": "x", "start": start})
    executions = ok(kari.get(f"{PERIODIC}/{payment_id}"))["executions"]
    assert [(one["executionDate"], one["transactionStatus"]) for one in executions] == [
        ("2026-03-04", "ACSC"),
        ("2026-03-03", "ACSC"),
    ]


@pytest.mark.inside
def test_a_scenario_that_breaks_off_leaves_memory_as_the_documents_are(
    desk: ControlDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.do("POST", "/rules", {"name": "stays", **DOWN})

    def full(*_: Any, **__: Any) -> None:
        raise StoreUnwritable("no space left")

    monkeypatch.setattr(RuleSet, "add", full)
    answer = desk.ask("POST", "/scenario", {"name": "late-booking"})
    assert (answer.status, answer.errors()) == (503, [("SYSTEM_ERROR", None)])
    assert desk.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert desk.get("/settings")["calendar"] == "always-open"
    assert [rule["name"] for rule in desk.get("/rules")["rules"]] == ["stays"]


MISFIT = {"scenario": "misfit", "start": {"change": [{"account": "NO00", "balance": "1.00"}]}}


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/scenario", MISFIT),
        ("POST", "/reset", {"scenario": MISFIT}),
        ("PUT", "/banks/default", {"scenario": MISFIT}),
        ("POST", "/snapshots/none/restore", None),
    ],
)
def test_after_a_refusal_rules_count_on_and_throw_their_dice_on(
    desk: ControlDesk, method: str, path: str, body: Any, kari: DeskClient
) -> None:
    chance = {"name": "chance", "times": {"chance": 0.5}, "then": {"answer": {"status": 418}}}
    rules = [{"name": "once", "times": {"first": 1}, **DOWN}, chance]

    def answers() -> list[int]:
        return [kari.get("/v1/accounts").status for _ in range(12)]

    desk.do("POST", "/rules", rules)
    untouched = [answers(), answers()]
    desk.do("DELETE", "/rules")
    desk.do("POST", "/rules", rules)
    before = answers()
    counts = desk.get("/rules")["counts"]
    assert desk.ask(method, path, body).status in (400, 404)
    assert desk.get("/rules")["counts"] == counts
    assert [before, answers()] == untouched
    assert untouched[0] != untouched[1]


@pytest.mark.parametrize("start", ["current", "known-state"])
def test_a_refusal_between_two_creations_of_one_turn_lets_no_id_be_drawn_twice(
    desk: ControlDesk, kari: DeskClient, start: str
) -> None:
    documents = desk.service.bank.documents
    documents.join(WriteGroup())
    documents.group.open = True  # as it is served: what changes waits for the end of the turn
    first = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    misfit = {**MISFIT, "start": {**MISFIT["start"], "from": start}}
    assert desk.ask("POST", "/scenario", misfit).status == 400
    second = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    documents.flush()
    assert {payment["paymentId"] for payment in desk.get("/payments")["payments"]} == {first, second}
    assert first != second


def test_changes_that_are_taken_back_start_no_other_rule_anew(desk: ControlDesk, kari: DeskClient) -> None:
    desk.do("POST", "/rules", [{"name": name, "times": {"first": 1}, **DOWN} for name in ("gone", "once")])
    assert kari.get("/v1/accounts").status == 503
    image = desk.service.bank.documents.image()
    desk.do("DELETE", "/rules/gone")
    assert kari.get("/v1/accounts").status == 503
    desk.service.bank.documents.restore(image)
    assert [(count["name"], count["matched"]) for count in desk.get("/rules")["counts"]] == [("gone", 1), ("once", 1)]


def test_mistakes_in_yaml_are_told_with_line_and_column(desk: ControlDesk) -> None:
    body = b"scenario: x\nrules:\n  - then: {delay: -1s}\nsumary: y\n"
    response = desk.raw("POST", "/scenario", ("Content-Type", "application/yaml"), body=body)
    problems = [(entry["path"], entry["text"]) for entry in json.loads(response.body)["tppMessages"]]
    assert response.status == 400
    assert problems[0][0] == "rules[0].then.delay"
    assert problems[0][1].startswith("Line 3, column 12: Expected a duration")
    assert problems[1] == ("sumary", "Line 4, column 1: There is no member 'sumary'; did you mean summary?")
    for broken in (b"scenario: [", b"\xff", b"- &a x"):
        assert desk.raw("POST", "/scenario", ("Content-Type", "application/yaml"), body=broken).status == 400


def test_a_scenario_that_is_not_ready_is_told_where_it_was_named(desk: ControlDesk) -> None:
    for method, path, body, message in (
        ("POST", "/scenario", {"name": "slow-bnk"}, "name"),
        ("POST", "/reset", {"scenario": "slow-bnk"}, "scenario"),
        ("POST", "/reset", {"scenario": {"name": "slow-bnk"}}, "scenario.name"),
        ("PUT", "/banks/new", {"scenario": 5}, "scenario"),
    ):
        answer = desk.ask(method, path, body)
        assert (answer.status, answer.errors()) == (400, [("FORMAT_ERROR", message)]), body
        assert answer.texts() in (
            "There is no scenario 'slow-bnk'; did you mean slow-bank?",
            "Expected text, found the number 5; write it in quotes.",
        ), body


@pytest.mark.inside  # a story that is played without a server
def test_a_story_is_answered_as_everybody_is(
    desk: ControlDesk, registry: BankRegistry, authority: CertificateAuthority
) -> None:
    for method, path, body in (
        ("GET", "/clock", None),
        ("DELETE", "/ledger", None),
        ("GET", "/nowhere", None),
        ("POST", "/scenario", {"scenario": "X"}),
        ("POST", "/reset", {"fixtures": 5}),
    ):
        received = in_process(registry).control(method, path, body)
        content = b"" if body is None else json.dumps(body).encode()
        answer = desk.raw(method, path, ("Content-Type", "application/json"), body=content)
        assert (received.status, received.headers, received.body) == (
            answer.status,
            tuple(answer.headers),
            answer.body,
        ), path


def test_the_library_is_listed_shown_and_played_beside_the_bank(desk: ControlDesk, registry: BankRegistry) -> None:
    names = [entry["name"] for entry in desk.get("/scenarios")["scenarios"]]
    assert names == sorted(loader.library())
    assert desk.get("/scenarios/slow-bank") == dict(loader.named("slow-bank").source)
    assert desk.ask("GET", "/scenarios/fast-bank").status == 404
    before = desk.service.bank.documents.dump()
    played = desk.do("POST", "/scenarios/insufficient-funds/play")
    assert played["passed"] is True
    assert [step["outcome"] for step in played["steps"]] == ["passed"] * len(played["steps"])
    assert desk.service.bank.documents.dump() == before
    assert registry.names() == ["default"]
    assert desk.ask("POST", "/scenarios/fast-bank/play").status == 404


def test_playing_leaves_nothing_behind_and_draws_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = CertificateAuthority(tmp_path, clock=real_now)
    registry = registry_for(ServeSettings(state=tmp_path, seed=1), authority)
    desk = ControlDesk(Control(registry, authority), registry.default)
    before = sorted(tmp_path.rglob("*"))

    def on_disk(_: FolderStorage) -> Path:
        pytest.fail("a kill while a story plays would leave the bank that it plays on")

    monkeypatch.setattr(FolderStorage, "temporary", on_disk)
    assert desk.do("POST", "/scenarios/expired-certificate/play")["passed"] is True
    assert desk.get("/tpps") == {"tpps": []}
    assert sorted(tmp_path.rglob("*")) == before
    unplayed = registry_for(ServeSettings(ephemeral=True, seed=1), authority)
    assert registry.default.bank.ids.uuid() == unplayed.default.bank.ids.uuid()
    registry.close()


def test_an_sca_is_found_by_token_target_and_latest(desk: ControlDesk, kari: DeskClient) -> None:
    created = kari.post(DOMESTIC, json=PAYMENT).json()
    token = created["_links"]["scaRedirect"]["href"].rpartition("/")[2]
    shown = desk.get(f"/sca/{token}")
    assert shown == desk.get(f"/sca/{created['paymentId']}") == desk.get("/sca/latest") == desk.get("/sca")["sca"][0]
    assert (shown["purpose"], shown["status"], shown["nationalId"]) == ("payment", "started", KARI)
    assert desk.ask("GET", "/sca/none").status == 404
    redirect = desk.do("POST", f"/sca/{token}/approve", {"nationalId": KARI, "method": "HA2"})["redirect"]
    assert "psu-id=" in redirect
    again = desk.ask("POST", f"/sca/{token}/approve")
    assert (again.status, again.errors()) == (409, [("CONFLICT", None)])


def test_an_sca_ends_in_every_way(desk: ControlDesk, kari: DeskClient) -> None:
    ends = {"reject": "SCA_INVALID", "expire": "SCA_EXPIRED", "fail": "SYSTEM_ERROR"}
    for end, code in ends.items():
        payment = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
        assert f"code={code}" in desk.do("POST", f"/sca/{payment}/{end}")["redirect"]
    for failure, query in (
        ({"status": 401}, "?status=401&code=SCA_INVALID&message=The%20authentication%20failed."),
        ({"status": 404, "code": "NOT_FOUND", "message": "gone"}, "?status=404&code=NOT_FOUND&message=gone"),
        ({"code": "SCA_EXPIRED"}, "?status=401&code=SCA_EXPIRED&message="),
        ({"status": 503}, "?system=core&status=503&code=SYSTEM_ERROR&message="),
        ({"status": 400, "system": "ident"}, "?system=ident&status=400&code=SCA_INVALID&message="),
    ):
        payment = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
        assert query in desk.do("POST", f"/sca/{payment}/fail", failure)["redirect"]
    payment = kari.post(DOMESTIC, json=PAYMENT).json()["paymentId"]
    failure = {"status": 503, "code": "FORBIDDEN", "message": "Kom tilbake siden", "system": "ident"}
    redirect = desk.do("POST", f"/sca/{payment}/fail", failure)["redirect"]
    assert "system=ident&status=503&code=FORBIDDEN&message=Kom%20tilbake%20siden" in redirect


def test_sessions_and_consents_are_seeded_and_taken_back(desk: ControlDesk, tpp: DeskClient) -> None:
    seeded = desk.do("POST", "/sessions", {"tpp": "demo", "nationalId": KARI, "accounts": ["NO8599901000014"]})
    assert set(seeded) == {"psuId", "tppSessionId", "context"}
    tpp.use_session(seeded)
    assert [account["bban"] for account in tpp.get("/v1/accounts").json()["accounts"]] == ["99901000014"]
    consent = desk.get("/consents")["consents"][0]
    assert (consent["tpp"], consent["status"]) == (tpp.tpp_id, "valid")
    assert desk.get(f"/people/{KARI}")["consents"][0]["tppName"] == "demo"  # as after an SCA, not the id
    assert desk.do("POST", f"/consents/{consent['consentId']}/revoke")["status"] == "revoked"
    assert tpp.get("/v1/accounts").status == 401
    assert desk.ask("POST", "/consents/none/revoke").status == 404
    corporate = desk.do("POST", "/sessions", {"tpp": tpp.tpp_id, "nationalId": "21909220006"})
    assert (corporate["context"], "psuCorporateId" in corporate) == ("CORPORATE", True)


def test_a_session_is_seeded_for_a_tpp_that_is_named_by_its_tpp_id(desk: ControlDesk) -> None:
    desk.do("POST", "/tpps", {"name": "with-an-id", "organizationIdentifier": "its own id", "replace": True})
    names = {"PSDNO-FSA-123456", "987654321", "CN=shop,C=NO", "Shop", "its own id"}
    for tpp in names:
        desk.do("POST", "/sessions", {"tpp": tpp, "nationalId": KARI})
    assert {consent["tpp"] for consent in desk.get("/consents")["consents"]} == names


def test_a_session_that_cannot_be_leaves_nothing_behind(desk: ControlDesk) -> None:
    for body, path in (
        ({"tpp": "demo"}, "nationalId"),
        ({"tpp": "demo", "nationalId": "00000000000"}, "nationalId"),
        ({"tpp": "demo", "nationalId": KARI, "context": "CORPORATE"}, "context"),
        ({"tpp": "demo", "nationalId": KARI, "accounts": ["NO1"]}, "accounts[0]"),
        ({"tpp": "demo", "nationalId": KARI, "agreement": "none"}, "agreement"),
        ({"tpp": 1, "nationalId": KARI}, "tpp"),
        ({"tpp": "dem0", "nationalId": KARI}, "tpp"),
    ):
        before = desk.service.bank.documents.dump()
        answer = desk.ask("POST", "/sessions", body)
        assert (answer.status, answer.errors()[0][1]) == (400, path), body
        assert desk.service.bank.documents.dump() == before, body


def test_tpps_are_issued_with_their_key_only_once(desk: ControlDesk) -> None:
    issued = desk.ask("POST", "/tpps", {"name": "control test", "roles": ["AISP"], "organizationIdentifier": "PSDNO-1"})
    assert issued.status == 201
    assert (issued.json["tppId"], issued.json["roles"]) == ("PSDNO-1", ["AISP"])
    assert "PRIVATE KEY" in issued.json["key"]
    listed = {tpp["name"]: tpp for tpp in desk.get("/tpps")["tpps"]}
    assert "key" not in listed["control test"]
    assert desk.ask("POST", "/tpps", {"name": "control test"}).errors() == [("CONFLICT", "name")]
    again = desk.do("POST", "/tpps", {"name": "control test", "flaw": "expired", "replace": True})
    assert again["certificate"] != issued.json["certificate"]
    assert "CERTIFICATE" in desk.get("/certificate")["certificate"]


def test_banks_are_made_listed_and_taken_away(desk: ControlDesk, registry: BankRegistry) -> None:
    created = desk.ask("PUT", "/banks/a-1", {"fixtures": "empty", "seed": 7})
    assert (created.status, created.json["baseUrl"]) == (201, "http://127.0.0.1:8080/banks/a-1")
    service = registry.find("a-1")
    assert service is not None
    other = ControlDesk(desk.control, service, prefix="/banks/a-1")
    assert other.get("/people") == {"people": []}
    other.do("POST", "/rules", DOWN)
    assert desk.get("/rules")["rules"] == []
    assert desk.ask("PUT", "/banks/a-1", {"scenario": "slow-bank"}).status == 200
    service = registry.find("a-1")
    assert service is not None
    other = ControlDesk(desk.control, service, prefix="/banks/a-1")
    assert [rule["name"] for rule in other.get("/rules")["rules"]] == ["every third read is slow"]
    assert service.handle(Request("GET", "/banks/a-1/v1/accounts", (), b"", prefix="/banks/a-1")).status == 400
    assert desk.get("/requests")["requests"] == []
    assert [bank["name"] for bank in desk.get("/banks")["banks"]] == ["default", "a-1"]
    assert desk.ask("DELETE", "/banks/a-1").status == 204
    assert desk.ask("DELETE", "/banks/a-1").status == 404
    assert desk.ask("DELETE", "/banks/default").errors() == [("CONFLICT", "name")]
    assert desk.ask("PUT", "/banks/default", {"seed": 99}).errors() == [("CONFLICT", "seed")]


SEPA_ONLY = "createPaymentSepaCreditTransfers"


def test_a_product_has_its_own_name_of_an_operation_as_in_the_openapi_document(
    desk: ControlDesk, kari: DeskClient
) -> None:
    desk.do("POST", "/rules", {"name": "sepa", "when": {"operation": SEPA_ONLY}, **DOWN})
    abroad = sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"})
    assert kari.post(SEPA, json=abroad).status == 503
    assert kari.post(DOMESTIC, json=PAYMENT).status == 201
    for name, count in ((SEPA_ONLY, 1), ("createPayment", 2), ("createPayment*", 2)):
        assert desk.do("POST", "/requests/count", {"match": {"operation": name}})["count"] == count
    for name, count in ((SEPA_ONLY, 1), ("createPayment", 2)):
        assert len(desk.get(f"/requests?operation={name}")["requests"]) == count


def test_the_right_name_of_an_operation_is_guessed(desk: ControlDesk) -> None:
    for misspelt, meant in (("createPaymnt", "createPayment"), ("createPaymentSepaCreditTransfer", SEPA_ONLY)):
        for refused in (
            desk.ask("POST", "/rules", {"when": {"operation": misspelt}, **DOWN}),
            desk.ask("POST", "/requests/count", {"match": {"operation": misspelt}}),
            desk.ask("GET", f"/requests?operation={misspelt}"),
        ):
            assert refused.status == 400, misspelt
            assert f"did you mean {meant}?" in refused.texts(), misspelt


def test_a_rule_knows_an_account_by_each_of_its_numbers(desk: ControlDesk, kari: DeskClient) -> None:
    mine, other = kari.get("/v1/accounts").json()["accounts"]
    for account in (
        "{resourceId}",
        "{iban}",
        "{bban}",
        "no8599901000014",
        "NO85 9990 1000 014",
        "9990.10.00014",
        "no85 9990 1000 01*",
        {"in": ["x", "9990.10.00014"]},
    ):
        desk.do("DELETE", "/rules")
        desk.do("DELETE", "/requests")
        account = account.format(**mine) if isinstance(account, str) else account
        desk.do("POST", "/rules", {"when": {"account": account}, **DOWN})
        assert kari.get(f"/v1/accounts/{mine['resourceId']}").status == 503, account
        assert kari.get(f"/v1/accounts/{other['resourceId']}").status == 200, account
        assert desk.do("POST", "/requests/count", {"match": {"account": account}})["count"] == 1, account


@pytest.mark.parametrize(("path", "member"), [("accounts", "iban"), ("card-accounts", "maskedPan")])
def test_a_rule_knows_an_account_under_ids_of_a_consent_too(
    desk: ControlDesk, tpp: DeskClient, path: str, member: str
) -> None:
    plain = _first(tpp.log_in(KARI), path)
    desk.do("PUT", "/settings", {"account_ids": "renewed"})
    shown = _first(tpp.log_in(KARI), path)
    assert shown["resourceId"] != plain["resourceId"]
    for account in (shown["resourceId"], plain["resourceId"], shown[member]):
        desk.do("DELETE", "/rules")
        desk.do("DELETE", "/requests")
        desk.do("POST", "/rules", {"when": {"account": account}, **DOWN})
        assert tpp.get(f"/v1/{path}/{shown['resourceId']}/balances").status == 503
        assert desk.do("POST", "/requests/count", {"match": {"account": account}})["count"] == 1


@pytest.mark.parametrize("path", ["accounts", "card-accounts"])
def test_a_customer_shares_the_account_that_the_tpp_names_as_a_consent_shows_it(
    desk: ControlDesk, tpp: DeskClient, path: str
) -> None:
    desk.do("PUT", "/settings", {"account_ids": "renewed"})
    for _ in range(2):  # the second consent replaces the one that showed this id
        shown = _first(tpp.log_in(KARI), path)
        desk.do("POST", "/sessions", {"tpp": "demo", "nationalId": KARI, "accounts": [shown["resourceId"]]})
        (consent,) = [c for c in desk.get("/consents")["consents"] if c["status"] == "valid"]
        assert len(consent["accounts"] + consent["cards"]) == 1
    if path == "accounts":
        change = {"account": shown["resourceId"], "balance": "5.00"}
        changed = {"scenario": "poor", "summary": "Poor.", "start": {"from": "current", "change": [change]}}
        assert desk.do("POST", "/scenario", changed)["scenario"] == "poor"


def _first(client: DeskClient, path: str) -> dict[str, Any]:
    (held,) = client.get(f"/v1/{path}").json().values()
    account: dict[str, Any] = held[0]
    return account


def test_a_condition_that_no_request_can_meet_is_refused(desk: ControlDesk) -> None:
    for when, path in (
        ({"operation": "createPayment", "account": "NO8599901000014"}, "account"),
        ({"operation": "createPayment", "payment": "x"}, "payment"),
        ({"operation": "getAccounts", "product": "*"}, "product"),
        ({"operation": SEPA_ONLY, "product": "instant*"}, "product"),
        ({"service": "bulk-payments", "product": "sepa-credit-transfers"}, "product"),
        ({"operation": "createPayment", "method": "GET"}, "method"),
        ({"operation": {"regex": "^creatPayment"}}, "operation"),
        ({"operation": {"absent": True}}, "operation"),
        ({"path": "/v1/acounts"}, "path"),
        ({"path": {"in": ["/v1/acounts/*", "/v1/paymnets/*"]}}, "path"),
        ({"path": {"in": ["/accounts*", "/v2/*", "/nowhere/v1/accounts"]}}, "path"),
        ({"operation": "getUser", "path": "/v1/accounts"}, "path"),
        ({"path": {"absent": True}}, "path"),
        ({"account": None}, "account"),
        ({"account": {"in": ["x", None]}}, "account.in[1]"),
        ({"body": None}, "body"),
        ({"body": {"creditorAccount": {"iban": None}}}, "body.creditorAccount.iban"),
        ({"body": {"payments": [{"creditorName": {"in": [None]}}]}}, "body.payments[0].creditorName.in[0]"),
        ({"headers": {"X-Request-ID": None}}, "headers.X-Request-ID"),
        ({"headers": {"PSU ID": "x"}}, "headers.PSU ID"),
        ({"query": {"limit": {"gt": 5, "lt": 5}}}, "query.limit"),
        ({"body": {"creditorName": {"absent": True, "regex": "A"}}}, "body.creditorName"),
        ({"psu": "Kari Kladd"}, "psu"),
        ({"tpp": {"absent": True}}, "tpp"),
    ):
        refused = desk.ask("POST", "/rules", {"when": when, **DOWN})
        assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", f"when.{path}")]), when


def test_one_that_some_request_can_meet_is_taken(desk: ControlDesk) -> None:
    for when in (
        {"path": "/v1/accounts"},
        {"path": "/banks/*/v1/payments/sepa-credit-transfers"},
        {"path": "/v1/consents/*/status"},
        {"path": "/banks/x/api-sandbox/v1/accounts"},
        {"path": "/api-sandbox/v1/accounts*"},
        *({"path": beginning} for beginning in ("*", "/*", "/v*", "/banks*", "/banks/x*", "/api*/accounts")),
        {"path": "*/status"},
        {"path": {"in": ["/v1/acounts", "/v1/accounts/*"]}},
        {"path": {"regex": "/balances$"}},
        {"payment": {"absent": True}, "operation": "createPayment"},
        {"product": {"absent": True}},
        {"operation": {"in": ["createPayment", "getUser*"]}, "product": "*norwegian*"},
        {"query": {"limit": {"gt": 5, "lt": 7}}},
        {"psu": {"in": [KARI, "*"]}},
        {"context": {"absent": True}},
    ):
        assert desk.ask("POST", "/rules", {"when": when, **DOWN}).status == 201, when


def test_without_a_valid_signature_there_may_be_no_tpp(desk: ControlDesk, kari: DeskClient) -> None:
    desk.do("POST", "/rules", {"unsigned": True, "when": {"tpp": {"absent": True}}, **DOWN})
    assert kari.get("/v1/accounts", headers={"TPP-Signature-Certificate": None}).status == 503
    assert kari.get("/v1/accounts").status == 200


def test_an_answer_before_the_signature_is_checked_still_shows_whose_request_it_was(
    desk: ControlDesk, kari: DeskClient
) -> None:
    desk.do("POST", "/rules", {"unsigned": True, **DOWN})
    kari.get("/v1/accounts")
    kari.get("/v1/accounts", tamper="bit-flipped")
    forged, signed = desk.get("/requests")["requests"]
    assert (signed["tpp"], "tpp" in forged) == ("PSDNO-SBX-demo", False)
    assert desk.get(f"/requests/{signed['id']}")["signature"]["valid"] is True


def test_a_code_that_the_bank_does_not_have_is_taken_with_a_warning(desk: ControlDesk, kari: DeskClient) -> None:
    rule = {"name": "blocked", "when": {"operation": "getAccounts"}, "then": {"answer": {"code": "NOBODYS_CODE"}}}
    (count,) = desk.do("POST", "/rules", rule)["counts"]
    assert count["notes"] == ["The bank itself has no code NOBODYS_CODE."]
    answer = kari.get("/v1/accounts")
    assert (answer.status, answer.json()["tppMessages"][0]["code"]) == (400, "NOBODYS_CODE")
    misspelt = {"scenario": "x", "rules": [{"then": {"answer": {"status": 429, "code": "ACESS_EXCEEDED"}}}]}
    applied = desk.do("POST", "/scenario", misspelt)
    assert applied["notes"] == [
        "rule 1: The bank itself has no code ACESS_EXCEEDED; did you mean ACCESS_EXCEEDED?",
    ]


def test_other_words_are_no_codes(desk: ControlDesk) -> None:
    for code in ("AB", "lower", "WITH-DASH", "_FIRST", "A" * 65, "", None, 5):
        refused = desk.ask("POST", "/rules", {"then": {"answer": {"status": 400, "code": code}}})
        assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", "then.answer.code")]), code


def test_a_header_of_an_answer_may_have_several_values_and_replaces_the_banks(
    desk: ControlDesk, kari: DeskClient
) -> None:
    headers = {"Set-Cookie": ["a=1", "b=2"], "Retry-After": 5, "cache-control": "max-age=5", "Vary": "X"}
    desk.do("POST", "/rules", {"then": {"answer": {"status": 503, "headers": headers}}})
    prepared = kari.prepare("GET", "/v1/accounts")
    request = Request("GET", prepared.target, tuple(prepared.headers.items()), b"")
    sent = kari.service.handle(request).headers
    assert [pair for pair in sent if pair[0] in headers or pair[0] == "Cache-Control"] == [
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Retry-After", "5"),
        ("cache-control", "max-age=5"),
        ("Vary", "X"),
    ]
    for wrong, path in (([], ""), (["a", "b\nc"], "[1]"), ([["a"]], "[0]")):
        refused = desk.ask("POST", "/rules", {"then": {"answer": {"status": 503, "headers": {"A": wrong}}}})
        assert refused.errors() == [("FORMAT_ERROR", f"then.answer.headers.A{path}")]
