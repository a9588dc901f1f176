"""What the request log holds: the last exchanges, whole, within a bound of bytes, and nobody's identity number."""

from __future__ import annotations

import json
import sys

from emulator.api.log import LARGE_BODY, MOST_LARGE_BODIES, RequestLog
from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.api.signature import SignatureRefused
from emulator.assemble.turns import refuse
from tests.api.desk import DeskClient
from tests.known_state import KARI, SEPA


def test_large_bodies_are_cut_when_there_are_many_and_the_latest_are_whole(
    service: BankService, tpp: DeskClient
) -> None:
    body = b'{"a":"' + b"x" * 1_000_000 + b'"}'
    number = MOST_LARGE_BODIES // len(body) + 10
    for _ in range(number):
        assert tpp.post(SEPA, body=body).status == 400
    sizes = [len(exchange.request.body) for exchange in service.log.newest()]
    assert len(sizes) == number
    assert sizes[0] == len(body)
    assert sizes[-1] == LARGE_BODY
    assert sum(sizes) < MOST_LARGE_BODIES + 2 * len(body) + number * LARGE_BODY
    oldest = service.log.entries(limit=1000)[-1]
    assert oldest.detail()["request"]["body"].endswith(f" ... ({len(body)} bytes in all)")
    assert oldest.operation == "createPayment"


def test_of_a_refused_signature_no_more_of_the_body_is_kept(service: BankService, tpp: DeskClient) -> None:
    assert tpp.post(SEPA, body=bytes(2 * LARGE_BODY), headers={"Digest": "SHA-256=AAAA"}).status == 400
    exchange = service.log.entries(limit=1)[0]
    body, unshared = exchange.request.body, bytes(2 * LARGE_BODY)
    exchange.cut()
    assert sys.getrefcount(body) == sys.getrefcount(unshared)  # nobody else has it any more
    assert "it is the base64 of 3 bytes" in exchange.detail()["signature"]["cause"]


def test_after_the_log_was_emptied_it_counts_anew(service: BankService, tpp: DeskClient) -> None:
    body = b'{"a":"' + b"x" * 1_000_000 + b'"}'
    for _ in range(2):
        for _ in range(MOST_LARGE_BODIES // len(body) - 2):
            tpp.post(SEPA, body=body)
        assert {len(exchange.request.body) for exchange in service.log.newest()} == {len(body)}
        service.log.clear()


def test_large_answers_that_were_taken_back_do_not_weigh_for_ever() -> None:
    log, large = RequestLog(), bytes(1_000_000)
    for _ in range(3 * MOST_LARGE_BODIES // len(large)):
        exchange = log.begin("2026-03-02T08:00:00.000000Z", Request("GET", "/v1/accounts"))
        exchange.response = Response(200, [], large)
        log.weigh(exchange)
        refuse(exchange.request, exchange.response, OSError("the disk is full"))
    exchange = log.begin("2026-03-02T08:00:00.000000Z", Request("GET", "/v1/accounts"))
    exchange.response = Response(200, [], large)
    log.weigh(exchange)
    assert exchange.response.body == large


def test_a_refusal_and_a_signing_string_name_nobody(service: BankService, tpp: DeskClient) -> None:
    tpp.post(SEPA, json={}, headers={"X-PSU-IDENTITY": f"{KARI}x"})
    entry = service.log.entries(limit=1)[0]
    assert KARI not in json.dumps(entry.summary())
    assert KARI not in json.dumps(entry.detail())
    assert f"{KARI[:7]}*****" in json.dumps(entry.summary())


def test_an_identity_number_in_a_wrong_place_is_masked_too(service: BankService, tpp: DeskClient) -> None:
    for sent in (
        {"path": "/v1/accounts", "headers": {"PSU-ID": KARI}},
        {"path": f"/v1/accounts/{KARI}/balances?limit={KARI}"},
        {"path": "/v1/accounts", "headers": {"X-PSU-IDENTITY": f"{KARI}0"}},
        {"path": "/v1/sandbox/customers", "json": {"customerNumber": KARI, "name": "Kari", "type": "private"}},
    ):
        path = sent.pop("path")
        answer = tpp.post(path, **sent) if "json" in sent else tpp.get(path, **sent)
        assert answer.status >= 400, path
        entry = service.log.entries(limit=1)[0]
        whole = entry.detail()
        if "json" in sent:
            assert KARI in whole["request"].pop("body"), path  # the sandbox data that it is, and its Digest must fit
        assert KARI not in json.dumps([entry.summary(), whole]), path


def test_account_numbers_are_not_masked(service: BankService, tpp: DeskClient) -> None:
    tpp.get("/v1/accounts/99901000014")
    assert "99901000014" in json.dumps(service.log.entries(limit=1)[0].detail())


def test_a_refused_request_does_not_keep_what_it_was_refused_in(service: BankService, tpp: DeskClient) -> None:
    assert tpp.get("/v1/accounts", headers={"Date": None}).status == 400
    verdict = service.log.entries(limit=1)[0].signature
    assert isinstance(verdict, SignatureRefused)
    assert verdict.__traceback__ is None
