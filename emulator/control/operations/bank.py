"""The whole bank: reset, settings, documents, ledger, generated data and snapshots."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import BodyParts, Response
from emulator.api.render import json_response
from emulator.bank import fixtures
from emulator.bank.accounts import ledger
from emulator.bank.bank import reports_preparing
from emulator.bank.errors import BankError, counted
from emulator.bank.kinds import BANK, CUSTOMER
from emulator.bank.payment import progression
from emulator.bank.sandbox import patterns
from emulator.bank.sandbox.generate import DataPlan, generate_in_pieces
from emulator.bank.threads import in_thread
from emulator.bank.validation import Model, Omittable, Text
from emulator.control.operation import LIMIT, ControlCall, Json, Work, operation
from emulator.control.operations import AnyObject, Closed, ScenarioChoice, chosen_fixture, document, scenario_of_body
from emulator.scenario import target
from emulator.scenario.values import Settings
from emulator.store import StoreUnwritable, StoreVoid


class ResetBody(Model):
    """The fixture and the scenario to reset to, in place of those that the bank was made with."""

    fixtures: Omittable[Text] = None
    scenario: ScenarioChoice = None


@operation(
    "POST",
    "/reset",
    {200: ("The fixture, and the scenario that was applied.", {"fixtures": str, "scenario": str | None})},
    body=ResetBody,
    example={"fixtures": "known-state"},
)
def reset(call: ControlCall[ResetBody]) -> Work:
    """Reset the bank to all that it was made with: fixture, clock, settings and scenario; snapshots stay.

    Its request log is empty then. A scenario in the body is applied last, in place of those that it was made with.
    """
    bank, scenario = call.bank, call.body.scenario
    restored = fixtures.initial_state(bank)
    fixture = chosen_fixture(call.body.fixtures, own=restored["fixtures"])
    with bank.preparing():
        ready = yield from fixtures.prepare(
            bank.documents,
            restored if fixture is None else {"fixtures": fixture},
            today=fixtures.first_day(bank.begins, restored),
            ids_form=bank.ids.form,
            report=reports_preparing(bank),
        )
    with scenario_of_body():
        target.reset(call.scenario_target, ready, restored, scenario)
    stands_on, applied = BANK.read(bank.documents), target.applied(bank)
    return {
        "fixtures": restored["fixtures"] if stands_on is None else stands_on["fixtures"],
        "scenario": None if applied is None else applied["scenario"],
    }


@operation("GET", "/settings", {200: ("The settings by name.", AnyObject)})
def get_settings(call: ControlCall[Any]) -> Json:
    """Get all settings of the bank."""
    return call.bank.settings.as_document()


@operation(
    "PUT",
    "/settings",
    {200: ("All settings.", AnyObject)},
    body=Settings,
    example={"progression": "immediate", "calendar": "norway"},
)
def put_settings(call: ControlCall[Any]) -> Json:
    """Change the given settings; the others stay."""
    with call.bank.documents.transaction():
        settings = call.bank.change_settings(call.body)
    call.publish("settings", "changed")
    return settings.as_document()


@operation("GET", "/state", {200: ("The documents by kind.", AnyObject)})
def get_state(call: ControlCall[Any]) -> Response:
    """Get all documents of the bank."""
    answer = json_response(200, b"")
    answer.parts = BodyParts(*call.bank.documents.json())
    return answer


class LedgerAccount(Closed):
    """An account recomputed from its bookings."""

    accountId: str
    iban: str
    currency: str
    opening: str
    bookings: str
    reserved: str
    balance: str


@operation(
    "GET",
    "/ledger",
    {200: ("The ledger.", {"balanced": bool, "accounts": list[LedgerAccount], "totals": dict[str, str]})},
)
def get_ledger(call: ControlCall[Any]) -> Work:
    """Compare the balance of every account with its bookings."""
    return (yield from ledger.reporting(call.bank))


class Counts(Closed):
    """How many customers, accounts and transactions were generated."""

    customers: int
    accounts: int
    transactions: int


class GeneratedCustomer(Closed):
    """A generated customer; `nationalId` is that of the person who acts for it, `accounts` are IBANs."""

    customerId: str
    customerNumber: str
    customerType: str
    customerName: str
    nationalId: str
    accounts: list[str]


@operation(
    "POST",
    "/generate",
    {200: ("Counts, and the customers.", {"counts": Counts, "customers": list[GeneratedCustomer]})},
    body=DataPlan,
    example={"customers": 10, "accountsPerCustomer": 2, "transactionsPerAccount": 100, "days": 90, "seed": 7},
)
def generate(call: ControlCall[DataPlan]) -> Work:
    """Add generated customers with accounts and transactions; a seed makes them repeat."""
    yield from in_thread(patterns.norwegian_names)
    documents = call.bank.documents
    before = documents.count(CUSTOMER)
    try:
        generated = yield from generate_in_pieces(call.bank, call.body)
    except StoreVoid:
        raise
    except (StoreUnwritable, MemoryError) as error:
        stored = documents.count(CUSTOMER) - before
        if stored <= 0:
            raise
        call.publish("customers", "generated")
        why = str(error) or "not enough memory"
        text = f"The bank cannot store more: {why}; generated and stored before: {counted(stored, 'customer')}."
        raise BankError("SYSTEM_ERROR", text, status=503) from error
    call.publish("customers", "generated")
    return generated


class Snapshot(Closed):
    """A snapshot; `created` is real time."""

    name: str
    created: str


@operation("GET", "/snapshots", {200: ("Name and time of each.", {"snapshots": list[Snapshot]})}, query=(LIMIT,))
def list_snapshots(call: ControlCall[Any]) -> Json:
    """List the snapshots of the bank, newest first."""
    return {"snapshots": call.scenario_target.snapshots.listing()[: call.query["limit"]]}


@operation(
    "PUT",
    "/snapshots/{name}",
    {200: ("A snapshot was replaced.", Snapshot), 201: ("A snapshot was created.", Snapshot)},
)
def save_snapshot(call: ControlCall[Any]) -> Work:
    """Save documents, clock, rules and settings of the bank."""
    snapshots, name = call.scenario_target.snapshots, call.params["name"]
    known = {snapshot["name"] for snapshot in snapshots.listing()}
    yield from snapshots.saving(call.bank, name)
    call.publish("snapshots", "saved")
    saved = next(snapshot for snapshot in snapshots.listing() if snapshot["name"] == name)
    return json_response(200 if name in known else 201, saved)


@operation(
    "POST",
    "/snapshots/{name}/restore",
    {200: ("The snapshot that was restored.", {"name": str}), 404: "There is no such snapshot."},
)
def restore_snapshot(call: ControlCall[Any]) -> Work:
    """Restore a snapshot; the request log stays."""
    bank, snapshots, name = call.bank, call.scenario_target.snapshots, call.params["name"]
    with bank.preparing():
        content = yield from snapshots.prepare(bank, name, reports_preparing(bank))
    with bank.documents.transaction():
        snapshots.restore(bank, name, content)
        progression.run_due(bank)
        call.scenario_target.rules.restart()
    call.publish("reset", "restored")
    return {"name": call.params["name"]}


@operation("DELETE", "/snapshots/{name}", {204: "Done.", 404: "There is no such snapshot."})
def delete_snapshot(call: ControlCall[Any]) -> None:
    """Delete a snapshot."""
    call.scenario_target.snapshots.delete(call.params["name"])
    call.publish("snapshots", "deleted")


@operation("GET", "/openapi.json", {200: ("The document.", AnyObject)})
def get_control_openapi(call: ControlCall[Any]) -> Json:
    """Get the OpenAPI 3.1 document of the control interface."""
    return document(call.request.base + call.request.prefix)


@operation("GET", "/scenario-schema.json", {200: ("The schema.", AnyObject)})
def get_scenario_schema(_call: ControlCall[Any]) -> Json:
    """Get the JSON Schema of scenario files."""
    from emulator.scenario.model import scenario_schema  # only on use: most processes never show it

    return scenario_schema()
