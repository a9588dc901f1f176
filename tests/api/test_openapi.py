"""The OpenAPI document: valid, and whole (operations.md)."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from emulator.api import shapes
from emulator.api.description import examples
from emulator.api.description.openapi import REFUSALS, document, published, respond
from emulator.api.headers import FORMATS, MATRIX
from emulator.api.messages import Request
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.bank import products
from emulator.bank.errors import BankError
from emulator.ca import CertificateAuthority
from emulator.control.operations import document as control_document
from tests.api.desk import BASE, DeskClient, messages
from tests.api.shapes import check_document, fault
from tests.docs.answers import ANSWERS, recorded, written

SIGNATURE = ("Date", "Digest", "TPP-Signature-Certificate", "Signature")


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document()


def test_every_answer_and_body_has_a_schema_of_its_own(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    for row in table():
        shown = described["paths"][row.path][row.method.lower()]
        for status, shape in row.answers.items():
            if shape is None:
                assert "content" not in shown["responses"][str(status)]
            else:
                reference = shown["responses"][str(status)]["content"]["application/json"]["schema"]["$ref"]
                assert reference.rpartition("/")[2] in schemas
        assert shown["responses"].keys() == {*map(str, row.answers), *REFUSALS, "default"}
        assert ("requestBody" in shown) is (row.body is not None)


def test_the_lengths_are_published_wherever_a_text_has_one(described: dict[str, Any]) -> None:
    """As consents.md#all-limits says, and for what only answers have."""
    longest = dict.fromkeys(("creditorName", "debtorName", "ultimateDebtor", "ultimateCreditor", "street"), 70)
    longest |= dict.fromkeys(("reference", "referenceType", "referenceIssuer", "endToEndIdentification"), 35)
    longest |= {"bban": 30, "iban": 34, "remittanceInformationUnstructured": 140, "text": 512, "psuMessage": 512}
    longest |= {"bankTransactionCode": 14, "purposeCode": 4, "endToEndId": 35, "proprietaryBankTransactionCode": 35}
    lengths: dict[str, set[int]] = {}
    for schema in described["components"]["schemas"].values():
        for name, member in schema.get("properties", {}).items():
            if "maxLength" in member:
                lengths.setdefault(name, set()).add(member["maxLength"])
    assert {name: lengths[name] for name in longest} == {name: {most} for name, most in longest.items()}


def test_a_header_is_required_exactly_where_the_bank_demands_it(
    described: dict[str, Any], service: BankService, authority: CertificateAuthority
) -> None:
    tpp = DeskClient(service, authority)
    marked = {name for name, marks in MATRIX.items() if "R" in marks.values()} | {"Date"}
    for row in table():
        shown = [_resolved(described, one) for one in described["paths"][row.path][row.method.lower()]["parameters"]]
        listed = {one["name"]: one for one in shown if one["in"] == "header"}
        sent = {name: one["example"] for name, one in listed.items() if name not in SIGNATURE}
        path = re.sub("{([^}]+)}", lambda match: examples.PATH.get(match[1], "x"), row.path)
        body = b"{}" if row.body else b""
        for name in marked:
            answer = tpp.request(row.method, path, headers={**sent, name: None}, body=body, digest="Digest" in listed)
            missed = ("HTTP_HEADER_REQUIRED", name) in messages(answer) if answer.status == 400 else False
            assert missed == (name in listed and listed[name]["required"]), (row.id, name)


def _resolved(described: dict[str, Any], parameter: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in parameter:
        return parameter
    declared: dict[str, Any] = described["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
    return declared


def test_generators_find_each_schema_once_under_a_name_of_its_own(described: dict[str, Any]) -> None:
    """They name a class by the schema's key or its title: no module's path, no other name for the same schema."""
    for name, schema in described["components"]["schemas"].items():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", name)
        assert schema.get("title", name) == name
        assert "$ref" not in schema


def test_the_control_interface_has_each_schema_once_under_a_name_without_a_module() -> None:
    for name, schema in control_document(BASE)["components"]["schemas"].items():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", name)
        assert "$ref" not in schema


def test_the_control_interface_describes_each_object_that_its_operations_share() -> None:
    """The description is the docstring of the type, so that it must stay even where it says little to a programmer."""
    named = {name: one for name, one in control_document(BASE)["components"]["schemas"].items() if "title" in one}
    assert [name for name, one in named.items() if "description" not in one] == ["Then"]  # of the scenario language


def test_no_two_shapes_have_the_same_name() -> None:
    """The later one would stand in the document for both."""
    text = "".join(file.read_text() for file in Path(shapes.__path__[0]).glob("*.py"))
    names = re.findall(r"^(?:class )?(\w+)(?=\(\w+\):| = .*\blist\[)", text, re.MULTILINE)
    assert len(names) > 80
    assert sorted(names) == sorted(set(names))


def test_the_examples_of_answers_are_what_the_bank_answers() -> None:
    assert ANSWERS.read_text() == written(recorded()), "python -m tests.docs.answers records them again"


def test_every_answer_with_a_body_has_an_example_that_fits_its_shape(described: dict[str, Any]) -> None:
    for row in table():
        responses = described["paths"][row.path][row.method.lower()]["responses"]
        for status, declared in row.answers.items():
            if declared is None:
                continue
            shown = responses[str(status)]["content"]["application/json"].get("examples")
            assert shown, (row.id, status)
            assert [fault(row, status, example["value"]) for example in shown.values()] == [None] * len(shown)


def test_every_kind_of_refusal_has_an_example(described: dict[str, Any]) -> None:
    for status, refusal in described["components"]["responses"].items():
        shown = refusal["content"]["application/json"]["examples"].values()
        assert all(example["value"]["tppMessages"][0]["category"] == "ERROR" for example in shown), status


@pytest.fixture(scope="module")
def for_generators() -> dict[str, Any]:
    return published()


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [method for path in document["paths"].values() for method in path.values()]


@pytest.mark.parametrize("signed", ["by-client", "by-proxy"])
def test_the_published_document_is_valid_and_names_each_operation_once(signed: str) -> None:
    shown = published(signed=signed)
    if signed == "by-client":  # the other says less: no headers of signatures
        check_document(shown)
    ids = [operation["operationId"] for operation in operations(shown)]
    assert len(ids) == len(set(ids))
    assert {operation.get("x-operation", operation["operationId"]) for operation in operations(shown)} == {
        row.id for row in table()
    }
    assert all(operation.get("requestBody", {"required": True})["required"] for operation in operations(shown))
    assert "license" not in shown["info"]


@pytest.mark.long
def test_the_validator_of_openapi_takes_all_documents() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    for shown in (document(), published(), published(signed="by-proxy"), control_document(BASE)):
        OpenAPIV31SpecValidator(shown).validate()


def test_each_payment_product_has_a_path_and_a_body_of_its_own(for_generators: dict[str, Any]) -> None:
    for (service, name), product in products.table().items():
        creation = for_generators["paths"][f"/v1/{service}/{name}"]["post"]
        [body] = creation["requestBody"]["content"].values()
        assert body["schema"] == {"$ref": f"#/components/schemas/{product.body}"}
        assert len(body["examples"]) == 1
        assert not [one for one in creation["parameters"] if one.get("in") == "path"]


def test_what_is_created_links_to_the_operations_on_it(for_generators: dict[str, Any]) -> None:
    ids = {operation["operationId"] for operation in operations(for_generators)}
    links = for_generators["paths"]["/v1/payments/sepa-credit-transfers"]["post"]["responses"]["201"]["links"]
    assert "getPaymentStatusSepaCreditTransfers" in links
    assert not [name for name in links if not name.endswith("SepaCreditTransfers")]
    for operation in operations(for_generators):
        for name, link in operation["responses"].get("201", {}).get("links", {}).items():
            assert link["operationId"] == name
            assert name in ids
    account = for_generators["paths"]["/v1/sandbox/accounts"]["post"]["responses"]["201"]["links"]
    assert account["getSandboxAccount"]["parameters"] == {"mockAccountId": "$response.body#/id"}


def test_the_parameters_of_a_link_stand_in_the_order_of_its_path(described: dict[str, Any]) -> None:
    """The same document in every process: sets of strings have another order in each."""
    path = "/v1/{payment-service}/{payment-product}/{paymentId}/authorisations"
    links = described["paths"][path]["post"]["responses"]["201"]["links"]
    for one in ("getAuthorisation", "getCancellationAuthorisation"):
        named = list(links[one]["parameters"])
        assert named == ["authorisationId", "payment-service", "payment-product", "paymentId"]


def test_every_header_that_is_checked_has_a_format(for_generators: dict[str, Any]) -> None:
    free = {"PSU-User-Agent", "TPP-Brand-Logging-Information", "x-accept-fix"}
    free |= {name for name in MATRIX if "Accept" in name}
    for operation in operations(for_generators):
        for parameter in map(partial(_resolved, for_generators), operation["parameters"]):
            if parameter["in"] == "header" and parameter["name"] not in free | {
                name for name in MATRIX if "Accept" in name
            }:
                assert parameter["schema"].keys() & {"pattern", "format", "enum", "minLength"}, parameter["name"]


def test_the_formats_of_headers_are_what_the_bank_checks() -> None:
    for name, form in FORMATS.items():
        _, example = examples.HEADERS[name]
        assert form.check(example) is None
        Draft202012Validator(dict(form.schema)).validate(example)


def test_the_signature_is_a_security_scheme_and_none_where_a_proxy_signs(for_generators: dict[str, Any]) -> None:
    def listed(document: dict[str, Any]) -> set[str]:
        shown = [_resolved(document, one) for operation in operations(document) for one in operation["parameters"]]
        return {one["name"] for one in shown if one["in"] == "header"}

    schemes = {scheme["name"] for scheme in for_generators["components"]["securitySchemes"].values()}
    assert schemes == {"Signature", "TPP-Signature-Certificate"}
    assert {"Date", "Digest"} <= listed(for_generators)
    assert not schemes & listed(for_generators)
    by_proxy = published(signed="by-proxy")
    assert not {*schemes, "Date", "Digest"} & listed(by_proxy)
    assert by_proxy["security"] == []
    assert not [
        one for operation in operations(by_proxy) for one in operation["parameters"] if one.get("in") == "header"
    ]


def test_the_document_is_served_in_both_forms_and_another_is_refused() -> None:
    plain, by_proxy = (
        json.loads(respond(Request("GET", f"/openapi.json{query}", base="http://127.0.0.1:1")).body)
        for query in ("", "?signed=by-proxy")
    )
    assert plain["servers"] == by_proxy["servers"] == [{"url": "http://127.0.0.1:1"}]
    assert "securitySchemes" in plain["components"]
    assert "securitySchemes" not in by_proxy["components"]
    with pytest.raises(BankError, match="signed"):
        respond(Request("GET", "/openapi.json?signed=by-magic"))
