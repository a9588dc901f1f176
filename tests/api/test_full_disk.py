"""A full disk: what writes is 503 and leaves nothing behind, reads go on (errors.md#system_error).

Driven from the operation table: whatever changes the documents when there is room must be refused when there is none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emulator.api.description import examples
from emulator.api.operation import Operation
from emulator.api.operations import table
from emulator.api.service import BankService
from emulator.assemble.composition import registry_for
from emulator.assemble.registry import BankRegistry
from emulator.bank import fixtures
from emulator.bank.clock import real_now
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER
from emulator.bank.payment import progression
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.control.operations import table as control_table
from emulator.store import StoreUnwritable, WriteGroup
from emulator.store.disk import Disk
from tests.api.control_desk import ControlDesk
from tests.api.desk import NOW, DeskClient, approve, messages
from tests.api.test_isolation import filled
from tests.known_state import DOMESTIC, KARI

pytestmark = pytest.mark.inside  # a disk of its own

BODIES = examples.bodies(NOW.date())
CAUSE = os.strerror(errno.ENOSPC)


@pytest.fixture
def service(registry: BankRegistry, tmp_path: Path) -> Iterator[BankService]:
    """A bank in its known state on a disk."""
    registry_on_disk = registry_for(
        replace(registry.settings, ephemeral=False, state=tmp_path), CertificateAuthority(None, clock=real_now)
    )
    fixtures.reset(registry_on_disk.default.bank, "known-state", now=NOW, mode="frozen")
    yield registry_on_disk.default
    registry_on_disk.close()


class FullDisk:
    """A disk that is full while `full`, after `room` more writes."""

    full = False
    room = 0

    def write(self, disk: Disk, file: int, data: bytes | memoryview) -> int:
        if self.full and self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= self.full
        return os.write(file, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    disk = FullDisk()
    monkeypatch.setattr(Disk, "write", lambda own, file, data: disk.write(own, file, data))
    return disk


def parameters(tpp: DeskClient, row: Operation) -> dict[str, str]:
    """What a path may name, made or found for a TPP that is logged in."""
    documents = tpp.service.bank.documents

    def created(**more: Any) -> str:
        answer = tpp.post(DOMESTIC, json={**BODIES["createPayment"]["norwegian-domestic-credit-transfers"], **more})
        assert answer.status == 201, answer.text
        return str(answer.json()["paymentId"])

    ids = {
        "payment-service": "payments",
        "payment-product": "norwegian-domestic-credit-transfers",
        "customerId": documents.first(CUSTOMER, customerNumber=KARI)["id"],
        "mockAccountId": next(iter(documents.all(ACCOUNT)))["id"],
        "mockCardAccountId": next(iter(documents.all(CARD)))["id"],
        "agreementId": next(iter(documents.all(AGREEMENT)))["id"],
        "tppId": tpp.tpp_id,
    }
    if "{paymentId}" in row.path or row.id == "createSigningBasket":
        ids["paymentId"] = created()
    if "{basketId}" in row.path:
        ids["basketId"] = tpp.post("/v1/signing-baskets", json={"paymentIds": [created()]}).json()["basketId"]
    if "{consentId}" in row.path:
        ids["consentId"] = tpp.post("/v1/consents").json()["consentId"]
    cards = row.path.startswith("/v1/card-accounts")
    listed = tpp.get("/v1/card-accounts" if cards else "/v1/accounts").json()  # the first read of a day is noted
    ids["id"] = listed["cardAccounts" if cards else "accounts"][0]["resourceId"]
    if "cancellation" in row.path.lower():
        ids["paymentId"] = created(requestedExecutionDate="2026-03-20")
        approve(tpp.service, ids["paymentId"])
    if "{authorisationId}" in row.path:
        authorisation = tpp.post(filled(row.path.rpartition("/")[0], ids))
        ids["authorisationId"] = authorisation.json()["authorisationId"]
    if row.id == "getContactInformation":
        tpp.put(filled(row.path, ids), json=next(iter(BODIES["putContactInformation"].values())))
    last = row.path.rpartition("/")[2].strip("{}")
    if last in ("transactionId", "engagementId"):
        listed = tpp.get(filled(row.path.rpartition("/")[0], ids)).json()
        if isinstance(listed, dict):
            listed = listed["transactions"]["booked"] if last == "transactionId" else listed["engagements"]
        ids[last] = listed[0].get(last) or listed[0]["id"]
    return ids


def body_of(row: Operation, ids: dict[str, str]) -> Any:
    if row.id == "createPayment":
        return BODIES["createPayment"]["norwegian-domestic-credit-transfers"]
    if row.id == "createSigningBasket":
        return {"paymentIds": [ids["paymentId"]]}
    return next(iter(BODIES[row.id].values())) if row.body is not None else None


def test_a_full_disk_refuses_what_writes_and_nothing_else(
    service: BankService, authority: CertificateAuthority, disk: FullDisk
) -> None:
    for row in table():
        if row.method != "GET":
            fixtures.reset(service.bank, "known-state", now=NOW, mode="frozen")
        _with_and_without_room(DeskClient(service, authority).log_in(KARI), disk, row)


def _with_and_without_room(tpp: DeskClient, disk: FullDisk, row: Operation) -> None:
    ids = parameters(tpp, row)
    address, body = filled(row.path, ids), body_of(row, ids)
    documents = tpp.service.bank.documents
    before = documents.dump()
    sent = {"headers": {"X-Request-ID": f"the-same-again-{row.id}"}, "json": body}
    disk.full = True
    refused = tpp.request(row.method, address, **sent)
    assert documents.dump() == before
    disk.full = False
    done = tpp.request(row.method, address, **sent)
    assert done.status < 300, (row.id, done.text)
    if documents.dump() == before:
        assert refused.status == done.status, row.id
    else:
        assert row.method != "GET"
        assert (refused.status, messages(refused)) == (503, [("SYSTEM_ERROR", None)])
        assert CAUSE in refused.text, row.id
        assert refused.headers["X-Request-ID"] == sent["headers"]["X-Request-ID"]


VIEWS = ("/state", "/clock", "/settings", "/rules", "/scenario", "/snapshots", "/sca", "/consents", "/requests")
RULE = {"name": "down", "then": {"answer": {"status": 503}}}
# What the control interface changes in a bank's documents, each with a body; `PAYMENT` is one that may be approved.
CHANGES: dict[str, Any] = {
    "PUT /clock": {"now": "2026-03-05T08:00:00Z"},
    "POST /clock/advance": {"by": "P1D"},
    "POST /consents/{id}/revoke": {},
    "POST /generate": {"customers": 2, "accountsPerCustomer": 1, "transactionsPerAccount": 2, "days": 3, "seed": 1},
    "POST /payments/{id}/advance": {},
    f"POST /people/{KARI}/payments/{{id}}/approve": {},
    f"POST /people/{KARI}/payments/{{id}}/decline": {},
    "POST /reset": {},
    "POST /rules": RULE,
    "DELETE /rules": None,
    "DELETE /rules/{name}": None,
    "POST /sca/{id}/approve": {},
    "POST /sca/{id}/reject": {},
    "POST /sca/{id}/expire": {},
    "POST /sca/{id}/fail": {"status": 401, "code": "SCA_INVALID", "message": "x", "system": "core"},
    "POST /scenario": {"name": "insufficient-funds"},
    "DELETE /scenario": None,
    "POST /sessions": {"tpp": "demo", "nationalId": KARI},
    "PUT /settings": {"progression": "time"},
    "POST /snapshots/{name}/restore": {},
}
ELSEWHERE = {
    "PUT /banks/{name}", "DELETE /banks/{name}", "DELETE /requests", "POST /requests/count", "POST /tpps",
    "POST /scenario/preview", "POST /scenarios/{name}/play", "PUT /snapshots/{name}", "DELETE /snapshots/{name}",
    "DELETE /conformance", "POST /conformance/observations", "PUT /conformance/claims", "POST /requests/{id}/repeat",
}  # fmt: skip


def test_every_change_of_the_control_interface_is_among_them() -> None:
    changes = {
        f"{row.method} {row.path}".replace("{nationalId}", KARI) for row in control_table() if row.method != "GET"
    }
    assert changes == {*CHANGES, *ELSEWHERE}


def test_a_full_disk_refuses_what_the_control_interface_writes(
    registry: BankRegistry, service: BankService, authority: CertificateAuthority, disk: FullDisk
) -> None:
    """As it is served a change is undone at the end of its turn, with all that has become of it in memory."""
    for change, served in (
        *((change, True) for change in CHANGES),
        *((change, False) for change in ("PUT /clock", "POST /generate", "POST /rules", "POST /scenario")),
    ):
        disk.full = False
        fixtures.reset(service.bank, "known-state", now=NOW, mode="frozen")
        desk = ControlDesk(Control(registry, authority), service)
        tpp = DeskClient(service, authority).log_in(KARI)
        desk.do("PUT", "/settings", {"progression": "manual"})
        payment = tpp.post(DOMESTIC, json=BODIES["createPayment"]["norwegian-domestic-credit-transfers"])
        if change in ("POST /payments/{id}/advance", "PUT /settings"):
            approve(service, payment.json()["paymentId"])
        if change.startswith("DELETE /rules"):
            desk.do("POST", "/rules", RULE)
        elif change == "DELETE /scenario":
            desk.do("POST", "/scenario", {"name": "slow-bank"})
        elif change.startswith("POST /snapshots"):
            desk.do("POST", "/rules", RULE)
            desk.do("PUT", "/snapshots/one")
            assert tpp.get("/v1/accounts").status == 503, (change, served)  # it counts
            desk.do("POST", "/clock/advance", {"by": "PT1H"})
        named = (
            desk.get("/consents")["consents"][0]["consentId"] if "consents" in change else payment.json()["paymentId"]
        )
        method, _, path = change.replace("{id}", named).partition(" ")
        path = path.replace("{name}", "one" if "snapshots" in path else "down")
        before = {view: desk.ask("GET", view).json for view in VIEWS}
        documents, group = service.bank.documents, WriteGroup()
        documents.join(group)
        for room in range(1 if change == "POST /generate" else 3):
            disk.full, disk.room = True, room
            group.open = served
            asked = desk.ask(method, path, CHANGES[change])
            group.open, written = False, asked.status < 300
            try:
                documents.flush()
            except StoreUnwritable:
                written = False
            if written:
                break
            assert {view: desk.ask("GET", view).json for view in VIEWS} == before, (change, served)
            assert served or (asked.status, asked.errors()) == (503, [("SYSTEM_ERROR", None)]), (change, served)
            assert asked.status < 300 or CAUSE in asked.texts(), (change, served)
        else:
            disk.full = False
            assert desk.ask(method, path, CHANGES[change]).status < 300, (change, served)
        assert room > 0 or change == "POST /generate", (change, served)
        assert {view: desk.ask("GET", view).json for view in VIEWS} != before, (change, served)


def test_customers_that_were_made_before_the_disk_was_full_are_told_and_stay(desk: ControlDesk, disk: FullDisk) -> None:
    disk.full, disk.room = True, 3  # of a customer one for itself and one for its transactions
    refused = desk.ask("POST", "/generate", CHANGES["POST /generate"])
    assert (refused.status, refused.errors()) == (503, [("SYSTEM_ERROR", None)])
    assert "generated and stored before: 2 customers" in refused.texts()
    assert CAUSE in refused.texts()
    assert len(desk.get("/people")["people"]) == 4 + 2


def test_the_weather_that_cannot_be_changed_counts_on(
    service: BankService, desk: ControlDesk, authority: CertificateAuthority, disk: FullDisk
) -> None:
    desk.do("PUT", "/settings", {"weather": "rough"})
    tpp = DeskClient(service, authority).log_in(KARI)
    for _ in range(3):
        tpp.get("/v1/accounts")
    before = desk.get("/rules")
    assert any(rule["matched"] for rule in before["counts"])
    disk.full = True
    assert desk.ask("PUT", "/settings", {"weather": "calm"}).status == 503
    assert desk.get("/rules") == before


def test_what_falls_due_and_cannot_be_written_takes_no_read_along(
    service: BankService, authority: CertificateAuthority, disk: FullDisk
) -> None:
    tpp = DeskClient(service, authority).log_in(KARI)
    created = tpp.post(DOMESTIC, json=BODIES["createPayment"]["norwegian-domestic-credit-transfers"]).json()
    approve(service, created["_links"]["scaRedirect"]["href"])
    service.bank.clock.advance(timedelta(seconds=2))
    documents = service.bank.documents
    disk.full = True
    documents.join(WriteGroup())
    documents.group.open = True  # as it is served: a request's own changes wait for the end of the turn
    assert tpp.get(f"{DOMESTIC}/{created['paymentId']}/status").json()["transactionStatus"] == "ACTC"
    documents.flush()
    disk.full = False
    assert tpp.get(f"{DOMESTIC}/{created['paymentId']}/status").json()["transactionStatus"] == "ACSP"


@pytest.mark.parametrize("full", [False, True])
def test_watchers_hear_of_a_payment_when_it_is_kept_and_never_of_one_that_is_not(
    service: BankService, authority: CertificateAuthority, disk: FullDisk, full: bool
) -> None:
    tpp = DeskClient(service, authority).log_in(KARI)
    heard: list[Any] = []
    service.bank.watch(heard.append)
    documents, group = service.bank.documents, WriteGroup()
    documents.join(group)
    group.open = True  # as it is served
    assert tpp.post(DOMESTIC, json=BODIES["createPayment"]["norwegian-domestic-credit-transfers"]).status == 201
    assert heard == []
    disk.full = full
    if full:
        with pytest.raises(StoreUnwritable):
            documents.flush()
    else:
        documents.flush()
    disk.full = False
    events = [(event["type"], event["status"]) for event in heard]
    assert events == ([] if full else [("payment", "RCVD"), ("request", 201)])


def test_any_file_that_the_system_refuses_a_request_is_503_with_one_line_in_the_log(
    service: BankService,
    authority: CertificateAuthority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tpp = DeskClient(service, authority).log_in(KARI)

    def refuse() -> None:  # as where a module is imported for the first time, and no further file may be opened
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "some.py")

    with monkeypatch.context() as patch:
        patch.setattr(service.bank.documents, "transaction", refuse)
        refused = tpp.get("/v1/accounts")
    assert (refused.status, messages(refused)) == (503, [("SYSTEM_ERROR", None)])
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [
        ("GET /v1/accounts: [Errno 24] Too many open files: 'some.py'", None)
    ]
    assert tpp.get("/v1/accounts").status == 200


def test_the_money_goes_to_the_payments_that_came_first_although_a_disk_was_full_meanwhile(
    registry: BankRegistry,
    service: BankService,
    authority: CertificateAuthority,
    disk: FullDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progression, "PIECE", 2)
    desk = ControlDesk(Control(registry, authority), service)
    tpp = DeskClient(service, authority).log_in(KARI)
    body = BODIES["createPayment"]["norwegian-domestic-credit-transfers"]

    def balance(amount: str) -> None:
        change = {"account": body["debtorAccount"]["bban"], "balance": amount}
        desk.do("POST", "/scenario", {"scenario": "money", "start": {"from": "current", "change": [change]}})

    balance("0.00")
    later = {"requestedExecutionDate": "2026-03-04", "instructedAmount": {"currency": "NOK", "amount": "100.00"}}
    payments = [tpp.post(DOMESTIC, json={**body, **later}).json()["paymentId"] for _ in range(6)]
    for payment in payments:
        approve(service, payment)
    balance("500.00")  # of which 219.00 is reserved for what is pending
    for _ in range(20):  # a step forward each time
        disk.full, disk.room = True, 1
        moved = desk.ask("PUT", "/clock", {"now": "2026-03-04T12:00:00+01:00"})
        if moved.status == 200:
            break
    disk.full = False
    statuses = [tpp.get(f"{DOMESTIC}/{payment}/status").json()["transactionStatus"] for payment in payments]
    assert (moved.status, statuses) == (200, ["ACSC", "ACSC", "ACCP", "ACCP", "ACCP", "ACCP"])
