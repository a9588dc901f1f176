"""SCA as a state machine: steps, outcomes and redirects (SPEC 5.3, CONTRACT 4, 13)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from emulator.bank import consents, people, sca, sessions
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from tests.unit.access.conftest import AGREEMENT, KARI, OLA, TPP, advance

BACK = "https://tpp.example/back?state=1"


def opened(bank: Bank, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"purpose": "access", "redirect_uri": BACK, "session_id": "s-1", **more}
    found = sca.get(bank, sca.open_sca(bank, tpp_id=TPP, **values))
    assert found is not None
    return found


def query(redirect: str | None) -> dict[str, str]:
    assert redirect is not None
    return dict(parse_qsl(urlsplit(redirect).query))


def test_the_steps_come_in_order_and_end_in_session_and_consent(bank: Bank) -> None:
    found = opened(bank)
    assert sca.step(bank, found) == "identity"
    assert sca.identify(bank, found, KARI) is None
    assert sca.step(bank, found) == "method"
    sca.choose_method(bank, found, "HA2")
    assert sca.step(bank, found) == "approve"
    answer = query(sca.complete(bank, found, ["a-1"]))
    psu = people.psu_for(bank, TPP, KARI)
    assert answer == {"state": "1", "psu-id": psu["id"], "tpp-session-id": "s-1", "context": "PRIVATE"}
    [session] = sessions.with_id(bank, TPP, "s-1")
    assert sessions.is_live(bank, session)
    consent = consents.current(bank, tpp_id=TPP, national_id=KARI, context="PRIVATE", agreement=None)
    assert consent is not None
    assert (consent["accounts"], consent["cards"]) == (["a-1"], [])
    after = sca.get(bank, found["id"])
    assert after is not None
    assert after["status"] == "finalised"


@pytest.mark.parametrize(
    ("preferred", "step"),
    [("HA2", "approve"), ("ANYBRAND_MOBILE", "approve"), ("ANYBRANDID", "approve"), ("CARRIER_PIGEON", "method")],
)
def test_a_preferred_method_that_the_bank_has_is_not_asked_again(bank: Bank, preferred: str, step: str) -> None:
    found = opened(bank, method_hint=preferred)
    sca.identify(bank, found, KARI)
    assert sca.step(bank, found) == step


def test_a_person_with_a_choice_of_contexts_is_asked(bank: Bank) -> None:
    kept = bank.documents.get("agreement", AGREEMENT)
    assert kept is not None
    bank.documents.put("agreement", {**kept, "persons": [OLA, KARI]})
    found = opened(bank, method_hint="HA2")
    sca.identify(bank, found, KARI)
    assert sca.step(bank, found) == "context"
    sca.choose_context(bank, found, "CORPORATE", AGREEMENT)
    answer = query(sca.complete(bank, found))
    assert (answer["psu-corporate-id"], answer["context"]) == (AGREEMENT, "CORPORATE")
    with pytest.raises(BankError):
        sca.choose_context(bank, found, "CORPORATE", "another")


def test_a_corporate_person_shares_what_the_agreement_lets_it_view(bank: Bank) -> None:
    found = opened(bank)
    answer = query(sca.approve(bank, found, national_id=OLA))
    assert answer["psu-corporate-id"] == AGREEMENT
    consent = consents.current(bank, tpp_id=TPP, national_id=OLA, context="CORPORATE", agreement=AGREEMENT)
    assert consent is not None
    assert sorted(consent["accounts"]) == ["f-3", "f-4"]


def test_an_unknown_person_fails_the_sca_and_leaves_no_session(bank: Bank) -> None:
    found = opened(bank)
    answer = query(sca.identify(bank, found, "12345678901"))
    assert (answer["status"], answer["code"]) == ("401", "PSU_CREDENTIALS_INVALID")
    assert "system" not in answer
    assert not sessions.with_id(bank, TPP, "s-1")


def test_only_the_person_behind_a_request_may_complete_it(bank: Bank) -> None:
    found = opened(bank, national_id=KARI)
    assert query(sca.identify(bank, found, OLA))["code"] == "PSU_CREDENTIALS_INVALID"


def test_ten_minutes_are_too_long(bank: Bank) -> None:
    found = opened(bank)
    advance(bank, minutes=10)
    answer = query(sca.approve(bank, found, national_id=KARI))
    assert (answer["status"], answer["code"]) == ("401", "SCA_EXPIRED")


@pytest.mark.parametrize(
    ("scripted", "status", "code"),
    [("reject", "401", "SCA_INVALID"), ("expire", "401", "SCA_EXPIRED"), ("fail", "500", "SYSTEM_ERROR")],
)
def test_a_scripted_outcome_wins_over_the_customers(bank: Bank, scripted: str, status: str, code: str) -> None:
    answer = query(sca.approve(bank, opened(bank, outcome=scripted), national_id=KARI))
    assert (answer["status"], answer["code"]) == (status, code)
    assert answer.get("system") == ("core" if scripted == "fail" else None)


def test_an_abandoned_sca_stays_open_without_a_redirect(bank: Bank) -> None:
    found = opened(bank, outcome="abandon")
    assert sca.approve(bank, found, national_id=KARI) is None
    assert sca.is_open(found)


def test_an_ended_sca_cannot_be_used_again(bank: Bank) -> None:
    found = opened(bank)
    sca.approve(bank, found, national_id=KARI)
    for again in (lambda: sca.approve(bank, found), lambda: sca.reject(bank, found)):
        with pytest.raises(BankError) as refused:
            again()
        assert refused.value.code == "CONFLICT"


def test_completing_a_new_session_ends_the_old_one_and_aborting_does_not(bank: Bank) -> None:
    sca.approve(bank, opened(bank, session_id="old"), national_id=KARI)
    sca.reject(bank, opened(bank, session_id="new"))
    [old] = sessions.with_id(bank, TPP, "old")
    assert sessions.is_live(bank, old)
    sca.approve(bank, opened(bank, session_id="new"), national_id=KARI)
    [old] = sessions.with_id(bank, TPP, "old")
    assert not sessions.is_live(bank, old)


def test_the_psu_id_is_one_per_tpp_and_person(bank: Bank) -> None:
    first = query(sca.approve(bank, opened(bank), national_id=KARI))["psu-id"]
    again = query(sca.approve(bank, opened(bank, session_id="s-2"), national_id=KARI))["psu-id"]
    other = people.psu_for(bank, "ANOTHER-TPP", KARI)["id"]
    assert first == again != other


def test_without_a_session_id_the_bank_makes_one(bank: Bank) -> None:
    answer = query(sca.approve(bank, opened(bank, session_id=None), national_id=KARI))
    assert len(answer["tpp-session-id"]) == 36


def test_the_control_interface_finds_an_sca_by_token_target_or_latest(bank: Bank) -> None:
    first = opened(bank, purpose="consent", target="consent-1")
    advance(bank, seconds=1)
    second = opened(bank)
    assert sca.find(bank, first["id"])["id"] == first["id"]
    assert sca.find(bank, "consent-1")["id"] == first["id"]
    assert sca.find(bank, "latest")["id"] == second["id"]
    sca.approve(bank, second, national_id=KARI)
    assert sca.find(bank, "latest")["id"] == first["id"]
    with pytest.raises(BankError):
        sca.find(bank, "nothing")


def test_what_is_no_more_voids_its_sca(bank: Bank) -> None:
    found = opened(bank, purpose="payment", target="p-1")
    sca.void(bank, "p-1")
    after = sca.get(bank, found["id"])
    assert after is not None
    assert not sca.is_open(after)
