"""Stories that go wrong for reasons of their own: who acts, what cannot be sent, what a customer may say."""

from __future__ import annotations

from typing import Any

from tests.known_state import KARI
from tests.scenarios.conftest import Play

ACCOUNTS = {"tpp": "GET /v1/accounts", "expect": {"status": 200}}


def story(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    start = {"from": "known-state", "clock": "2026-03-02T09:00:00+01:00"}
    return {"scenario": "own", "start": start, "story": list(steps), **more}


def test_it_says_why(stage_play: Play) -> None:
    for steps, message in (
        (
            [{**ACCOUNTS, "as": {"nationalId": "00000000000"}}],
            "POST /_emulator/sessions failed: nationalId: The bank",
        ),
        (
            [{**ACCOUNTS, "as": {"tpp": {"name": "x", "organizationIdentifier": "\0"}}}],
            "POST /_emulator/tpps failed: organizationIdentifier: ",
        ),
        (
            [{**ACCOUNTS, "as": {"nationalId": KARI, "context": "CORPORATE"}}],
            "The context CORPORATE is not possible here; possible: PRIVATE",
        ),
        ([{"psu": "approve latest"}], "expected no error, received status 404"),
        ([{"tpp": "GET /v1/accounts", "save": {"a": "accounts[9].resourceId"}}], "no entry [9]"),
        ([{"control": "DELETE banks/default"}], "The default bank stays"),
        ([{"tpp": "GET https://other.example/v1/accounts"}], "The request cannot be sent"),
    ):
        played = stage_play(story(*steps))
        assert [step.outcome for step in played.steps] == ["failed"], message
        assert message in played.steps[0].differences[0], message


def test_without_a_name_the_owner_of_the_account_acts(stage_play: Play) -> None:
    def pay(bban: str) -> dict[str, Any]:
        body = {
            "instructedAmount": {"amount": "1.00", "currency": "NOK"},
            "creditorName": "X",
            "creditorAccount": {"bban": "99921000061", "currency": "NOK"},
            "debtorAccount": {"bban": bban, "currency": "NOK"},
        }
        return {"tpp": "POST /v1/payments/norwegian-domestic-credit-transfers", "json": body, "expect": {"status": 201}}

    def payer(person: str) -> dict[str, Any]:
        expected = {"json": {"payments": [{"nationalId": person}]}}
        return {"control": "GET payments?limit=100", "expect": expected}

    steps = [pay("99901000014"), payer(KARI), pay("99901100019"), payer("03817910172"), pay("99911000012"), ACCOUNTS]
    assert stage_play(story(*steps, payer("21909220006"))).passed


def test_two_tpps_act_for_the_same_person_apart(stage_play: Play) -> None:
    steps = [
        ACCOUNTS,
        {**ACCOUNTS, "as": {"tpp": "other"}},
        {"control": "GET consents", "save": {"consent": "consents[0].consentId", "tpp": "consents[0].tpp"}},
        {"control": "GET consents", "expect": {"json": {"consents": [{"tpp": "${tpp}"}, {"tpp": "PSDNO-SBX-*"}]}}},
        {**ACCOUNTS, "as": {"tpp": "third", "session": False}, "expect": {"status": 401}},
    ]
    assert stage_play(story(*steps, **{"as": {"nationalId": KARI}})).passed


def test_a_rule_knows_a_tpp_by_the_name_that_the_story_gives_it(stage_play: Play) -> None:
    rules = [{"when": {"tpp": "shopx"}, "then": {"answer": {"status": 503}}}]
    shut = {"tpp": "GET /v1/accounts", "expect": {"status": 503}, "as": {"tpp": "shopx"}}
    played = stage_play(story(ACCOUNTS, shut, rules=rules))
    assert played.passed, [step.differences for step in played.steps]


def test_a_customer_who_is_not_known_yet_acts_in_the_context_and_agreement_that_the_story_names(
    stage_play: Play,
) -> None:
    even = "03817910172"
    firms = [{"tpp": "GET /v1/agreements", "save": {"agreement": "agreements[0].psuCorporateId"}}]
    known = stage_play(story(*firms, **{"as": {"nationalId": even, "context": "CORPORATE"}}))
    agreement = known.steps[0].answer.json()["agreements"][0]["psuCorporateId"]
    for acting, redirect in (
        ({"context": "CORPORATE"}, "*context=CORPORATE"),
        ({"context": "PRIVATE"}, "*context=PRIVATE"),
        ({"agreement": agreement}, f"*psu-corporate-id={agreement}*context=CORPORATE"),
    ):
        steps = [
            {"tpp": "GET /v1/accounts", "save": {"link": "_links.scaRedirect.href"}, "expect": {"status": 401}},
            {"psu": "approve ${link}", "expect": {"json": {"redirect": redirect}}},
            ACCOUNTS,
        ]
        played = stage_play(story(*steps, **{"as": {"nationalId": even, "session": False, **acting}}))
        assert played.passed, [step.differences for step in played.steps]


def test_who_acts_may_be_somebody_whom_an_earlier_step_has_made(stage_play: Play) -> None:
    created = {
        "control": "POST generate",
        "json": {"customers": 1, "accountsPerCustomer": 2, "transactionsPerAccount": 1, "seed": 1},
        "save": {"somebody": "customers[0].nationalId", "iban": "customers[0].accounts[1]"},
    }
    acting = {"nationalId": "${somebody}", "accounts": ["${iban}"]}
    shared = {"status": 200, "json": {"accounts": [{"iban": "${iban}"}]}}
    read = {"tpp": "GET /v1/accounts", "as": acting, "expect": shared}
    checked = {"control": "GET consents", "expect": {"json": {"consents": [{"nationalId": "${somebody}"}]}}}
    for each in (story(created, read, checked), story(created, {**read, "as": {}}, checked, **{"as": acting})):
        played = stage_play(each)
        assert played.passed, [step.differences for step in played.steps]


def test_a_customer_may_fail_in_its_own_words(stage_play: Play) -> None:
    steps = [
        {"tpp": "POST /v1/consents", "save": {"link": "_links.scaRedirect.href"}, "as": {"session": False}},
        {
            "psu": "fail ${link}",
            "status": 503,
            "code": "SYSTEM_ERROR",
            "message": "Senere",
            "system": "ident",
            "expect": {"json": {"redirect": "*system=ident&status=503&code=SYSTEM_ERROR&message=Senere"}},
        },
        {"psu": "expire ${link}", "expect": {"status": 409}},
    ]
    assert stage_play(story(*steps, **{"as": {"nationalId": KARI}})).passed


def test_sandbox_data_needs_no_customer(stage_play: Play) -> None:
    customer = {"customerNumber": "12345678", "name": "Nina Ny", "type": "private"}
    steps = [
        {"tpp": "POST /v1/sandbox/customers", "json": customer, "expect": {"status": 201}},
        {"tpp": "GET /v1/sandbox/customers", "expect": {"json": [{"customerName": "Nina Ny"}]}},
        {"tpp": "POST /v1/sandbox/customers", "body": "{", "expect": {"status": 400}},
    ]
    assert stage_play(story(*steps)).passed


def test_a_story_reaches_every_address_of_its_banks(stage_play: Play) -> None:
    played = stage_play(
        {
            "scenario": "addresses",
            "story": [
                {"tpp": "GET /api-sandbox/v1/accounts", "expect": {"status": 200}},
                {"control": "PUT banks/other", "json": {"fixtures": "empty"}},
                {"tpp": "GET /banks/other/v1/sandbox/customers", "expect": {"status": 200, "json": []}},
            ],
        }
    )
    assert [step.differences for step in played.steps] == [[], [], []]
