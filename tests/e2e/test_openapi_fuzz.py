"""Schemathesis over every operation, signed: no 5xx, and no answer outside its schema (issue: OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings

from emulator.api.description.openapi import document
from emulator.api.operations import table
from emulator.bank.kinds import ACCOUNT, CARD, CUSTOMER
from emulator.client.signing import signed_headers
from emulator.store import Kind
from emulator.testing import RunningBank, TestTpp
from tests.known_state import KARI

# Thousands of examples, or none: tests/api holds the answers of all operations to their schemas, tests/hostile lies.
pytestmark = pytest.mark.long

# What signing and the transport put in themselves.
OWN = {"signature", "digest", "tpp-signature-certificate", "host", "content-length", "user-agent", "accept-encoding"}

OPERATIONS = [(row.method.lower(), row.path) for row in table()]


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[TestTpp]:
    """A bank for the whole module (a made-up request must not stop it), and a TPP with a live session."""
    bank = RunningBank()
    yield bank.tpp().log_in(KARI)
    bank.stop()


def _known(case: Any, tpp: TestTpp) -> None:
    """Every other made-up id is replaced by one that exists, so that the operation behind it is reached."""
    kinds: dict[str, Kind[Any]] = {
        "id": CARD if "card" in case.path else ACCOUNT,
        "mockAccountId": ACCOUNT,
        "mockCardAccountId": CARD,
        "customerId": CUSTOMER,
    }
    for name, value in dict(case.path_parameters or {}).items():
        if name in kinds and len(str(value)) % 2:
            kind = kinds[name]
            known = tpp.bank.call(lambda service, kind=kind: list(service.bank.documents.all(kind)))
            if known:  # made-up requests delete customers and accounts, too
                case.path_parameters[name] = known[0]["id"]


def _sent(case: Any, tpp: TestTpp) -> requests.Response:
    """The made-up request with the headers that let it through the gates, signed as it stands on the wire."""
    _known(case, tpp)
    arguments = case.as_transport_kwargs(base_url=tpp.base_url)
    given = {name: value for name, value in arguments.pop("headers").items() if name.lower() not in OWN}
    prepared = requests.Request(**{**arguments, "headers": None, "cookies": None}).prepare()
    body = prepared.body or b""
    content = body.encode() if isinstance(body, str) else bytes(body)
    standing = {
        "x-accept-fix": "amount-as-string",
        "TPP-Session-ID": tpp.session_id,
        "TPP-Redirect-URI": "https://tpp.example/callback",
        "PSU-ID": tpp.psu_id or "",
        "PSU-IP-Address": "192.0.2.1",
        "Accept": "application/json",
        "Content-Type": "application/json",
    }
    made_up = {name: value for name, value in given.items() if name.startswith("PSU-") and name != "PSU-ID"}
    headers = signed_headers(
        prepared.method or "GET",
        prepared.path_url,
        tpp.identity,
        headers={**made_up, **standing},
        body=content,
        digest=True,
    )
    prepared.headers.clear()
    prepared.headers.update({name: value.encode() for name, value in headers.items()})
    if content:
        prepared.headers["Content-Length"] = str(len(content))
    with requests.Session() as session:
        return session.send(prepared, allow_redirects=False)


@pytest.fixture(scope="module")
def schema() -> Any:
    """The library takes a second to read, which only these tests spend."""
    import schemathesis

    return schemathesis.openapi.from_dict(document())


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_made_up_request_brings_a_server_error_or_an_answer_outside_its_schema(
    method: str, path: str, schema: Any, fuzzed: TestTpp
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

    @given(case=schema[path][method].as_strategy())
    @settings(
        max_examples=settings.default.max_examples // 4,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def send(case: Any) -> None:
        case.validate_response(_sent(case, fuzzed), checks=checks)

    send()
