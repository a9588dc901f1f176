"""The collection for REST clients: its form, and that every request of it is green on a new bank."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emulator.api.description import collection
from emulator.api.operations import table
from emulator.cli.main import group, run
from emulator.testing import RunningBank

BASE = "http://127.0.0.1:9090"
METHODS = {"GET", "POST", "PUT", "DELETE"}


def requests(shown: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for folder in shown["item"] for item in folder["item"]]


def test_the_collection_has_the_form_of_postman_2_1() -> None:
    shown = collection.postman(BASE)
    assert set(shown) == {"info", "item", "variable"}
    assert shown["info"]["schema"] == "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    assert {"key": "baseUrl", "value": BASE, "type": "string"} in shown["variable"]
    for item in requests(shown):
        request = item["request"]
        url = request["url"]
        assert request["method"] in METHODS
        assert url["raw"] == "/".join([*url["host"], *url.get("path", [])])
        assert all(entry["disabled"] for entry in url.get("query", []))
        assert "pm.response.code" in item["event"][0]["script"]["exec"][0]
        if "body" in request:
            assert request["body"]["mode"] == "raw"
            json.loads(request["body"]["raw"])
            assert {"key": "Content-Type", "value": "application/json"} in request["header"]


def test_every_operation_has_its_place_and_initialize_is_the_last() -> None:
    named = [entry.about.partition(".")[0] for entry in collection.requests()]
    assert {row.id for row in table()} <= set(named)
    assert named[-1] == "initializeSandbox"
    assert len(named) == len({(entry.folder, entry.name) for entry in collection.requests()})


def filled(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda name: variables[name[1]], text)


def saved(body: Any, place: str) -> str:
    """What a place such as `accounts[0].resourceId` names in a body, its JavaScript read as far as it goes here."""
    place, split, _ = place.partition('.split("/").pop()')
    for step in re.findall(r"\w+", place):
        body = body[int(step)] if step.isdigit() else body[step]
    return str(body).rpartition("/")[2] if split else str(body)


def test_every_request_is_green_on_a_new_bank_when_run_from_top_to_bottom(bank: RunningBank) -> None:
    tpp = bank.tpp(name="demo")
    day = (datetime.now(UTC) + timedelta(days=7)).date().isoformat()
    variables = {"tppId": tpp.tpp_id, "executionDate": day, "controlToken": "none"}
    red = []
    for entry in collection.requests():
        path = filled(entry.path, variables)
        if entry.path == "{{redirect}}":
            tpp.remember(path)
            continue
        body = None if entry.body is None else filled(entry.body, variables)
        answer = tpp.request(entry.method, path, body=body, headers=dict(entry.headers))
        if answer.status not in entry.statuses:
            red.append((entry.name, answer.status, answer.text[:300]))
            continue
        variables |= {name: saved(answer.json(), place) for name, place in entry.saves.items()}
    assert red == []


def test_bruno_has_a_file_for_every_request() -> None:
    files = collection.bruno(BASE)
    shown = [text for name, text in files.items() if name.endswith(".bru") and text.startswith("meta {\n  name: ")]
    assert len([text for text in shown if "type: http" in text]) == len(collection.requests())
    assert f"  baseUrl: {BASE}\n" in files["environments/proxy.bru"]
    [sepa] = [text for name, text in files.items() if name.endswith("Initiate a payment (sepa-credit-transfers).bru")]
    assert "\npost {\n  url: {{baseUrl}}/v1/payments/sepa-credit-transfers\n  body: json\n  auth: none\n}\n" in sepa
    assert "\nvars:post-response {\n  paymentId: res.body.paymentId\n}\n" in sepa
    assert "\nassert {\n  res.status: in 201\n}\n" in sepa
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
    "options, message",
    [
        (["--format", "bruno"], "--directory"),
        (["--directory", "x"], "--format bruno"),
    ],
)
def test_options_that_do_not_fit_are_wrong_use(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["collection", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert run(["collection", "--format", "bruno", "--directory", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
