"""Sandbox data: the known state, customers, agreements and contact information (sandbox-data.md)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from emulator.api.description import examples
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.bank import fixtures
from emulator.bank.customers import people
from emulator.bank.fixtures.definitions import Additions
from emulator.bank.ids import Ids
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CONSENT, CUSTOMER, PERSON, PSU, SESSION, TRANSACTION
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.threads import run_to_end
from emulator.ca import CertificateAuthority
from tests.api.desk import NOW, DeskClient, messages, ok
from tests.known_state import EVEN, KARI, SIRI, TOR

CUSTOMERS = "/v1/sandbox/customers"
AGREEMENTS = "/v1/sandbox/agreements"
BASKETS = "/v1/signing-baskets"
EXAMPLES = examples.bodies(NOW.date())


def by_number(tpp: DeskClient, number: str, query: str = "") -> dict[str, Any]:
    customer: dict[str, Any] = next(c for c in ok(tpp.get(CUSTOMERS + query)) if c["customerNumber"] == number)
    return customer


def test_initialize_reads_no_body_and_needs_no_digest(tpp: DeskClient) -> None:
    answer = tpp.post("/v1/sandbox/initialize", body="whatever", headers={"Content-Type": "text/plain"}, digest=False)
    assert len(ok(answer)["customers"]) == 4


def test_a_customer_is_made_read_replaced_and_removed(tpp: DeskClient) -> None:
    customer = ok(tpp.post(CUSTOMERS, json={"customerNumber": "12345678", "name": "Ny Kunde", "type": "PRIVATE"}), 201)
    path = f"{CUSTOMERS}/{customer['customerId']}"
    assert customer == {
        "customerId": customer["customerId"],
        "customerNumber": "12345678",
        "customerType": "private",
        "customerName": "Ny Kunde",
        "_links": {"self": {"href": path, "verbs": ["GET", "PUT", "DELETE"]}},
    }
    assert list(customer) == ["customerId", "customerNumber", "customerType", "customerName", "_links"]
    assert ok(tpp.get(path)) == customer
    assert ok(tpp.get(CUSTOMERS))[0] == customer
    replaced = ok(tpp.put(path, json={"customerNumber": "87654321", "name": "Nytt Navn", "type": "corporate"}))
    assert replaced == {
        **customer,
        "customerNumber": "87654321",
        "customerType": "corporate",
        "customerName": "Nytt Navn",
    }
    assert ok(tpp.get(path)) == replaced
    ok(tpp.delete(path), 204)
    for answer in (tpp.get(path), tpp.delete(path), tpp.put(path, json={**_body("12345678")})):
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "customerId")])


def _body(number: str) -> dict[str, str]:
    return {"customerNumber": number, "name": "A", "type": "private"}


def test_a_customer_number_is_nobody_elses(tpp: DeskClient) -> None:
    taken = tpp.post(CUSTOMERS, json=_body(KARI))
    assert (taken.status, messages(taken)) == (409, [("CONFLICT", "customerNumber")])
    even = by_number(tpp, EVEN)
    taken = tpp.put(f"{CUSTOMERS}/{even['customerId']}", json=_body(KARI))
    assert (taken.status, messages(taken)) == (409, [("CONFLICT", "customerNumber")])


def test_a_customer_number_has_8_to_11_digits(tpp: DeskClient, service: BankService) -> None:
    for number in ("1234567", "123456789012", "1234567a", "١٢٣٤٥٦٧٨", ""):
        before = service.bank.documents.dump()
        refused = tpp.post(CUSTOMERS, json=_body(number))
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", "customerNumber")]), number
        assert service.bank.documents.dump() == before, number


def test_accounts_and_agreements_come_along_when_asked_for(tpp: DeskClient) -> None:
    plain = by_number(tpp, EVEN)
    assert "accounts" not in plain
    full = by_number(tpp, EVEN, "?includeAccounts=true&includeAgreements=true")
    assert {name: full[name] for name in plain} == plain
    assert [a["iban"] for a in full["accounts"]] == ["NO4299901100019", "NO2099901100027"]
    (agreement,) = full["agreements"]
    assert [e["account"]["iban"] for e in agreement["engagements"]] == ["NO4299901100019", "NO2099901100027"]
    one = ok(tpp.get(f"{CUSTOMERS}/{plain['customerId']}?includeAccounts=true"))
    assert one["accounts"] == full["accounts"]
    assert "agreements" not in one


def test_removing_a_customer_removes_what_hangs_on_it(tpp: DeskClient, service: BankService) -> None:
    documents = service.bank.documents
    kari, even = by_number(tpp, KARI), by_number(tpp, EVEN)
    tpp.log_in(KARI)
    tpp.get(f"/v1/accounts/{documents.find(ACCOUNT, customerId=kari['customerId'])[0]['id']}/balances")
    (firm,) = documents.find(CUSTOMER, customerNumber="310001007")
    (agreement,) = documents.find(AGREEMENT, owner=firm["id"])
    engagement = {"customer": KARI, "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"]}
    ok(tpp.post(f"{AGREEMENTS}/{agreement['id']}/engagements", json=engagement), 201)
    assert KARI in documents.find(AGREEMENT, owner=firm["id"])[0]["persons"]
    accounts = {a["id"] for a in documents.find(ACCOUNT, customerId=kari["customerId"])}

    ok(tpp.delete(f"{CUSTOMERS}/{kari['customerId']}"), 204)

    for kind in (PSU, SESSION, CONSENT):
        assert documents.find(kind, nationalId=KARI) == [], kind
    for kind in (ACCOUNT, CARD, AGREEMENT):
        index = {"owner": kari["customerId"]} if kind is AGREEMENT else {"customerId": kari["customerId"]}
        assert documents.find(kind, **index) == [], kind
    assert [t for t in documents.all(TRANSACTION) if t["accountId"] in accounts] == []
    assert documents.get(PERSON, KARI) is None
    assert documents.find(AGREEMENT, owner=firm["id"]) == [agreement]
    assert ok(tpp.get(f"{CUSTOMERS}/{even['customerId']}")) == even
    refused = tpp.get("/v1/accounts")
    assert (refused.status, refused.json()["tppMessages"][0]["code"]) == (401, "PSU_CREDENTIALS_INVALID")


def test_under_another_number_the_person_is_another(tpp: DeskClient, service: BankService) -> None:
    kari = by_number(tpp, KARI)
    tpp.log_in(KARI)
    ok(tpp.put(f"{CUSTOMERS}/{kari['customerId']}", json={**_body("12345678"), "name": "Kari Ny"}))
    assert service.bank.documents.find(PSU, nationalId=KARI) == []
    assert tpp.get("/v1/accounts").status == 401
    tpp.log_in("12345678")
    assert [a["iban"] for a in ok(tpp.get("/v1/accounts"))["accounts"]] == ["NO8599901000014", "NO6399901000022"]


@pytest.mark.parametrize(("number", "shown"), [("310001104", "310001104"), ("12345678", "")])
def test_an_agreement_names_the_number_that_its_firm_has(tpp: DeskClient, number: str, shown: str) -> None:
    tpp.log_in(SIRI)
    firm = by_number(tpp, "310001007")
    ok(tpp.put(f"{CUSTOMERS}/{firm['customerId']}", json={**_body(number), "type": "corporate"}))
    (agreement,) = ok(tpp.get("/v1/agreements"))["agreements"]
    assert agreement["organisationNumber"] == shown


def test_a_person_who_becomes_a_customer_has_one_name(tpp: DeskClient, service: BankService) -> None:
    customer = ok(tpp.post(CUSTOMERS, json={**_body(SIRI), "name": "Siri Ny"}), 201)
    assert people.names(service.bank)[SIRI] == "Siri Ny"
    ok(tpp.put(f"{CUSTOMERS}/{customer['customerId']}", json={**_body(SIRI), "name": "Siri Nyere"}))
    assert people.names(service.bank)[SIRI] == "Siri Nyere"


def test_the_old_number_acts_under_no_agreement_and_the_new_one_where_the_customer_did(
    tpp: DeskClient, service: BankService
) -> None:
    documents = service.bank.documents
    even, kari = by_number(tpp, EVEN), by_number(tpp, KARI)
    (firm,) = documents.find(CUSTOMER, customerNumber="310001007")
    (agreement,) = documents.find(AGREEMENT, owner=firm["id"])
    engagement = {"customer": KARI, "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"]}
    ok(tpp.post(f"{AGREEMENTS}/{agreement['id']}/engagements", json=engagement), 201)
    own = documents.find(AGREEMENT, owner=even["customerId"])[0]
    ok(tpp.put(f"{CUSTOMERS}/{even['customerId']}", json={**_body("12888512345"), "name": "Even Ny"}))
    ok(tpp.put(f"{CUSTOMERS}/{kari['customerId']}", json={**_body("87654321"), "name": "Kari Ny"}))
    ok(tpp.post(CUSTOMERS, json={**_body(EVEN), "name": "Somebody Else"}), 201)
    assert people.agreements_of(service.bank, EVEN) == []
    assert [a["id"] for a in people.agreements_of(service.bank, "12888512345")] == [own["id"]]
    assert people.agreements_of(service.bank, KARI) == []
    assert [a["id"] for a in people.agreements_of(service.bank, "87654321")] == [agreement["id"]]
    assert (documents.get(AGREEMENT, agreement["id"]) or {})["persons"] == [SIRI, "87654321"]


def test_who_acts_for_a_firm_only_does_so_under_its_own_number(tpp: DeskClient, service: BankService) -> None:
    customer = ok(tpp.post(CUSTOMERS, json=_body(SIRI)), 201)
    ok(tpp.put(f"{CUSTOMERS}/{customer['customerId']}", json=_body("87654321")))
    assert people.agreements_of(service.bank, SIRI) == people.agreements_of(service.bank, "87654321") == []


def test_an_unknown_id_is_told_by_the_name_of_its_parameter_everywhere(tpp: DeskClient) -> None:
    for row in table():
        if row.path.startswith("/v1/sandbox/") and "{" in row.path:
            body = next(iter(EXAMPLES[row.id].values())) if row.body else None
            answer = tpp.request(row.method, re.sub("{.+?}", "x", row.path), json=body)
            name = row.path.partition("{")[2].partition("}")[0]
            assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", name)]), row.id


@pytest.mark.parametrize("limit", ["registerLimit", "approvalLimit"])
def test_a_limit_is_no_finer_than_the_currency(tpp: DeskClient, service: BankService, limit: str) -> None:
    agreement = ok(tpp.get(AGREEMENTS))[0]
    engagement = {"customer": KARI, "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"], limit: "10.00001"}
    before = service.bank.documents.dump()
    refused = tpp.post(f"{AGREEMENTS}/{agreement['agreementId']}/engagements", json=engagement)
    assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", limit)])
    refused = tpp.post(AGREEMENTS, json={"owner": KARI, "name": "A", "engagements": [engagement]})
    assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", f"engagements[0].{limit}")])
    assert service.bank.documents.dump() == before


def test_lists_are_newest_first_and_the_known_state_last_in_its_order(tpp: DeskClient) -> None:
    known = [customer["customerNumber"] for customer in ok(tpp.get(CUSTOMERS))]
    first, second = (ok(tpp.post(CUSTOMERS, json=_body(number)), 201) for number in ("11111111", "22222222"))
    ok(tpp.put(f"{CUSTOMERS}/{first['customerId']}", json={**_body("11111111"), "name": "B"}))
    assert [c["customerNumber"] for c in ok(tpp.get(CUSTOMERS))] == ["22222222", "11111111", *known]
    assert known == [KARI, EVEN, "310001007", "310001031"]
    ibans = [("33333333333", "DE19999999990000123456"), ("44444444444", "DE63999999990000654321")]
    for bban, iban in ibans:
        body = {"customerNumber": second["customerNumber"], "bban": bban, "iban": iban, "currency": "NOK"}
        ok(tpp.post("/v1/sandbox/accounts", json=body), 201)
    newest_first = [iban for _, iban in reversed(ibans)]
    assert [a["iban"] for a in ok(tpp.get("/v1/sandbox/accounts"))][:2] == newest_first
    for name in ("A", "B"):
        ok(tpp.post(AGREEMENTS, json={"owner": "22222222", "name": name}), 201)
    listed = by_number(tpp, "22222222", "?includeAccounts=true&includeAgreements=true")
    assert [a["iban"] for a in listed["accounts"]] == newest_first
    assert [a["name"] for a in listed["agreements"]] == ["B", "A"]
    tpp.log_in("22222222")
    assert [a["iban"] for a in ok(tpp.get("/v1/accounts"))["accounts"]] == newest_first


def test_what_was_generated_or_added_is_newer_than_the_known_state(tpp: DeskClient, service: BankService) -> None:
    known = ok(tpp.get(CUSTOMERS))
    generated = [
        customer["customerNumber"]
        for customer in run_to_end(
            generate_in_pieces(
                service.bank, DataPlan(customers=2, accountsPerCustomer=1, transactionsPerAccount=0, seed=1)
            )
        )["customers"]
    ]
    account = {"customerNumber": "12345678", "accountName": "A", "bban": "99901000030"}
    customer = {"customerNumber": "12345678", "name": "A", "type": "private"}
    further = {"customers": [customer], "accounts": [account], "agreements": [{"owner": "12345678", "name": "A"}]}
    fixtures.add(service.bank, Additions.model_validate(further))
    listed = ok(tpp.get(CUSTOMERS))
    assert [c["customerNumber"] for c in listed[:3]] == ["12345678", *reversed(generated)]
    assert listed[3:] == known
    assert ok(tpp.get("/v1/sandbox/accounts"))[0]["bban"] == "99901000030"
    assert ok(tpp.get(AGREEMENTS))[0]["owner"] == "12345678"


def test_a_private_owners_account_that_is_engaged_is_paid_from_as_its_engagement_says(
    tpp: DeskClient, service: BankService
) -> None:
    (own,) = people.agreements_of(service.bank, EVEN)
    path = f"{AGREEMENTS}/{own['id']}/engagements"
    viewed = {"customer": EVEN, "account": {"iban": "NO4299901100019"}, "roles": ["VIEW"]}
    engagement = ok(tpp.post(path, json=viewed), 201)
    roles = {e["account"]["iban"]: e["roles"] for e in ok(tpp.get(path))}
    assert roles == {"NO4299901100019": ["VIEW"], "NO2099901100027": ["VIEW", "REGISTER"]}

    def may_pay(bban: str) -> bool:
        (account,) = service.bank.documents.find(ACCOUNT, bban=bban)
        return people.may_pay_from(service.bank, EVEN, people.CORPORATE, own["id"], account)

    assert (may_pay("99901100019"), may_pay("99901100027")) == (False, True)
    ok(tpp.delete(f"{path}/{engagement['engagementId']}"), 204)
    assert may_pay("99901100019")


def test_a_private_owners_accounts_keep_their_engagements_whatever_form_new_ids_have(
    tpp: DeskClient, service: BankService
) -> None:
    (own,) = people.agreements_of(service.bank, EVEN)
    path = f"{AGREEMENTS}/{own['id']}/engagements"
    listed = ok(tpp.get(path))
    service.bank.ids = Ids(service.bank.documents, form="opaque")  # as after a restart with --ids opaque
    assert ok(tpp.get(path)) == listed
    assert [ok(tpp.get(f"{path}/{engagement['engagementId']}")) for engagement in listed] == listed


def test_a_guest_under_a_private_owners_agreement_does_what_its_engagement_says(
    tpp: DeskClient, service: BankService
) -> None:
    (own,) = people.agreements_of(service.bank, EVEN)
    viewed = {"customer": KARI, "account": {"iban": "NO4299901100019"}, "roles": ["VIEW"]}
    ok(tpp.post(f"{AGREEMENTS}/{own['id']}/engagements", json=viewed), 201)
    seen = people.accounts_of(service.bank, KARI, people.CORPORATE, own["id"])
    assert [account["iban"] for account in seen] == ["NO4299901100019"]
    assert not people.may_pay_from(service.bank, KARI, people.CORPORATE, own["id"], seen[0])
    assert people.may_pay_from(service.bank, EVEN, people.CORPORATE, own["id"], seen[0])


@pytest.mark.parametrize("further", [[], [["VIEW"]]])
def test_a_guest_whose_account_is_removed_gets_no_other_of_the_owner(
    tpp: DeskClient, service: BankService, further: list[list[str]]
) -> None:
    (own,) = people.agreements_of(service.bank, EVEN)
    path = f"{AGREEMENTS}/{own['id']}/engagements"
    account = {"customerNumber": EVEN, "bban": "99901000030", "iban": "NO4199901000030", "currency": "NOK"}
    lent = ok(tpp.post("/v1/sandbox/accounts", json=account), 201)
    ok(tpp.post(path, json={"customer": KARI, "account": {"iban": lent["iban"]}, "roles": ["VIEW"]}), 201)
    for roles in further:
        ok(tpp.post(path, json={"customer": KARI, "account": {"iban": "NO4299901100019"}, "roles": roles}), 201)
    ok(tpp.delete(f"/v1/sandbox/accounts/{lent['id']}"), 204)
    seen = people.accounts_of(service.bank, KARI, people.CORPORATE, own["id"])
    assert [account["iban"] for account in seen] == ["NO4299901100019"] * len(further)
    assert [agreement["id"] for agreement in people.agreements_of(service.bank, KARI)] == [own["id"]] * len(further)


def test_an_engagement_takes_nothing_along_that_was_there_before_it(tpp: DeskClient, service: BankService) -> None:
    (agreement,) = people.agreements_of(service.bank, SIRI)
    path = f"{AGREEMENTS}/{agreement['id']}/engagements"
    ok(tpp.post(CUSTOMERS, json=_body(SIRI)), 201)
    account = {"iban": "NO2799911000012"}
    added = ok(tpp.post(path, json={"customer": SIRI, "account": account, "roles": ["VIEW"]}), 201)
    ok(tpp.delete(f"{path}/{added['engagementId']}"), 204)
    assert [a["id"] for a in people.agreements_of(service.bank, SIRI)] == [agreement["id"]]
    admitted = [
        ok(tpp.post(path, json={"customer": KARI, "account": account, "roles": [role]}), 201)
        for role in ("VIEW", "REGISTER")
    ]
    for engagement, left in zip(admitted, (1, 0), strict=True):
        ok(tpp.delete(f"{path}/{engagement['engagementId']}"), 204)
        assert len(people.agreements_of(service.bank, KARI)) == left


def test_an_agreement_is_made_read_and_removed(tpp: DeskClient) -> None:
    body = {
        "owner": "310001031",
        "name": "Regnskapsfører",
        "engagements": [
            {
                "customer": KARI,
                "account": {"iban": "NO8199911100017"},
                "roles": ["VIEW", "REGISTER"],
                "registerLimit": 1000,
                "approvalLimit": "2500.50",
            }
        ],
    }
    agreement = ok(tpp.post(AGREEMENTS, json=body), 201)
    path = f"{AGREEMENTS}/{agreement['agreementId']}"
    (engagement,) = agreement["engagements"]
    assert agreement == {
        "agreementId": agreement["agreementId"],
        **body,
        "engagements": [
            {
                "engagementId": engagement["engagementId"],
                **body["engagements"][0],
                "_links": {
                    "self": {"href": f"{path}/engagements/{engagement['engagementId']}", "verbs": ["GET", "DELETE"]}
                },
            }
        ],
        "_links": {
            "self": {"href": path, "verbs": ["GET", "DELETE"]},
            "engagements": {"href": f"{path}/engagements", "verbs": ["GET", "POST"]},
        },
    }
    assert ok(tpp.get(path)) == agreement
    assert ok(tpp.get(AGREEMENTS))[0] == agreement
    assert ok(tpp.get(f"{path}/engagements")) == [engagement]
    assert ok(tpp.get(f"{path}/engagements/{engagement['engagementId']}")) == engagement

    client = tpp.log_in(KARI, context="CORPORATE")
    assert client.psu_corporate_id == agreement["agreementId"]
    assert [a["iban"] for a in ok(client.get("/v1/accounts"))["accounts"]] == ["NO8199911100017"]

    ok(tpp.delete(f"{path}/engagements/{engagement['engagementId']}"), 204)
    assert ok(tpp.get(path))["engagements"] == []
    ok(tpp.delete(path), 204)
    for answer in (tpp.get(path), tpp.delete(path), tpp.get(f"{path}/engagements")):
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "agreementId")])


def test_one_signature_or_two_are_needed(tpp: DeskClient) -> None:
    for signatures in (0, 3, True, "2", 1.5, None):
        refused = tpp.post(AGREEMENTS, json={"owner": "310001031", "name": "A", "signatures": signatures})
        assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", "signatures")]), signatures


def test_a_firm_whose_number_stands_for_a_person_is_listed_among_the_people(
    tpp: DeskClient, service: BankService
) -> None:
    for number in ("310001104", "310001112"):
        ok(tpp.post(CUSTOMERS, json={**_body(number), "type": "corporate"}), 201)
    created = ok(tpp.post(AGREEMENTS, json={"owner": "310001112", "name": "Nettbank"}), 201)
    listed = people.listing(service.bank, 100)
    assert {person["nationalId"] for person in listed} == {KARI, EVEN, SIRI, TOR, "310001112"}
    assert [agreement["psuCorporateId"] for agreement in listed[0]["agreements"]] == [created["agreementId"]]
    tpp.log_in("310001112")
    assert tpp.psu_corporate_id == created["agreementId"]


def test_what_an_agreement_names_must_be_there(tpp: DeskClient, service: BankService) -> None:
    before = service.bank.documents.dump()
    engagement = {"customer": KARI, "account": {"iban": "NO8199911100017"}, "roles": ["VIEW"]}
    for change, path in (
        ({"owner": "99999999"}, "owner"),
        ({"engagements": [engagement, {**engagement, "customer": "99999999"}]}, "engagements[1].customer"),
        ({"engagements": [{**engagement, "account": {"iban": "NO8199911100018"}}]}, "engagements[0].account.iban"),
    ):
        refused = tpp.post(AGREEMENTS, json={"owner": "310001031", "name": "A", "engagements": [engagement]} | change)
        assert (refused.status, messages(refused)) == (400, [("RESOURCE_UNKNOWN", path)])
    assert service.bank.documents.dump() == before


def test_a_private_customers_accounts_join_its_own_agreement_by_themselves(tpp: DeskClient) -> None:
    agreement = ok(tpp.post(AGREEMENTS, json={"owner": KARI, "name": "Enkeltpersonforetak"}), 201)
    path = f"{AGREEMENTS}/{agreement['agreementId']}/engagements"
    assert [e["account"]["iban"] for e in agreement["engagements"]] == ["NO8599901000014", "NO6399901000022"]
    account = {"customerNumber": KARI, "bban": "99901000030", "iban": "NO4199901000030", "currency": "NOK"}
    ok(tpp.post("/v1/sandbox/accounts", json=account), 201)
    engagements = ok(tpp.get(path))
    assert [e["account"]["iban"] for e in engagements][2:] == ["NO4199901000030"]
    address = f"{path}/{engagements[2]['engagementId']}"
    assert engagements[2]["_links"] == {"self": {"href": address, "verbs": ["GET"]}}
    refused = tpp.delete(address)
    assert (refused.status, messages(refused)) == (409, [("CONFLICT", None)])
    client = tpp.log_in(KARI, context="CORPORATE")
    assert len(ok(client.get("/v1/accounts"))["accounts"]) == 3


def test_an_own_account_that_is_engaged_by_name_stands_there_once(tpp: DeskClient) -> None:
    engagement = {"customer": KARI, "account": {"iban": "NO8599901000014"}, "roles": ["VIEW"]}
    agreement = ok(tpp.post(AGREEMENTS, json={"owner": KARI, "name": "A", "engagements": [engagement]}), 201)
    shown = [(e["account"]["iban"], e["roles"]) for e in agreement["engagements"]]
    assert shown == [("NO8599901000014", ["VIEW"]), ("NO6399901000022", ["VIEW", "REGISTER"])]


def test_with_its_last_engagement_a_person_leaves_an_agreement(tpp: DeskClient, service: BankService) -> None:
    engagement = {"customer": KARI, "account": {"iban": "NO8199911100017"}, "roles": ["VIEW"]}
    agreement = ok(tpp.post(AGREEMENTS, json={"owner": "310001031", "name": "A", "engagements": [engagement] * 2}), 201)
    path = f"{AGREEMENTS}/{agreement['agreementId']}"
    for left, entry in ((True, agreement["engagements"][0]), (False, agreement["engagements"][1])):
        ok(tpp.delete(f"{path}/engagements/{entry['engagementId']}"), 204)
        stored = service.bank.documents.get(AGREEMENT, agreement["agreementId"])
        assert stored is not None
        assert stored["persons"] == ([KARI] if left else [])


def test_contact_information_is_the_tpps_own(
    tpp: DeskClient, service: BankService, authority: CertificateAuthority
) -> None:
    path = f"/v1/tpps/{quote(tpp.tpp_id, safe='')}/contact-information"
    missing = tpp.get(path)
    assert (missing.status, messages(missing)) == (404, [("RESOURCE_UNKNOWN", None)])
    assert ok(tpp.put(path, json={"email": "drift@tpp.example"})) == {"email": "drift@tpp.example"}
    assert ok(tpp.put(path, json={"email": "ops@tpp.example"})) == {"email": "ops@tpp.example"}
    assert ok(tpp.get(path)) == {"email": "ops@tpp.example"}
    other = DeskClient(service, authority, name="other")
    for answer in (other.get(path), other.put(path, json={"email": "x@tpp.example"})):
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", None)])
    refused = tpp.put(path, json={"email": "nowhere"})
    assert (refused.status, messages(refused)) == (400, [("FORMAT_ERROR", "email")])
    ok(tpp.post("/v1/sandbox/initialize"))
    assert ok(tpp.get(path)) == {"email": "ops@tpp.example"}
