"""The OpenAPI document: valid, and whole (CONTRACT 2)."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_spec_validator import validate

from emulator.api.headers import MATRIX
from emulator.api.openapi import document
from emulator.api.operations import table


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
        assert ("requestBody" in shown) is (row.body is not None)


def test_a_header_is_required_exactly_where_every_product_demands_it(described: dict[str, Any]) -> None:
    straks = described["paths"]["/v1/{payment-service}/{payment-product}"]["post"]["parameters"]
    required = {parameter["name"] for parameter in straks if parameter.get("required") and parameter["in"] == "header"}
    assert required == {
        name for name, marks in MATRIX.items() if {marks["instant-post"], marks["transfer-post"]} == {"R"}
    }


def test_names_in_two_modules_do_not_hide_each_other(described: dict[str, Any]) -> None:
    listed = described["components"]["schemas"]["Transactions"]
    posted = described["components"]["schemas"]["TransactionsRequest"]
    assert "transactions" in listed["properties"]
    assert listed != posted
