"""The pytest plugin: banks for tests, fresh, in their own time, scripted, many at once (pytest-plugin.md)."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12
from freezegun import freeze_time

from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER, META
from emulator.client import Identity, TppClient
from emulator.scenario.loader import ScenarioRefused
from emulator.testing import BankFactory, RunningBank, TestTpp, banks
from emulator.testing.running import UnmatchedRule
from tests.cases import cases
from tests.e2e.process import pytest_in
from tests.known_state import DOMESTIC, EVEN, KARI, SIRI

SHOP = Path(__file__).parents[1] / "examples" / "shop"
PAYMENT: dict[str, Any] = {
    "instructedAmount": {"amount": "250.00", "currency": "NOK"},
    "creditorName": "Even Eksempel",
    "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
    "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
}


def created(tpp: TestTpp, product: str = DOMESTIC) -> str:
    answer = tpp.post(product, json=PAYMENT)
    assert answer.status == 201, answer.text
    return str(answer.json()["paymentId"])


def status(tpp: TestTpp, payment: str) -> str:
    return str(tpp.get(f"{DOMESTIC}/{payment}/status").json()["transactionStatus"])


def test_every_test_gets_a_fresh_bank(bank: RunningBank, bank_factory: BankFactory) -> None:
    created(bank.tpp().log_in())
    other = bank_factory()
    assert other.url != bank.url
    assert (len(bank.payments()), other.payments(), other.requests()) == (1, [], [])


def test_a_customer_sees_approves_declines_and_withdraws_at_the_bank_in_one_call_each(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in(KARI)
    paid, declined = created(tpp), created(tpp)
    customer = bank.customer(KARI)
    assert {payment["paymentId"] for payment in customer.payments()} == {paid, declined}
    assert customer.approve(paid) == "ACTC"
    assert customer.decline(declined) == "RJCT"
    assert customer.payments() == []
    assert "99901000014" in [account.get("bban") for account in customer.accounts()]
    tpp.get("/v1/accounts")
    [consent] = customer.consents()
    assert consent["lastUse"] is not None
    customer.withdraw()
    assert tpp.get("/v1/accounts").status == 401
    with pytest.raises(BankError):
        bank.customer(EVEN).withdraw(consent["consentId"])


def test_a_bank_for_several_tests_lives_as_long_as_its_maker_wants() -> None:
    """What a fixture of a class or of the whole run does: `bank` and `bank_factory` are made for each test."""
    with banks() as make:
        tpp = make(seed=1).tpp().log_in()
        created(tpp)
    with pytest.raises(OSError):
        tpp.get("/v1/accounts")


def test_the_clock_stands_until_it_is_moved_and_what_falls_due_happens(bank: RunningBank) -> None:
    before = bank.clock.now
    tpp = bank.tpp().log_in()
    payment = created(tpp)
    bank.approve(payment)
    assert bank.clock.now == before
    assert status(tpp, payment) == "ACTC"
    assert bank.clock.advance("10s") == before + timedelta(seconds=10)
    assert status(tpp, payment) == "ACSC"
    assert bank.clock.advance(days=1, hours=2) == before + timedelta(days=1, hours=2, seconds=10)
    assert bank.clock.advance(timedelta(minutes=1)) - before == timedelta(days=1, hours=2, minutes=1, seconds=10)


@cases(
    "by, more, refusal, text",
    [
        ("1h", {"days": 1}, TypeError, "not by both"),
        (10, {}, TypeError, 'a string such as "10s", a timedelta, or seconds=10, not by 10'),
        *((by, {}, ValueError, None) for by in ("-10s", "tomorrow", timedelta(seconds=-1), "P101Y")),
        # more than bank time goes on for, than a datetime holds, and than a timedelta
        *((None, {"days": days}, BankError, "of the years 1990 to 2200") for days in (100_000, 10**8, 10**12)),
    ],
)
def test_a_clock_that_cannot_go_on_by_that_stands(
    bank: RunningBank, by: Any, more: dict[str, Any], refusal: type[Exception], text: str | None
) -> None:
    before = bank.clock.now
    with pytest.raises(refusal, match=text):
        bank.clock.advance(*([] if by is None else [by]), **more)
    assert bank.clock.now == before


@cases(
    "now, text",
    [
        (date(2026, 3, 2), "now requires a time zone, as in 2026-03-02T09:00:00"),
        ("yesterday", r"now is a moment such as 2026-03-02T09:00:00\+01:00, not yesterday"),
        ("2201-01-01T00:00:00Z", "of the years 1990 to 2200"),
    ],
)
def test_what_is_no_moment_for_a_clock_is_refused(bank_factory: BankFactory, now: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        bank_factory(now=now)


def test_what_names_no_sca_is_an_error_in_the_test(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    with pytest.raises(BankError, match="There is no SCA yet"):
        bank.approve()
    answer = tpp.get("/v1/accounts")
    for decide in (bank.approve, bank.reject, tpp.approve):
        with pytest.raises(BankError, match="There is no SCA None"):
            decide(answer.sca_redirect)
    for unknown in ("5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41", "http://["):
        with pytest.raises(BankError):
            bank.approve(unknown)


def test_a_customer_approves_by_link_by_id_and_as_the_latest(bank: RunningBank) -> None:
    tpp = bank.tpp(roles=["AISP"])
    redirect = tpp.approve(str(tpp.get("/v1/accounts").sca_redirect), nationalId=EVEN)
    assert (redirect["psu-id"], redirect["context"]) == (tpp.psu_id, "PRIVATE")
    assert [account["name"] for account in tpp.get("/v1/accounts").json()["accounts"]] == [
        "Brukskonto",
        "Valutakonto EUR",
    ]
    payer = bank.tpp(roles=["PISP"]).log_in()
    by_id, latest = created(payer), created(payer)
    assert "tpp-session-id=" in bank.approve(latest)
    assert bank.approve(by_id).startswith("https://tpp.example/callback?")
    assert "code=SCA_INVALID" in bank.reject(str(payer.post(DOMESTIC, json=PAYMENT).sca_redirect))
    assert sorted(payment["transactionStatus"] for payment in bank.payments()) == ["ACTC", "ACTC", "RJCT"]


def test_log_in_is_for_any_person_and_context(bank: RunningBank) -> None:
    siri = bank.tpp().log_in(SIRI, context="CORPORATE")
    assert siri.psu_corporate_id
    assert {account["usage"] for account in siri.get("/v1/accounts").json()["accounts"]} == {"ORGA"}


@pytest.mark.parametrize(
    ("moved", "offset"), [("2031-05-17 12:30:00", 0), ("2031-05-17 12:01:00", 2), ("2020-05-31 12:30:00", -3)]
)
def test_requests_and_certificates_hold_at_the_real_time_that_a_test_has_moved_to(
    bank: RunningBank, moved: str, offset: int
) -> None:
    """Its local time may be hours away from UTC, as freezegun has it with `tz_offset`."""
    with freeze_time(moved, tz_offset=offset):
        tpp = bank.tpp(name="traveller")
        request = tpp.prepare("GET", "/v1/accounts")
        assert request.headers["Date"] == formatdate(usegmt=True)
        assert tpp.send(request).status == 401  # signed well; the customer is not known


def test_certificates_have_roles(bank: RunningBank) -> None:
    assert bank.tpp(roles=["AISP"]).log_in().post(DOMESTIC, json=PAYMENT).status == 403
    assert bank.tpp(roles="AISP").identity.certificate == bank.tpp(roles=["AISP"]).identity.certificate


def test_a_name_is_not_bound_to_the_roles_and_the_flaw_that_it_was_first_asked_for_with(
    bank: RunningBank, bank_factory: BankFactory
) -> None:
    assert bank.tpp(name="shop").get("/v1/accounts").status == 401
    for asked in (bank, bank_factory()):
        assert asked.tpp(name="shop", flaw="expired").get("/v1/accounts").status == 400
        assert asked.tpp(name="shop", roles=["PISP"]).get("/v1/accounts").status == 403
        shop = asked.tpp(name="shop")
        assert shop.get("/v1/accounts").status == 401
        tpps = bank_says(asked, "tpps")["tpps"]
        assert [tpp["certificate"] for tpp in tpps if tpp["name"] == "shop"] == [shop.certificate_pem]
    assert bank.tpp(name="shop").identity.certificate == bank_factory().tpp(name="shop").identity.certificate


def test_a_scenario_applies_by_name_by_file_and_as_a_value(bank: RunningBank, tmp_path: Path) -> None:
    bank.apply("slow-bank")
    file = tmp_path / "own.yaml"
    file.write_text(
        "scenario: own\nrules:\n  - name: down\n    when: {operation: getAccounts}\n    then: {answer: {status: 503}}\n"
    )
    bank.apply(str(file))
    bank.apply(file)
    tpp = bank.tpp().log_in()
    assert tpp.get("/v1/accounts").status == 503
    bank.apply({"scenario": "anew", "start": {"from": "known-state"}})
    tpp.log_in()
    assert tpp.get("/v1/accounts").status == 200
    with pytest.raises(ScenarioRefused):
        bank.apply("no-such-scenario")


def test_a_scenario_that_starts_anew_leaves_the_clock_standing(bank: RunningBank) -> None:
    bank.apply({"scenario": "anew", "start": {"from": "known-state"}})
    assert bank.call(lambda service: service.bank.clock.mode) == "frozen"


def test_the_clock_of_a_bank_made_anew_over_the_network_stands_where_it_stood_first(bank_factory: BankFactory) -> None:
    now = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
    bank = bank_factory(now=now)
    bank.clock.advance(days=1)
    for method, address in (("POST", "reset"), ("POST", "scenario"), ("PUT", "banks/other")):
        body = b'{"scenario": "anew", "start": {"from": "known-state"}}' if address == "scenario" else b"{}"
        control(bank, method, address, body)
        below = "/banks/other" if address == "banks/other" else ""
        with urllib.request.urlopen(f"{bank.url}{below}/_emulator/clock") as answer:
            assert json.load(answer) == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}


def control(bank: RunningBank, method: str, address: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{bank.url}/_emulator/{address}", body, headers, method=method)
    with urllib.request.urlopen(asked) as answer:
        answer.read()


def bank_says(bank: RunningBank, address: str) -> Any:
    with urllib.request.urlopen(f"{bank.url}/_emulator/{address}") as answer:
        return json.load(answer)


@pytest.mark.filterwarnings("ignore::emulator.testing.running.UnmatchedRule")  # nothing is asked
def test_a_reset_over_the_network_restores_settings_scenario_and_clock_of_the_marker(
    bank_factory: BankFactory,
) -> None:
    bank = bank_factory(
        now="2026-03-02T09:00:00+01:00", settings={"progression": "manual"}, scenario=("slow-bank", "lost-answer")
    )

    def shown() -> list[Any]:
        return [bank_says(bank, what) for what in ("clock", "settings", "rules")]

    first = shown()
    assert first[1]["progression"] == "manual"
    bank.clock.advance("3d")
    bank.settings(progression="time")
    control(bank, "DELETE", "scenario", b"")
    assert shown() != first
    control(bank, "POST", "reset", b"{}")
    assert shown() == first


def test_requests_shows_what_was_asked_newest_first(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    payment = created(tpp)
    status(tpp, payment)
    tpp.get("/v1/accounts")
    assert [entry["operation"] for entry in bank.requests()] == ["getAccounts", "getPaymentStatus", "createPayment"]
    assert [entry["operation"] for entry in bank.requests(payment_id=payment)] == ["getPaymentStatus", "createPayment"]
    assert bank.requests(paymentId=payment) == bank.requests(payment_id=payment)
    assert [entry["status"] for entry in bank.requests(operation="createPayment")] == [201]
    with pytest.raises(BankError, match="There is no operation 'createPaymnt'; did you mean createPayment"):
        bank.requests(operation="createPaymnt")


@pytest.mark.parametrize("filters", [{"status": "201"}, {"tpp": object()}, {"paymentId": 1}, {"path": "/v1/accounts"}])
def test_a_filter_that_no_request_could_fit_is_refused(bank: RunningBank, filters: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"filtered by .*status: int.*, not by"):
        bank.requests(**filters)


def test_requests_shows_all_that_are_kept_unless_told_how_many(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    for _ in range(101):
        tpp.get("/v1/accounts")
    assert len(bank.requests(operation="getAccounts")) == 101
    assert len(bank.requests(limit=2)) == 2
    assert bank.requests(limit=0) == []


def test_payments_go_step_by_step_under_manual_progression(bank: RunningBank) -> None:
    assert bank.settings(progression="manual")["progression"] == "manual"
    tpp = bank.tpp().log_in()
    payment = created(tpp)
    bank.approve(payment)
    bank.clock.advance(days=3)
    assert status(tpp, payment) == "ACTC"
    assert [bank.advance_payment(payment), bank.advance_payment(payment, "ACSC")] == ["ACSP", "ACSC"]
    assert status(tpp, payment) == "ACSC"


async def test_an_asynchronous_client_is_the_same_customer(bank: RunningBank) -> None:
    tpp = bank.tpp().log_in()
    tpp.redirect_uri = "https://shop.example/back"
    async with tpp.asynchronous() as client:
        answer = await client.get("/v1/accounts")
        assert client.redirect_uri == tpp.redirect_uri
    assert (answer.status, answer.body) == (200, tpp.get("/v1/accounts").body)


def test_the_factory_makes_banks_with_other_flags_settings_and_times(bank_factory: BankFactory, tmp_path: Path) -> None:
    now = datetime(2024, 12, 24, 11, 0, tzinfo=UTC)
    one = bank_factory(now=now, seed=7, links="absolute", settings={"calendar": "norway"})
    two = bank_factory(now=now, seed=7, links="absolute", settings={"calendar": "norway"})
    assert one.clock.now == two.clock.now == now
    first, second = (created(bank.tpp().log_in()) for bank in (one, two))
    assert first == second
    assert one.tpp().log_in().get("/v1/accounts").json()["accounts"][0]["_links"]["self"]["href"].startswith(one.url)
    empty = bank_factory(fixtures="empty")
    assert empty.call(lambda service: service.bank.documents.count(CUSTOMER)) == 0
    scenario = tmp_path / "down.yaml"
    scenario.write_text("scenario: down\nrules:\n  - {name: down, when: {}, then: {answer: {status: 503}}}\n")
    scripted = bank_factory(scenario=(str(scenario),), now=now)
    assert (scripted.clock.now, scripted.tpp().get("/v1/accounts").status) == (now, 503)
    bank_factory(state=tmp_path / "kept")
    bank_factory(ephemeral=True, state=tmp_path / "not-kept")
    assert [folder.parents[1].name for folder in tmp_path.glob("*/banks/default")] == ["kept"]


def test_a_state_directory_of_none_is_none(
    bank_factory: BankFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    left_out: Any = None
    bank_factory(state=left_out)
    assert list(tmp_path.iterdir()) == []


def test_links_for_others_carry_the_public_address(bank_factory: BankFactory) -> None:
    bank = bank_factory(public_url="https://bank.example")
    assert str(bank.tpp().get("/v1/accounts").sca_redirect).startswith("https://bank.example/sca/")


def test_an_option_that_a_test_has_no_use_for_or_serve_refuses_is_refused(
    bank_factory: BankFactory,
) -> None:
    with pytest.raises(TypeError, match="tls_port"):
        bank_factory(tls_port=0)
    for option in ({"profile": "lenientt"}, {"allow_host": ("bank:80",)}, {"seed": "x"}):
        with pytest.raises(ValueError, match="takes"):
            bank_factory(**option)
    with pytest.raises(BankError):
        bank_factory(settings={"progression": "sideways"})


@pytest.mark.filterwarnings("ignore::emulator.testing.running.UnmatchedRule")  # nothing is asked
def test_texts_stand_for_what_they_say(bank_factory: BankFactory) -> None:
    now, at = "2026-03-02T09:00:00+01:00", datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
    one = bank_factory(now=now, seed="7", scenario="slow-bank")
    other = bank_factory(now=at, seed=7, scenario=["slow-bank"])
    assert one.clock.now == other.clock.now == at
    assert created(one.tpp().log_in()) == created(other.tpp().log_in())
    applied = one.call(lambda service: service.bank.documents.get(META, "scenario"))
    assert applied is not None
    assert applied["source"]["scenario"] == "slow-bank"


@pytest.mark.parametrize("wrong", [{"settings": {"nope": 1}}, {"scenario": ("no-such-scenario",)}])
def test_a_bank_that_could_not_be_made_lets_go_of_its_folder(
    bank_factory: BankFactory, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    with pytest.raises((BankError, ScenarioRefused)):
        bank_factory(state=tmp_path, **wrong)
    assert bank_factory(state=tmp_path).payments() == []


def test_a_kept_bank_that_is_refused_stays_as_it_was(bank_factory: BankFactory, tmp_path: Path) -> None:
    def stored_bank(**options: Any) -> RunningBank:
        return bank_factory(state=tmp_path, **options)

    first = stored_bank()
    payment = created(first.tpp().log_in())
    first.stop()
    anew = {"scenario": ("lost-answer",), "now": datetime(2030, 1, 1, tzinfo=UTC)}
    with pytest.raises(BankError):
        stored_bank(**anew, settings={"nope": 1})
    assert [entry["paymentId"] for entry in stored_bank().payments()] == [payment]


@pytest.mark.parametrize(
    "options",
    [(), pytest.param(("-p", "xdist.plugin", "-n", "2"), marks=pytest.mark.long)],
    ids=["in one process", "side by side"],
)
def test_the_example_project_passes(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    done = pytest_in(project, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_a_bank_stops_with_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_ends.py").write_text(
        "import urllib.error, urllib.request, pytest\n"
        "seen = []\n"
        "def test_first(bank):\n"
        "    seen.append(bank.url)\n"
        "    urllib.request.urlopen(bank.url + '/health', timeout=5).close()\n"
        "def test_then():\n"
        "    with pytest.raises(urllib.error.URLError):\n"
        "        urllib.request.urlopen(seen[0] + '/health', timeout=5)\n"
    )
    done = pytest_in(tmp_path)
    assert "2 passed" in done.stdout, done.stdout


def test_all_banks_stop_where_the_warning_of_an_unmatched_rule_is_an_error() -> None:
    """As with `filterwarnings = error` of a project, which for this warning is that of ours."""
    with ExitStack() as ending:
        make = ending.enter_context(banks())
        started = [make(), make(), make()]
        tpps = [bank.tpp() for bank in started]
        for bank in started[1:]:
            bank.apply("slow-bank")
        with pytest.raises(UnmatchedRule):
            ending.close()
    for tpp in tpps:
        with pytest.raises(ConnectionRefusedError):
            tpp.get("/v1/accounts")


def test_a_certificate_of_a_tpp_can_be_used_by_other_code(bank: RunningBank, tmp_path: Path) -> None:
    tpp = bank.tpp(roles=["AISP"])
    files = tpp.files(tmp_path / "certificates")
    assert [file.name for file in files] == ["certificate.pem", "key.pem", "keystore.p12"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert (files.certificate.read_text(), files.key.read_text()) == (tpp.certificate_pem, tpp.key_pem)
    stored = pkcs12.load_pkcs12(files.keystore.read_bytes(), b"bank-emulator")
    assert stored.cert is not None
    assert stored.cert.certificate == tpp.identity.certificate
    own = TppClient(bank.url, Identity.from_pem(tpp.certificate_pem, tpp.key_pem))
    own.remember("?" + urlencode({"psu-id": tpp.log_in().psu_id or "", "tpp-session-id": tpp.session_id}))
    assert own.get("/v1/accounts").status == 200
    own.close()


@pytest.mark.bank(seed=7, now="2026-03-02T09:00:00+01:00", settings={"progression": "manual"})
class TestMarker:
    def test_a_marker_gives_the_options_of_the_bank(self, bank: RunningBank) -> None:
        assert bank.clock.now == datetime(2026, 3, 2, 8, tzinfo=UTC)
        assert bank.settings()["progression"] == "manual"

    @pytest.mark.bank(now="2026-04-01T09:00:00Z", links="absolute")
    def test_the_closest_marker_wins(self, bank: RunningBank) -> None:
        assert bank.clock.now == datetime(2026, 4, 1, 9, tzinfo=UTC)
        assert (bank.settings()["progression"], bank.settings()["links"]) == ("manual", "absolute")


def test_a_failing_test_reports_the_last_requests_of_its_banks(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(
        "import pytest\n"
        "def test_fails(bank, bank_factory):\n"
        "    bank.tpp().get('/v1/accounts', tamper='bit-flipped')\n"
        "    bank_factory().tpp().log_in().get('/v1/accounts')\n"
        "    assert False\n"
        "def test_passes(bank):\n"
        "    bank.tpp().get('/v1/cards')\n"
        "@pytest.mark.bank(7)\n"
        "def test_options_have_names(bank): pass\n"
        "@pytest.mark.bank(sed=7)\n"
        "def test_options_are_known(bank): pass\n"
    )
    done = pytest_in(tmp_path)
    assert done.stdout.count("- requests of the bank at http://127.0.0.1:") == 2
    assert " 400 GET /v1/accounts" in done.stdout
    assert " 200 GET /v1/accounts" in done.stdout
    assert "    BAD_REQUEST Signature: " in done.stdout
    assert "The bank's signing string:" in done.stdout, "the diagnosis of the signature"
    assert "/v1/cards" not in done.stdout
    assert "the marker bank takes options by name" in done.stdout
    assert "not sed" in done.stdout
    assert "1 failed, 1 passed, 2 errors" in done.stdout


def test_a_project_that_asks_for_no_bank_imports_none_of_it() -> None:
    program = "import sys, emulator.testing.plugin; print(*sorted(m for m in sys.modules if m.startswith('emulator')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["emulator", "emulator.testing", "emulator.testing.plugin"]


@pytest.mark.parametrize("rules", [[], [{"then": {"delay": "1ms"}}]], ids=["at once", "after a delay"])
def test_the_log_shows_what_was_said_to_a_client_that_takes_gzip(
    bank: RunningBank, rules: list[dict[str, Any]]
) -> None:
    tpp, gzip = bank.tpp().log_in(), {"Accept-Encoding": "gzip"}
    bank.apply({"scenario": "slow", "summary": "Slow.", "start": {"from": "current"}, "rules": rules})
    created = tpp.post(DOMESTIC, json=PAYMENT, headers=gzip)
    refused = tpp.post(DOMESTIC, json={}, headers=gzip)
    assert {created.headers["Content-Encoding"], refused.headers["Content-Encoding"]} == {"gzip"}
    [second, first] = bank.requests(operation="createPayment")
    assert first["paymentId"] == bank.payments()[0]["paymentId"]
    assert {message["code"] for message in second["messages"]} == {"FORMAT_ERROR"}


@pytest.mark.parametrize(
    ("flaw", "settings", "status"),
    [
        ("expired", {}, 400),
        ("not-yet-valid", {}, 400),
        ("unknown-ca", {}, 200),
        ("unknown-ca", {"trust": "sandbox-ca"}, 400),
        ("no-roles", {}, 403),
        ("leading-zero-serial", {}, 200),
        ("special-characters", {}, 200),
    ],
)
def test_a_flaw_is_refused_where_the_command_line_says_so(
    bank: RunningBank, flaw: str, settings: dict[str, Any], status: int
) -> None:
    """What `tpp new --help` promises of each flaw."""
    bank.settings(**settings)
    tpp = bank.tpp(flaw=flaw)
    assert tpp.log_in().get("/v1/accounts").status == status


RULES_THAT_MATCH = """
import pytest

def test_matches(bank):
    assert bank.apply("slow-bank", operation="getAccounts", must_match=True)["rules"] == 1
    bank.tpp().get("/v1/accounts")

def test_does_not_match(bank):
    bank.apply("slow-bank", operation="getAccounts", must_match=True)

def test_need_not_match(bank):
    bank.apply("slow-bank", operation="getAccounts")

@pytest.mark.bank(settings={"progression": "manual"})
def test_fails_by_itself(bank):
    bank.apply("slow-bank", must_match=True)
    assert False, "for its own reason"
"""


def test_a_rule_that_matched_nothing_is_named_and_fails_a_test_that_demands_a_match(tmp_path: Path) -> None:
    (tmp_path / "test_rules.py").write_text(RULES_THAT_MATCH)
    ended = pytest_in(tmp_path)
    assert "2 failed, 2 passed" in ended.stdout, ended.stdout
    assert "Rules that matched no request: slow-bank: 'every third read is slow'." in ended.stdout
    assert "pluggy" not in ended.stdout  # the line alone
    assert ended.stdout.count("UnmatchedRule: slow-bank: the rule 'every third read is slow' has matched no") >= 1
    assert "for its own reason" in ended.stdout
