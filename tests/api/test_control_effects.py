"""What rules do to requests: each effect, how often a rule acts, which rule wins, and that nothing leaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.assemble.registry import BankRegistry
from emulator.bank.validation import json_schema
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.scenario.effects import effects
from emulator.scenario.steps import step_kinds
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, DeskClient
from tests.known_state import DOMESTIC, KARI, STRAKS
from tests.unit.effort import calls


def payment(creditor: str = "Even Eksempel", amount: str = "10.00") -> dict[str, Any]:
    return {
        "instructedAmount": {"amount": amount, "currency": "NOK"},
        "creditorName": creditor,
        "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
        "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
    }


class Desk:
    """A TPP with its customer, and the rules it meets."""

    def __init__(self, control: ControlDesk, tpp: DeskClient) -> None:
        self.control = control
        self.tpp = tpp

    def rule(self, then: dict[str, Any], **more: Any) -> None:
        self.control.do("POST", "/rules", {"then": then, **more})

    def send(self, method: str, path: str, **options: Any) -> Response:
        """The core's own answer, with its delivery."""
        prepared = self.tpp.prepare(method, path, **options)
        headers = tuple(prepared.headers.items())
        return self.tpp.service.handle(Request(prepared.method, prepared.target, headers, prepared.body, BASE))

    def read(self) -> Response:
        return self.send("GET", "/v1/accounts")

    def pay(self, creditor: str = "Even Eksempel", amount: str = "10.00") -> Response:
        return self.send("POST", DOMESTIC, json=payment(creditor, amount))


@pytest.fixture
def desk(registry: BankRegistry, service: BankService, authority: CertificateAuthority, tpp: DeskClient) -> Desk:
    return Desk(ControlDesk(Control(registry, authority), service), tpp.log_in(KARI))


def status_and_code(response: Response) -> tuple[int, str]:
    return response.status, json.loads(response.body)["tppMessages"][0]["code"]


def test_a_ready_answer_is_given_in_the_banks_place(desk: Desk) -> None:
    desk.rule({"answer": {"status": 503, "text": "Closed.", "headers": {"Retry-After": "60"}}})
    response = desk.pay()
    assert response.status == 503
    assert ("Retry-After", "60") in response.headers
    assert json.loads(response.body) == {
        "tppMessages": [{"category": "ERROR", "code": "SYSTEM_ERROR", "text": "Closed."}]
    }
    assert desk.control.get("/payments") == {"payments": []}


def test_status_and_code_stand_for_each_other(desk: Desk) -> None:
    for answer, status, code in (
        ({"code": "KID_INVALID"}, 400, "KID_INVALID"),
        ({"status": 404}, 404, "NOT_FOUND"),
        ({"status": 418}, 418, "BAD_REQUEST"),
        ({"status": 502}, 502, "SYSTEM_ERROR"),
        ({"status": 400, "code": "SYSTEM_ERROR", "category": "WARNING"}, 400, "SYSTEM_ERROR"),
    ):
        desk.control.do("DELETE", "/rules")
        desk.rule({"answer": answer})
        assert status_and_code(desk.read()) == (status, code), answer


def test_a_scripted_401_sends_to_sca_as_the_banks_own(desk: Desk) -> None:
    desk.rule({"answer": {"code": "SCA_EXPIRED", "headers": {"X-Why": "test"}}}, times={"first": 1})
    response = desk.read()
    assert status_and_code(response) == (401, "SCA_EXPIRED")
    assert ("X-Why", "test") in response.headers
    assert "/sca/" in json.loads(response.body)["_links"]["scaRedirect"]["href"]
    assert desk.read().status == 200


@pytest.mark.parametrize(
    ("method", "path", "links"),
    [
        ("POST", "/v1/consents", ["scaRedirect"]),
        ("POST", "/v1/bank-offered-consents", ["scaRedirect"]),
        ("GET", "/v1/sandbox/customers", []),
    ],
)
def test_a_scripted_401_sends_to_sca_wherever_that_is_about_a_customer(
    desk: Desk, method: str, path: str, links: list[str]
) -> None:
    desk.rule({"answer": {"status": 401}})
    response = desk.send(method, path)
    assert status_and_code(response) == (401, "PSU_CREDENTIALS_INVALID")
    assert list(json.loads(response.body).get("_links", {})) == links


def test_a_scripted_401_is_answered_without_a_link_where_nobody_could_be_led_back(desk: Desk) -> None:
    desk.control.do("PUT", "/settings", {"profile": "lenient"})
    payment_id = json.loads(desk.pay().body)["paymentId"]
    desk.rule({"answer": {"status": 401}})
    response = desk.send("GET", f"{DOMESTIC}/{payment_id}/status", headers={"TPP-Redirect-URI": None})
    assert status_and_code(response) == (401, "PSU_CREDENTIALS_INVALID")
    assert "_links" not in json.loads(response.body)


def test_any_json_may_be_answered(desk: Desk) -> None:
    desk.rule({"answer": {"json": [1, {"a": None}]}}, times={"first": 1})
    desk.rule({"answer": {"status": 204}}, times={"first": 1})
    desk.rule({"answer": {"json": None, "status": 202}}, times={"first": 1})
    desk.rule({"answer": {"status": 202}})
    assert (desk.read().body, desk.read().body) == (b'[1,{"a":null}]', b"")
    null = desk.read()
    assert (null.status, null.body, "Content-Type" in dict(null.headers)) == (202, b"null", True)
    assert desk.read().body == b"{}"


@pytest.mark.parametrize(
    "answer, message",
    [
        ({"status": 200, "text": "careful"}, {"category": "WARNING", "code": "FORMAT_ERROR", "text": "careful"}),
        (
            {"status": 201, "code": "PRODUCT_UNKNOWN", "category": "ERROR", "text": "odd"},
            {"category": "ERROR", "code": "PRODUCT_UNKNOWN", "text": "odd"},
        ),
        (
            {"status": 303, "category": "WARNING"},
            {"category": "WARNING", "code": "FORMAT_ERROR", "text": "This answer comes from a scripted rule."},
        ),
    ],
)
def test_what_is_said_beside_a_success_is_answered(desk: Desk, answer: dict[str, Any], message: dict[str, str]) -> None:
    desk.rule({"answer": answer})
    response = desk.read()
    assert (response.status, json.loads(response.body)) == (answer["status"], {"tppMessages": [message]})


def test_a_content_type_of_the_rule_takes_the_place_of_the_usual_one(desk: Desk) -> None:
    desk.rule({"answer": {"json": "busy", "status": 200, "headers": {"content-type": "text/plain"}}})
    types = [value for name, value in desk.read().headers if name.lower() == "content-type"]
    assert types == ["text/plain"]


@pytest.mark.parametrize("name", ["Digest", "signature"])
def test_a_digest_or_signature_of_the_rule_takes_the_place_of_the_banks_own(desk: Desk, name: str) -> None:
    desk.control.do("PUT", "/settings", {"sign_responses": True})
    desk.rule({"answer": {"json": {}, "headers": {name: "SHA-256=AAAA"}}})
    response = desk.read()
    signed = sorted((n, v) for n, v in response.headers if n.lower() in ("digest", "signature"))
    assert len(signed) == 2
    assert (name, "SHA-256=AAAA") in signed


@pytest.mark.inside
def test_a_delay_is_handed_to_the_delivery(desk: Desk) -> None:
    desk.rule({"delay": {"min": "100ms", "max": "2s"}}, times={"first": 20})
    delays = [desk.read().delivery.delay for _ in range(21)]
    assert all(0.1 <= delay <= 2 for delay in delays[:20])
    assert len(set(delays[:20])) > 10
    assert delays[20] == 0


def test_a_disconnect_before_changes_nothing_and_after_commits(desk: Desk) -> None:
    desk.rule({"disconnect": "before"}, times={"first": 1})
    desk.rule({"disconnect": "after"}, times={"first": 1})
    assert desk.pay().delivery.disconnect
    assert desk.control.get("/payments") == {"payments": []}
    assert desk.pay().delivery.disconnect
    assert len(desk.control.get("/payments")["payments"]) == 1
    newest, oldest = desk.control.get("/requests")["requests"]
    assert (newest["rules"], newest["status"]) == (["rule 2"], 201)
    assert (oldest["rules"], oldest["status"]) == (["rule 1"], 0)


@pytest.mark.parametrize("form", ["truncated", "not-json", "wrong-type", "empty"])
def test_a_malformed_answer_is_of_a_payment_that_is_there(desk: Desk, form: str) -> None:
    desk.rule({"malformed": form})
    response = desk.pay()
    assert response.status == 201
    assert ("Content-Type", "application/json; charset=utf-8") in response.headers
    payments = desk.control.get("/payments")["payments"]
    assert len(payments) == 1
    [logged] = desk.control.get(f"/requests?paymentId={payments[0]['paymentId']}")["requests"]
    assert (logged["operation"], logged["paymentId"]) == ("createPayment", payments[0]["paymentId"])
    if form == "wrong-type":
        body = json.loads(response.body)
        assert body["paymentId"] == len(payments[0]["paymentId"])
        assert not isinstance(body["_links"], dict)
    elif form == "empty":
        assert response.body == b""
    else:
        with pytest.raises(ValueError):
            json.loads(response.body)


def test_new_members_are_in_every_object_and_the_others_stay(desk: Desk) -> None:
    desk.rule({"malformed": "new-members"}, times={"at": 2})
    first, second, third = (json.loads(desk.pay().body) for _ in range(3))
    assert "newMember" not in first
    assert "newMember" not in third
    assert second["newMember"] == {"kind": "new"}
    assert second["_links"]["self"]["newMember"] == {"kind": "new"}
    assert second.keys() - first.keys() == {"newMember"}
    assert second["transactionStatus"] == "RCVD"
    assert all(isinstance(link["href"], str) and link["verbs"] for link in second["_links"].values())


def test_an_answer_without_a_body_has_none_that_could_be_malformed(desk: Desk) -> None:
    """No 204 can carry one: a story and the log would show what no client ever sees."""
    for form in ("truncated", "not-json", "wrong-type", "empty"):
        desk.control.do("DELETE", "/rules")
        payment_id = json.loads(desk.pay().body)["paymentId"]
        desk.rule({"malformed": form})
        answer = desk.send("DELETE", f"{DOMESTIC}/{payment_id}")
        assert (answer.status, answer.body) == (204, b""), form


@pytest.mark.parametrize(
    "times, acted",
    [
        (None, [1, 1, 1, 1, 1, 1]),
        ({"first": 2}, [1, 1, 0, 0, 0, 0]),
        ({"every": 3}, [0, 0, 1, 0, 0, 1]),
        ({"after": 4}, [0, 0, 0, 0, 1, 1]),
        ({"chance": 0}, [0, 0, 0, 0, 0, 0]),
        ({"chance": 1}, [1, 1, 1, 1, 1, 1]),
        ({"for": "2m"}, [1, 1, 0, 0, 0, 0]),
    ],
)
def test_a_rule_acts_as_often_as_it_says(desk: Desk, times: dict[str, Any] | None, acted: list[int]) -> None:
    desk.rule({"answer": {"status": 503}}, **({"times": times} if times else {}))
    failures = []
    for _ in acted:
        failures.append(int(desk.read().status == 503))
        desk.control.do("POST", "/clock/advance", {"by": "1m"})
    assert failures == acted
    assert desk.control.get("/rules")["counts"][0]["matched"] == len(acted)
    assert desk.control.get("/rules")["counts"][0]["acted"] == sum(acted)


def draws(registry: BankRegistry, authority: CertificateAuthority, seed: int) -> list[int]:
    control = Control(registry, authority)
    desk = ControlDesk(control, registry.default)
    rule = {"times": {"chance": 0.5}, "then": {"answer": {"status": 503}}}
    desk.do("PUT", "/banks/dice", {"seed": seed})
    service = registry.find("dice")
    assert service is not None
    ControlDesk(control, service).do("POST", "/rules", rule)
    tpp = DeskClient(service, authority).log_in(KARI)
    return [tpp.get("/v1/accounts").status for _ in range(40)]


def test_chance_draws_from_the_seed(registry: BankRegistry, authority: CertificateAuthority) -> None:
    first = draws(registry, authority, 1)
    assert {200, 503} == set(first)
    assert draws(registry, authority, 1) == first
    assert draws(registry, authority, 2) != first


def test_the_first_rule_wins_for_each_effect(desk: Desk) -> None:
    desk.rule({"answer": {"status": 503}}, name="a", times={"first": 1})
    desk.rule({"answer": {"status": 502}, "delay": "1ms"}, name="b", times={"first": 2})
    desk.rule({"answer": {"status": 501}}, name="c", times={"first": 1})
    assert [desk.read().status for _ in range(4)] == [503, 502, 501, 200]
    counts = {count["name"]: count["acted"] for count in desk.control.get("/rules")["counts"]}
    assert counts == {"a": 1, "b": 2, "c": 1}  # c was not asked while others had its effect


def test_unsigned_rules_act_and_count_before_the_signature_and_others_after_the_body(desk: Desk) -> None:
    desk.rule({"answer": {"status": 503}}, name="early", unsigned=True, times={"first": 1}, when={"tpp": "demo"})
    desk.rule({"delay": "1s"}, name="late")
    assert desk.send("GET", "/v1/accounts", tamper="bit-flipped").status == 503
    assert desk.send("GET", "/v1/accounts", tamper="bit-flipped").status == 400
    assert desk.send("POST", DOMESTIC, json={}).delivery.delay == 0
    assert desk.send("GET", "/v1/nothing").status == 404
    counts = {count["name"]: count["matched"] for count in desk.control.get("/rules")["counts"]}
    assert counts == {"early": 3, "late": 0}  # there is no operation behind a 404


def test_a_rule_says_which_requests_it_means(desk: Desk) -> None:
    for when, fits in (
        ({"operation": "createPayment"}, True),
        ({"operation": "create*"}, True),
        ({"operation": {"in": ["getAccounts", "createPayment"]}}, True),
        ({"operation": "getAccounts"}, False),
        ({"service": "payments", "product": "norwegian-*"}, True),
        ({"service": "bulk-payments"}, False),
        ({"method": "POST", "path": "/v1/payments/*"}, True),
        ({"path": "/v1/accounts*"}, False),
        ({"tpp": "demo"}, True),
        ({"tpp": "PSDNO-*"}, True),
        ({"tpp": "other"}, False),
        ({"psu": KARI}, True),
        ({"psu": "03817910172"}, False),
        ({"context": "PRIVATE"}, True),
        ({"headers": {"x-request-id": {"absent": False}}}, True),
        ({"headers": {"X-Other": {"absent": True}}}, True),
        ({"headers": {"PSU-IP-Address": "10.*"}}, False),
        ({"query": {"allowLogicalDuplicate": "false"}}, True),
        ({"query": {"allowLogicalDuplicate": {"absent": True}}}, False),
        ({"body": {"creditorName": {"regex": "^Even"}, "instructedAmount": {"amount": {"lt": 11}}}}, True),
        ({"body": {"creditorName": "Even Eksempel", "debtorAccount": {"iban": {"absent": False}}}}, False),
        ({}, True),
    ):
        desk.rule({"answer": {"status": 503}}, when=when)
        response = desk.send("POST", f"{DOMESTIC}?allowLogicalDuplicate=false", json=payment())
        assert response.status == (503 if fits else 201), when
        asked = {"match": {**when, "status": {"gt": 0}}}
        assert desk.control.do("POST", "/requests/count", asked)["count"] == int(fits), when
        desk.control.do("DELETE", "/rules")
        if not fits:  # the next would be its logical duplicate
            desk.send("DELETE", f"{DOMESTIC}/{json.loads(response.body)['paymentId']}")
        desk.control.do("DELETE", "/requests")


def test_every_file_of_the_folders_is_a_part_with_its_documents() -> None:
    assert list(effects()) == [
        *(
            "answer",
            "delay",
            "disconnect",
            "fee",
            "malformed",
            "notification",
            "permission",
            "progress",
            "quota",
            "sca",
        ),
    ]
    assert list(step_kinds()) == ["clock", "control", "psu", "tpp"]
    for kind in effects().values():
        assert kind.summary.endswith(".")
        assert json_schema(kind.form)


def test_a_payment_may_take_a_status_that_the_table_does_not_know(desk: Desk) -> None:
    desk.rule({"progress": ["ACTC", {"ACCC": "10s"}, {"ACSC": "1h"}]})
    payment_id = json.loads(desk.pay().body)["paymentId"]
    desk.control.do("POST", f"/sca/{payment_id}/approve")
    desk.control.do("POST", "/clock/advance", {"by": "10s"})
    address = f"{DOMESTIC}/{payment_id}"
    assert desk.tpp.get(f"{address}/status").json()["transactionStatus"] == "ACCC"
    assert desk.tpp.get(address).json()["transactionStatus"] == "ACCC"
    assert desk.control.get("/payments")["payments"][0]["transactionStatus"] == "ACCC"
    assert desk.tpp.delete(address).status == 409
    desk.control.do("POST", "/clock/advance", {"by": "1h"})
    assert desk.tpp.get(f"{address}/status").json()["transactionStatus"] == "ACSC"
    assert desk.control.get("/ledger")["balanced"] is True


def test_of_several_ways_a_payment_takes_the_first_that_its_product_has(desk: Desk) -> None:
    late, waits = ["ACTC", {"ACCP": "1s"}, {"RJCT": "1s"}], ["ACTC", {"PDNG": "1s"}]
    desk.rule({"progress": {"any": [waits, late]}, "fee": "1.00"})
    ends = {}
    for path, more in ((DOMESTIC, {}), (STRAKS, {"creditorAddress": {"country": "NO"}})):
        created = desk.tpp.post(path, json={**payment(), **more}).json()
        desk.control.do("POST", f"/sca/{created['paymentId']}/approve")
        desk.control.do("POST", "/clock/advance", {"by": "5s"})
        ends[path] = desk.tpp.get(f"{path}/{created['paymentId']}/status").json()["transactionStatus"]
    assert ends == {DOMESTIC: "PDNG", STRAKS: "RJCT"}


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (["ACTC", {"PDNG": "1s"}], "ACSC"),
        (["ACWC"], "ACSC"),
        (["RCVD"], "ACSC"),
        (["ACTC", "ACSC"], "ACSC"),
        (["ACTC", {"CANC": "1s"}], "ACSC"),
        (["ACTC", {"PART": "1s"}], "ACSC"),
        ([{"PATC": "1s"}], "ACSC"),
        ([{"ACSP": "1s"}, {"RJCT": "1s"}], "RJCT"),
        ([{"RJCT": "1s"}], "RJCT"),
        (["ACCC", {"RJCT": "1s"}], "RJCT"),
    ],
)
def test_a_script_takes_only_steps_of_the_products_table(desk: Desk, progress: list[Any], end: str) -> None:
    """Of straks, which executes at once; the other effects of the rule act all the same."""
    desk.rule({"progress": progress, "fee": "1.00"})
    assert desk.read().status == 200, "a rule about payments does nothing to other requests"
    desk.control.do("DELETE", "/rules")
    desk.rule({"progress": progress, "fee": "1.00"}, when={"operation": "createPayment"})
    body = {**payment(), "creditorAddress": {"country": "NO"}}
    created = desk.tpp.post(STRAKS, json=body).json()
    assert created["transactionFees"]["amount"] == "1.00"
    desk.control.do("POST", f"/sca/{created['paymentId']}/approve")
    desk.control.do("POST", "/clock/advance", {"by": "5s"})
    assert desk.tpp.get(f"{STRAKS}/{created['paymentId']}/status").json()["transactionStatus"] == end
    (count,) = desk.control.get("/rules")["counts"]
    assert count["acted"] == 1
    assert "notes" in count or end == "RJCT"
    logged = desk.control.get("/requests?operation=createPayment")["requests"][0]
    assert ("notes" in logged) == (end == "ACSC")
    assert desk.control.get("/ledger")["balanced"] is True


@pytest.mark.parametrize("form, content_type", [("html", "text/html"), ({"html": "json"}, "application/json")])
def test_a_gateways_page_comes_with_its_own_content_type_or_with_that_of_json(
    desk: Desk, form: Any, content_type: str
) -> None:
    desk.rule({"malformed": form})
    answer = desk.pay()
    assert answer.status == 201
    assert answer.body.startswith(b"<!DOCTYPE html>")
    assert [value.split(";")[0] for name, value in answer.headers if name == "Content-Type"] == [content_type]


@pytest.mark.inside
def test_rules_about_other_operations_cost_a_request_nothing(desk: Desk) -> None:
    def cost() -> int:
        desk.read()
        return calls(desk.read)

    before = cost()
    when = [{"operation": "createPayment", "body": {"creditorName": f"x{n}"}} for n in range(500)]
    others = [{"when": one, "then": {"delay": "1s"}} for one in when]
    desk.control.do("POST", "/rules", others)
    assert cost() < 1.1 * before
    desk.rule({"delay": "1s"}, when={"operation": "getAccounts"})
    assert desk.read().delivery.delay == 1
