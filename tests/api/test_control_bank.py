"""Bank time, settings, reset, snapshots, state and ledger over the control interface."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.api.messages import Request, Response, finished
from emulator.assemble import assemble
from emulator.assemble.composition import registry_for
from emulator.assemble.registry import BankRegistry
from emulator.bank import fixtures
from emulator.bank.kinds import BANK, PERSON
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.control.operation import BankSpec
from emulator.control.operations import table
from emulator.settings import ServeSettings
from tests.api.control_desk import JSON, ControlDesk
from tests.api.desk import BASE, NOW, DeskClient, ok
from tests.known_state import DOMESTIC, KARI, PAYMENT


def loaded_fixture(desk: ControlDesk) -> str:
    origin = BANK.read(desk.service.bank.documents)
    assert origin is not None
    return origin["fixtures"]


def test_a_bank_whose_origin_an_earlier_version_wrote_is_reset_to_the_text_in_it(desk: ControlDesk) -> None:
    empty = fixtures.load("empty").text
    BANK.write(desk.service.bank.documents, {"id": "bank", "fixtures": "gone.yaml", "text": empty})
    desk.do("POST", "/reset")
    assert desk.get("/people") == {"people": []}


def pay(tpp: DeskClient) -> str:
    tpp.log_in(KARI)
    created = tpp.post(DOMESTIC, json=PAYMENT)
    assert created.status == 201
    return str(created.json()["paymentId"])


def test_bank_time_stands_and_moves(desk: ControlDesk) -> None:
    assert desk.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert desk.do("POST", "/clock/advance", {"by": "1h30m"})["now"] == "2026-03-02T09:30:00+00:00"
    assert desk.do("POST", "/clock/advance", {"by": "PT30M"})["now"] == "2026-03-02T10:00:00+00:00"
    assert desk.do("POST", "/clock/advance", {"by": "P1M"})["now"] == "2026-04-02T09:00:00+00:00"
    moved = desk.do("PUT", "/clock", {"now": "2026-05-01T00:00:00+02:00"})
    assert moved == {"now": "2026-04-30T22:00:00+00:00", "mode": "frozen"}
    assert desk.do("PUT", "/clock", {"mode": "live"})["mode"] == "live"


def test_bank_time_goes_back_only_by_a_reset(desk: ControlDesk) -> None:
    for method, path, body, message in (
        ("POST", "/clock/advance", {"by": "-PT1H"}, "by"),
        ("POST", "/clock/advance", {"by": 3600}, "by"),
        ("POST", "/clock/advance", {"by": "200y"}, "by"),
        ("PUT", "/clock", {"now": "2200-12-31T23:59:59-12:00"}, "now"),
        ("POST", "/clock/advance", {"by": "P99Y", "bye": "1s"}, "bye"),
        ("POST", "/clock/advance", {}, "by"),
        ("PUT", "/clock", {"now": "2026-03-02T07:59:59+00:00"}, "now"),
        ("PUT", "/clock", {"now": "2026-03-03"}, "now"),
        ("PUT", "/clock", {"now": "2026-03-03T10:00:00"}, "now"),
        ("PUT", "/clock", {"mode": "stopped"}, "mode"),
        ("PUT", "/clock", {}, None),
    ):
        answer = desk.ask(method, path, body)
        assert (answer.status, answer.errors()[0]) == (400, ("FORMAT_ERROR", message)), (path, body)
        assert desk.get("/clock")["now"] == "2026-03-02T08:00:00+00:00", (path, body)


def test_the_moment_that_the_clock_shows_is_no_step_back(desk: ControlDesk) -> None:
    desk.do("PUT", "/clock", {"now": (NOW + timedelta(seconds=0.75)).isoformat()})
    shown = desk.get("/clock")
    before = desk.service.bank.clock.now()
    assert desk.do("PUT", "/clock", shown) == shown
    assert desk.service.bank.clock.now() == before
    earlier = desk.ask("PUT", "/clock", {"now": "2026-03-02T07:59:59+00:00"})
    assert "Bank time is already 2026-03-02T08:00:00+00:00" in earlier.texts()


def test_a_step_that_is_too_long_names_the_limit(desk: ControlDesk) -> None:
    for by in ("P300Y", "P9999Y", "99999999999d", "36526d", "P99999999999999999999D"):
        assert "of at most a hundred years" in desk.ask("POST", "/clock/advance", {"by": by}).texts(), by


def test_settings_are_merged_and_checked(desk: ControlDesk) -> None:
    assert desk.get("/settings")["progression"] == "time"
    changed = desk.do("PUT", "/settings", {"progression": {"polls": 2}, "calendar": "norway"})
    assert (changed["progression"], changed["calendar"], changed["links"]) == ({"polls": 2}, "norway", "relative")
    wrong = desk.ask("PUT", "/settings", {"calendr": "norway", "links": "sideways", "profile": "lenient"})
    assert wrong.errors() == [("FORMAT_ERROR", "calendr"), ("FORMAT_ERROR", "links")]
    assert desk.get("/settings") == changed
    assert desk.do("PUT", "/settings", {}) == changed


def test_the_seed_of_the_flag_holds_for_documents_made_with_another(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    def first_id(seed: int | None) -> tuple[str, str]:
        settings = ServeSettings(state=tmp_path, seed=seed)
        registry = registry_for(settings, authority)
        named = registry.find("named") or registry.make("named", BankSpec(seed=5))
        fixtures.reset(registry.default.bank, "known-state")
        fixtures.reset(named.bank, "known-state")
        ids = registry.default.bank.ids.new(), named.bank.ids.new()
        registry.close()
        return ids

    def seeds(flag: int | None) -> tuple[int | None, int | None]:
        registry = registry_for(ServeSettings(state=tmp_path, seed=flag), authority)
        named = registry.find("named")
        assert named is not None
        seeds = registry.default.bank.ids.seed, named.bank.ids.seed
        if flag is not None:
            fixtures.reset(registry.default.bank, "known-state")
        registry.close()
        return seeds

    one, two = first_id(1), first_id(2)
    assert one[0] != two[0]
    assert one[1] != two[1], "ids go on after a restart"
    assert seeds(1) == (1, 5)
    assert seeds(2) == (2, 5), "a named bank keeps its own"
    assert seeds(None) == (2, 5), "no flag: as it was"


def test_people_banks_and_rules_are_lists_with_a_limit(
    desk: ControlDesk, registry: BankRegistry, tpp: DeskClient
) -> None:
    nina = {"customerNumber": "41829310021", "name": "Nina Ny", "type": "private"}
    ok(tpp.post("/v1/sandbox/customers", json=nina), 201)
    everybody = [person["name"] for person in desk.get("/people")["people"]]
    assert everybody == ["Nina Ny", "Even Eksempel", "Kari Kladd", "Tor Testmann", "Siri Skisse"]
    assert [person["name"] for person in desk.get("/people?limit=2")["people"]] == everybody[:2]
    for name in ("b", "a"):
        registry.make(name)
    assert [bank["name"] for bank in desk.get("/banks")["banks"]] == ["default", "a", "b"]
    assert [bank["name"] for bank in desk.get("/banks?limit=2")["banks"]] == ["default", "a"]
    desk.do("POST", "/rules", [{"name": str(number), "then": {"delay": "1s"}} for number in range(101)])
    listed = desk.get("/rules")
    assert (len(listed["rules"]), len(listed["counts"])) == (100, 100)
    assert [count["name"] for count in desk.get("/rules?limit=2")["counts"]] == ["0", "1"]
    for path in ("/people", "/banks", "/rules"):
        assert desk.ask("GET", f"{path}?limit=0").errors() == [("FORMAT_ERROR", "limit")]


def test_reset_makes_the_whole_bank_new(desk: ControlDesk, tpp: DeskClient) -> None:
    pay(tpp)
    desk.do("PUT", "/settings", {"calendar": "norway"})
    desk.do("POST", "/rules", {"then": {"delay": "1s"}})
    desk.do("PUT", "/snapshots/kept")
    assert desk.do("POST", "/reset") == {"fixtures": "known-state", "scenario": None}
    assert desk.get("/payments") == {"payments": []}
    assert desk.get("/requests") == {"requests": []}
    assert desk.get("/rules")["rules"] == []
    assert desk.get("/settings")["calendar"] == "always-open"
    assert [snapshot["name"] for snapshot in desk.get("/snapshots")["snapshots"]] == ["kept"]


@pytest.mark.parametrize("name", ["default", "named"])
def test_a_reset_goes_back_to_what_the_bank_was_made_with_whatever_it_stands_on(
    tmp_path: Path, authority: CertificateAuthority, name: str
) -> None:
    made_with = "empty" if name == "named" else "known-state"

    def desk_of(registry: BankRegistry) -> ControlDesk:
        return ControlDesk(Control(registry, authority), registry.find(name) or registry.make(name, BankSpec("empty")))

    registry = registry_for(ServeSettings(state=tmp_path), authority)
    desk = desk_of(registry)
    for stands_on in ("household", "household", "known-state", "empty"):
        assert desk.do("POST", "/reset", {"fixtures": stands_on})["fixtures"] == stands_on
    other = "known-state" if name == "named" else "empty"
    desk.do("POST", "/reset", {"fixtures": other})
    fixtures.initialize(desk.service.bank)
    assert loaded_fixture(desk) == made_with, "initialize restores what the bank was made with"
    desk.do("POST", "/reset", {"fixtures": other})
    registry.close()
    registry = registry_for(ServeSettings(state=tmp_path), authority)
    desk = desk_of(registry)
    assert loaded_fixture(desk) == other
    assert desk.do("POST", "/reset")["fixtures"] == made_with
    assert desk.do("POST", "/reset")["fixtures"] == made_with
    registry.close()


MADE_WITH: dict[str, Any] = {
    "fixtures": "household",
    "now": "2026-03-02T09:00:00+01:00",
    "clock": "frozen",
    "settings": {"progression": "manual", "straks_limit": "7.00"},
    "scenario": {
        "scenario": "own",
        "start": {"settings": {"straks_limit": "9.00", "calendar": "norway"}},
        "rules": [{"name": "slow", "then": {"delay": "0s"}}],
    },
}


def shown(desk: ControlDesk) -> dict[str, Any]:
    return {
        "fixtures": loaded_fixture(desk),
        "clock": desk.get("/clock"),
        "settings": desk.get("/settings"),
        "scenario": desk.get("/scenario"),
        "rules": desk.get("/rules"),
        "people": desk.get("/people"),
    }


@pytest.mark.parametrize("name", ["default", "named"])
def test_a_reset_and_a_restart_restore_all_that_the_bank_was_made_with(
    tmp_path: Path, authority: CertificateAuthority, name: str
) -> None:
    fixture = MADE_WITH["fixtures"]

    def started() -> BankRegistry:
        return registry_for(
            ServeSettings(state=tmp_path, fixtures=fixture if name == "default" else "empty"), authority
        )

    def desk_of(registry: BankRegistry) -> ControlDesk:
        return ControlDesk(Control(registry, authority), registry.find(name) or registry.default)

    registry = started()
    ControlDesk(Control(registry, authority), registry.default).do("PUT", f"/banks/{name}", MADE_WITH)
    desk = desk_of(registry)
    first = shown(desk)
    assert first["clock"] == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert (first["settings"]["straks_limit"], first["settings"]["calendar"]) == ("7.00", "norway")

    def change() -> None:
        desk.do("DELETE", "/scenario")
        desk.do("PUT", "/settings", {"progression": "time", "straks_limit": "1.00", "calendar": "always-open"})
        desk.do("POST", "/clock/advance", {"by": "40d"})
        desk.do("PUT", "/clock", {"mode": "live"})

    change()
    assert desk.do("POST", "/reset") == {"fixtures": fixture, "scenario": "own"}
    assert shown(desk) == first
    change()
    desk.do("POST", "/reset", {"fixtures": "empty", "scenario": "slow-bank"})
    assert shown(desk)["clock"] == first["clock"]
    assert "slow-bank" in str(desk.get("/scenario")), "a scenario of the request replaces that of the bank"
    assert "slow" not in [rule["name"] for rule in desk.get("/rules")["rules"]]
    desk.do("POST", "/reset", {"fixtures": "known-state"})
    registry.close()
    registry = started()
    desk = desk_of(registry)
    assert desk.do("POST", "/reset") == {"fixtures": fixture, "scenario": "own"}
    assert shown(desk) == first
    registry.close()


OWN = "fixture: own\nsummary: One.\ncustomers:\n- {customerNumber: '14888520059', name: Solo, type: private}\n"
RESET = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))


@pytest.mark.parametrize(
    ("later", "made_with"),
    [
        ({}, ("own.yaml", "slow-bank")),
        ({"fixtures": "own.yaml"}, ("own.yaml", "slow-bank")),
        ({"fixtures": "household"}, ("household", "slow-bank")),
        ({"scenario": ("lost-answer",)}, ("own.yaml", "lost-answer")),
    ],
)
def test_a_start_changes_what_the_default_bank_is_made_with_by_flags_that_it_names(
    tmp_path: Path,
    authority: CertificateAuthority,
    later: dict[str, Any],
    made_with: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("own.yaml")
    file.write_text(OWN)
    first: dict[str, Any] = {"fixtures": "own.yaml", "scenario": ("slow-bank",)}
    for flags in (first, later, {}):
        application = assemble(ServeSettings(state=tmp_path / "state", **flags), authority=authority)
        body = b'{"fixtures": "empty"}' if flags is first else b""
        answer = finished(application.handle(Request("POST", "/_emulator/reset", RESET, body, base=BASE)))
        people = [person["name"] for person in application.default.bank.documents.all(PERSON)]
        application.close()
        file.write_text(OWN.replace("Solo", "Other"))  # the bank keeps the text that it was made with
        if flags is not first:
            assert isinstance(answer, Response)
            assert json.loads(answer.body) == dict(zip(("fixtures", "scenario"), made_with, strict=True))
            assert (people == ["Solo"]) == (made_with[0] == "own.yaml")


def test_a_bank_made_with_a_file_goes_back_to_it_when_the_file_is_gone(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    registry = registry_for(ServeSettings(state=tmp_path, fixtures=str(file)), authority)
    registry.make("named")
    file.unlink()
    for name in ("default", "named"):
        desk = ControlDesk(Control(registry, authority), registry.find(name) or registry.default)
        desk.do("POST", "/reset", {"fixtures": "empty"})
        assert desk.do("POST", "/reset", {"fixtures": str(file)})["fixtures"] == str(file)
        desk.do("POST", "/reset", {"fixtures": "empty"})
        assert desk.do("POST", "/reset")["fixtures"] == str(file)
        assert [person["name"] for person in desk.get("/people")["people"]] == ["Solo"]
    registry.close()


def test_a_reset_with_a_mistake_changes_nothing(desk: ControlDesk) -> None:
    desk.do("POST", "/rules", {"name": "stays", "then": {"delay": "1s"}})
    before = desk.service.bank.documents.dump()
    for body, message in (
        ({"fixtures": "known-stat"}, "did you mean known-state?"),
        ({"fixtures": "../../etc/passwd"}, "There is no fixture"),
        ({"fixtures": 5}, "Expected text"),
        ({"scenario": "slow-bnk"}, "did you mean slow-bank?"),
        ({"scenario": {"scenario": "x", "start": {"change": [{"account": "N1", "balance": "1.00"}]}}}, "no account N1"),
        ({"scenario": {"scenario": "x", "start": {"from": "snapshot:none"}}}, "There is no snapshot none."),
        (
            {"scenario": {"name": "slow-bank", "start": {}}},
            "There is no member 'start'; expected one of name, parameters.",
        ),
        ({"fixture": "empty"}, "did you mean fixtures?"),
        ({"fixtures": None}, "Expected text, found nothing."),
        ({"scenario": None}, "Expected text, found nothing."),
    ):
        answer = desk.ask("POST", "/reset", body)
        assert answer.status == 400, body
        assert message in answer.texts(), body
        assert desk.service.bank.documents.dump() == before, body
        assert desk.get("/clock")["now"] == "2026-03-02T08:00:00+00:00", body
        assert [count["name"] for count in desk.get("/rules")["counts"]] == ["stays"], body


def test_a_snapshot_brings_documents_clock_rules_and_settings_back(desk: ControlDesk, tpp: DeskClient) -> None:
    payment = pay(tpp)
    desk.do("POST", "/rules", {"name": "old", "then": {"delay": "1s"}})
    desk.do("PUT", "/settings", {"calendar": "norway"})
    assert desk.ask("PUT", "/snapshots/before").status == 201
    assert desk.ask("PUT", "/snapshots/before").status == 200
    state = desk.get("/state")
    desk.do("POST", f"/sca/{payment}/approve")
    desk.do("POST", "/clock/advance", {"by": "2d"})
    desk.do("DELETE", "/rules")
    desk.do("PUT", "/settings", {"calendar": "always-open"})
    desk.do("POST", "/snapshots/before/restore")
    assert desk.get("/state") == state
    assert desk.get("/settings")["calendar"] == "norway"
    assert desk.get("/clock")["now"] == "2026-03-02T08:00:00+00:00"
    assert [rule["name"] for rule in desk.get("/rules")["rules"]] == ["old"]
    desk.do("DELETE", "/snapshots/before")
    assert desk.ask("POST", "/snapshots/before/restore").status == 404
    assert desk.ask("DELETE", "/snapshots/before").status == 404


def test_a_snapshot_has_a_plain_name(desk: ControlDesk) -> None:
    for name in (".hidden", "a%2Fb", "..", "x" * 64, "a%20b", "%00"):
        assert desk.ask("PUT", f"/snapshots/{name}").errors() == [("FORMAT_ERROR", "name")], name


def test_events_tell_requests_and_changes_of_status(desk: ControlDesk, tpp: DeskClient) -> None:
    pushed: list[bytes | None] = []
    stop = desk.events().subscribe(pushed.append)
    payment = pay(tpp)
    desk.do("POST", f"/sca/{payment}/approve")
    desk.do("POST", "/clock/advance", {"by": "10s"})
    stop()
    desk.do("POST", "/clock/advance", {"by": "10s"})
    chunks = [chunk for chunk in pushed if chunk is not None]
    assert chunks == pushed
    assert all(chunk.endswith(b"\n\n") for chunk in chunks)
    events = [json.loads(chunk.split(b"data: ")[1]) for chunk in chunks if b"data: " in chunk]
    assert [e["operation"] for e in events if e["type"] == "request"] == ["createPayment"]
    statuses = [e["status"] for e in events if e["type"] == "payment" and e["id"] == payment]
    assert statuses[-2:] == ["ACSP", "ACSC"]
    assert [e["status"] for e in events if e["type"] == "clock"] == ["frozen"]


def test_events_tell_when_the_whole_bank_has_changed(desk: ControlDesk) -> None:
    pushed: list[bytes | None] = []
    stop = desk.events().subscribe(pushed.append)
    desk.do("PUT", "/snapshots/one")
    desk.do("POST", "/scenario", {"name": "slow-bank"})
    desk.do("DELETE", "/scenario")
    desk.do("POST", "/snapshots/one/restore")
    desk.do("POST", "/reset")
    desk.do("PUT", "/settings", {"links": "absolute"})
    desk.do("POST", "/rules", {"name": "late", "then": {"delay": "1s"}})
    desk.do("DELETE", "/rules/late")
    desk.do("DELETE", "/rules")
    desk.do("POST", "/generate", {"customers": 1})
    desk.do("DELETE", "/requests")
    desk.do("DELETE", "/snapshots/one")
    desk.do("POST", "/tpps", {"name": "heard"})
    desk.do("PUT", "/banks/default")
    stop()
    events = [json.loads(chunk.split(b"data: ")[1]) for chunk in pushed if chunk is not None and b"data: " in chunk]
    assert [(event["type"], event["id"], event["status"]) for event in events] == [
        ("snapshots", "default", "saved"),
        ("scenario", "slow-bank", "applied"),
        ("scenario", "slow-bank", "withdrawn"),
        ("reset", "default", "restored"),
        ("reset", "default", "reset"),
        ("settings", "default", "changed"),
        ("rules", "default", "added"),
        ("rules", "default", "removed"),
        ("rules", "default", "removed"),
        ("customers", "default", "generated"),
        ("requests", "default", "cleared"),
        ("snapshots", "default", "deleted"),
        ("tpps", "heard", "issued"),
        ("reset", "default", "reset"),
        ("banks", "default", "created"),
    ]


@pytest.mark.inside  # a bank that another process creates is not told of
def test_events_tell_of_the_other_banks_of_the_process(desk: ControlDesk) -> None:
    pushed: list[bytes | None] = []
    desk.events().subscribe(pushed.append)
    desk.do("PUT", "/banks/second")
    desk.do("DELETE", "/banks/second")
    events = [json.loads(chunk.split(b"data: ")[1]) for chunk in pushed if chunk is not None and b"data: " in chunk]
    assert [(event["type"], event["id"], event["status"]) for event in events] == [
        ("banks", "second", "created"),
        ("banks", "second", "deleted"),
    ]


MEMBERS = (
    *("by", "now", "mode", "to", "nationalId", "accounts", "fixtures", "scenario", "seed", "name", "roles", "match"),
    *("when", "then", "delay", "rules", "status", "code", "tpp", "progression", "flaw", "start", "x"),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([row for row in table() if row.method in ("POST", "PUT", "DELETE")]),
    st.sampled_from(["latest", "x", "slow-bank", "%00", "æ", "default"]),
    JSON_VALUES,
)
def test_no_body_makes_the_bank_fail(desk: ControlDesk, row: Any, name: str, body: Any) -> None:
    path = row.path.replace("{id}", name).replace("{name}", name)
    if row.id == "generate" and isinstance(body, dict):
        body = {"customers": 1, "transactionsPerAccount": 1, **body}
    response = desk.raw(row.method, path, JSON, body=json.dumps(body).encode())
    assert response.status < 500, (row.id, body)
    if response.status >= 400:
        assert json.loads(response.body)["tppMessages"][0]["text"]


def test_a_bank_that_takes_the_place_of_a_deleted_one_draws_other_ids(authority: CertificateAuthority) -> None:
    """Also where a test deletes its bank and the next one makes one of the same name."""
    registry = registry_for(ServeSettings(ephemeral=True, seed=1), authority)
    drawn = []
    for _ in range(2):
        drawn.append(registry.make("a").bank.ids.new())
        registry.close_bank("a")
    drawn.append(registry.default.bank.ids.new())
    assert len(set(drawn)) == 3


def test_a_bank_is_made_with_settings_clock_and_tpp_in_one_call(desk: ControlDesk, registry: BankRegistry) -> None:
    body = {
        "now": "2026-03-02T09:00:00+01:00",
        "clock": "frozen",
        "settings": {"progression": "manual"},
        "tpp": {"name": "one call", "roles": ["PISP"], "keystore": True},
    }
    created = desk.do("PUT", "/banks/one-call", body)
    assert (created["baseUrl"], created["tpp"]["name"]) == ("http://127.0.0.1:8080/banks/one-call", "one call")
    assert created["tpp"]["roles"] == ["PISP"]
    assert "PRIVATE KEY" in created["tpp"]["key"]
    keystore = pkcs12.load_pkcs12(b64decode(created["tpp"]["keystore"]), b"bank-emulator")
    assert keystore.cert is not None
    assert keystore.cert.certificate.public_bytes(Encoding.PEM).decode() == created["tpp"]["certificate"]
    service = registry.find("one-call")
    assert service is not None
    bank = ControlDesk(desk.control, service, prefix="/banks/one-call")
    assert bank.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert bank.get("/settings")["progression"] == "manual"
    booked = [entry["bookingDate"] for entry in bank.get("/state")["transaction"] if "bookingDate" in entry]
    assert max(booked) == "2026-02-27", "dates of the fixture are counted from now"
    assert desk.do("PUT", "/banks/one-call", body)["tpp"]["certificate"] != created["tpp"]["certificate"]
    desk.do("DELETE", "/banks/one-call")


def test_a_bank_with_a_mistake_is_not_made(desk: ControlDesk) -> None:
    for body, path in (
        ({"settings": {"calender": "norway"}}, "settings.calender"),
        ({"now": "noon"}, "now"),
        ({"clock": "stopped"}, "clock"),
        ({"tpp": {}}, "tpp.name"),
        ({"tpp": {"name": "../x"}}, "tpp.name"),
        ({"tpp": {"name": "x", "roles": ["ASPSP"]}}, "tpp.roles[0]"),
    ):
        refused = desk.ask("PUT", "/banks/mistake", body)
        assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", path)]), body
        assert [bank["name"] for bank in desk.get("/banks")["banks"]] == ["default"], body


def test_links_of_a_named_bank_are_absolute_unless_its_settings_say_otherwise(
    desk: ControlDesk, registry: BankRegistry, authority: CertificateAuthority
) -> None:
    def link(settings: dict[str, str]) -> str:
        desk.do("PUT", "/banks/named", {"settings": settings})
        service = registry.find("named")
        assert service is not None
        client = DeskClient(service, authority, prefix="/banks/named").log_in("14888520059")
        href: str = client.get("/v1/accounts").json()["accounts"][0]["_links"]["self"]["href"]
        return href

    assert link({}).startswith("http://127.0.0.1:8080/banks/named/v1/accounts/")
    assert link({"links": "relative"}).startswith("/v1/accounts/")
