"""The OpenAPI document: valid, and whole (CONTRACT 2)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from emulator.api import examples, shapes
from emulator.api.headers import MATRIX
from emulator.api.openapi import REFUSALS, document
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.ca import CertificateAuthority
from tests.api.desk import DeskClient, messages
from tests.api.test_answer_shapes import fault
from tests.docs.answers import ANSWERS, recorded, written

SIGNATURE = ("Date", "Digest", "TPP-Signature-Certificate", "Signature")


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document()


def test_the_document_is_valid(described: dict[str, Any]) -> None:
    validate(described)


def test_every_operation_stands_in_it_once(described: dict[str, Any]) -> None:
    found = [method["operationId"] for path in described["paths"].values() for method in path.values()]
    assert sorted(found) == sorted(row.id for row in table())


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


def test_the_lengths_of_the_specification_are_published_wherever_a_text_has_one(described: dict[str, Any]) -> None:
    """SPEC 8, and 2.8 and 2.9 for what only answers hold."""
    longest = dict.fromkeys(("creditorName", "debtorName", "ultimateDebtor", "ultimateCreditor", "street"), 70)
    longest |= dict.fromkeys(("reference", "referenceType", "referenceIssuer", "endToEndIdentification"), 35)
    longest |= {"bban": 30, "iban": 34, "remittanceInformationUnstructured": 140, "text": 512, "psuMessage": 512}
    longest |= {"bankTransactionCode": 14, "purposeCode": 4, "endToEndId": 35, "proprietaryBankTransactionCode": 35}
    found: dict[str, set[int]] = {}
    for schema in described["components"]["schemas"].values():
        for name, member in schema.get("properties", {}).items():
            if "maxLength" in member:
                found.setdefault(name, set()).add(member["maxLength"])
    assert {name: found[name] for name in longest} == {name: {most} for name, most in longest.items()}


def test_a_header_is_required_exactly_where_the_bank_demands_it(
    described: dict[str, Any], service: BankService, authority: CertificateAuthority
) -> None:
    tpp = DeskClient(service, authority)
    marked = {name for name, marks in MATRIX.items() if "R" in marks.values()} | {"Date"}
    for row in table():
        shown = [_resolved(described, one) for one in described["paths"][row.path][row.method.lower()]["parameters"]]
        listed = {one["name"]: one for one in shown if one["in"] == "header"}
        sent = {name: one["example"] for name, one in listed.items() if name not in SIGNATURE}
        path = re.sub("{([^}]+)}", lambda found: examples.PATH.get(found[1], "x"), row.path)
        body = b"{}" if row.body else b""
        for name in marked:
            answer = tpp.request(row.method, path, headers={**sent, name: None}, body=body, digest="Digest" in listed)
            missed = ("HTTP_HEADER_REQUIRED", name) in messages(answer) if answer.status == 400 else False
            assert missed == (name in listed and listed[name]["required"]), (row.id, name)


def _resolved(described: dict[str, Any], parameter: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in parameter:
        return parameter
    found: dict[str, Any] = described["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
    return found


def test_generators_find_each_schema_once_under_a_name_of_its_own(described: dict[str, Any]) -> None:
    """They name a class by the schema's key or its title: no module's path, no other name for the same schema."""
    for name, schema in described["components"]["schemas"].items():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", name)
        assert schema.get("title", name) == name
        assert "$ref" not in schema


def test_no_two_shapes_have_the_same_name() -> None:
    """The later one would stand in the document for both."""
    text = "".join(file.read_text() for file in Path(shapes.__path__[0]).glob("*.py"))
    found = re.findall(r"^(?:class )?(\w+)(?=\(\w+\):| = .*\blist\[)", text, re.MULTILINE)
    assert len(found) > 80
    assert sorted(found) == sorted(set(found))


def test_the_examples_of_answers_are_what_the_bank_answers() -> None:
    assert ANSWERS.read_text() == written(recorded()), "python -m tests.docs.answers asks for them anew"


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
