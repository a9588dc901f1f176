"""The collection for REST clients: its form, and that the bank knows every request of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emulator.api import collection
from emulator.api.openapi import document
from emulator.api.operations import table
from emulator.cli.main import group, run
from tests.api.desk import DeskClient

KARI = "14888520059"
BASE = "http://127.0.0.1:9090"
METHODS = {"GET", "POST", "PUT", "DELETE"}


def requests(shown: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for folder in shown["item"] for item in folder["item"]]


def target(request: dict[str, Any]) -> str:
    """The path that Postman would send: `raw` with its variables put in, switched-off query parameters left out."""
    path = request["url"]["raw"].removeprefix("{{baseUrl}}")
    values = {f":{variable['key']}": variable["value"] for variable in request["url"]["variable"]}
    return "/".join(values.get(step, step) for step in path.split("/"))


def test_the_collection_has_the_form_of_postman_2_1() -> None:
    shown = collection.postman(BASE)
    assert set(shown) == {"info", "item", "variable"}
    assert shown["info"]["schema"] == "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    assert shown["variable"] == [{"key": "baseUrl", "value": BASE, "type": "string"}]
    for item in requests(shown):
        request = item["request"]
        url = request["url"]
        assert request["method"] in METHODS
        assert url["raw"] == "/".join([*url["host"], *url["path"]])
        assert [entry["key"] for entry in url["variable"]] == [s[1:] for s in url["path"] if s.startswith(":")]
        assert all(entry["value"] and isinstance(entry["value"], str) for entry in url["variable"])
        assert all(entry["disabled"] for entry in url["query"])
        if "body" in request:
            assert request["body"]["mode"] == "raw"
            json.loads(request["body"]["raw"])
            assert {"key": "Content-Type", "value": "application/json"} in request["header"]


def test_every_operation_stands_in_the_collection_under_its_tag() -> None:
    paths = document()["paths"]
    expected = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert {(entry.method, entry.path) for entry in collection.entries()} == expected
    assert [folder["name"] for folder in collection.postman(BASE)["item"]] == list(
        dict.fromkeys(row.tag for row in table())
    )


def test_names_are_told_apart_within_a_folder() -> None:
    for folder in collection.postman(BASE)["item"]:
        names = [item["name"] for item in folder["item"]]
        assert len(names) == len(set(names))


def test_the_bank_knows_every_request_of_the_collection(tpp: DeskClient) -> None:
    for item in requests(collection.postman(BASE)):
        request = item["request"]
        tpp.log_in(KARI)  # an earlier request may have brought the known state back
        body = request.get("body", {}).get("raw")
        answer = tpp.request(request["method"], target(request), body=body)
        codes = {message["code"] for message in (answer.json().get("tppMessages", []) if answer.status >= 400 else [])}
        assert answer.status not in (405, 415, 500), (item["name"], answer.text)
        assert not codes & {"NOT_FOUND", "PRODUCT_UNKNOWN", "HTTP_HEADER_REQUIRED", "FORMAT_ERROR"}, answer.text


def test_bruno_has_a_file_for_every_request() -> None:
    files = collection.bruno(BASE)
    assert len([name for name in files if name.endswith(".bru")]) == len(collection.entries()) + 1
    assert files["environments/proxy.bru"] == f"vars {{\n  baseUrl: {BASE}\n}}\n"
    sepa = files["Payments/Initiate a payment (sepa-credit-transfers).bru"]
    assert sepa.startswith("meta {\n  name: Initiate a payment (sepa-credit-transfers)\n  type: http\n  seq: ")
    assert "\npost {\n  url: {{baseUrl}}/v1/:payment-service/:payment-product\n  body: json\n  auth: none\n}\n" in sepa
    assert "\nparams:path {\n  payment-service: payments\n  payment-product: sepa-credit-transfers\n}\n" in sepa
    for text in files.values():
        assert text.count("{") == text.count("}")


def test_the_command_prints_postman_and_writes_bruno(tmp_path: Path) -> None:
    runner = CliRunner()
    printed = runner.invoke(group, ["collection", "--proxy", "http://127.0.0.1:7000/"])
    assert json.loads(printed.stdout) == collection.postman("http://127.0.0.1:7000")
    folder = tmp_path / "made"
    assert run(["collection", "--format", "bruno", "--directory", str(folder)]) == 0
    written = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert written == collection.bruno(BASE)


@pytest.mark.parametrize(
    "options, told",
    [
        (["--format", "bruno"], "--directory"),
        (["--directory", "x"], "--format bruno"),
    ],
)
def test_options_that_do_not_fit_are_wrong_use(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["collection", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert run(["collection", "--format", "bruno", "--directory", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
