"""SCA as a state machine: steps, outcomes and redirects (sca.md)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from emulator.bank.authentication import authorisations, sca, sca_control
from emulator.bank.bank import Bank
from emulator.bank.customers import access, consents, people, sessions
from emulator.bank.customers.access import Claim
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER, SCA, SESSION
from tests.unit.access.conftest import AGREEMENT_ID, KARI, OLA, TPP, advance

BACK = "https://tpp.example/back?state=1"


def opened(bank: Bank, purpose: str = "access", **more: Any) -> dict[str, Any]:
    known = {"redirectUri": BACK, "sessionId": "s-1", **more}
    approach = {member: value for member, value in known.items() if value is not None}
    authentication = sca.get(bank, authorisations.open_sca(bank, TPP, purpose, approach))
    assert authentication is not None
    return authentication


def query(redirect: str | None) -> dict[str, str]:
    assert redirect is not None
    return dict(parse_qsl(urlsplit(redirect).query))


def test_the_steps_come_in_order_and_end_in_session_and_consent(bank: Bank) -> None:
    authentication = opened(bank)
    assert sca.step(bank, authentication) == "identity"
    assert sca.identify(bank, authentication, KARI) is None
    assert sca.step(bank, authentication) == "method"
    sca.choose_method(bank, authentication, "HA2")
    assert sca.step(bank, authentication) == "approve"
    answer = query(sca.complete(bank, authentication, ["a-1"]))
    psu = people.psu_for(bank, TPP, KARI)
    assert answer == {"state": "1", "psu-id": psu["id"], "tpp-session-id": "s-1", "context": "PRIVATE"}
    [session] = sessions.with_id(bank, TPP, "s-1")
    assert sessions.is_live(bank, session)
    consent = consents.current(bank, people.Owner(TPP, KARI, "PRIVATE", None))
    assert consent is not None
    assert (consent["accounts"], consent["cards"]) == (["a-1"], [])
    after = sca.get(bank, authentication["id"])
    assert after is not None
    assert after["status"] == "finalised"


@pytest.mark.parametrize(
    ("preferred", "step"),
    [("HA2", "approve"), ("ANYBRAND_MOBILE", "approve"), ("ANYBRANDID", "approve"), ("CARRIER_PIGEON", "method")],
)
def test_a_preferred_method_that_the_bank_has_is_not_asked_again(bank: Bank, preferred: str, step: str) -> None:
    authentication = opened(bank, method=authorisations.offered_method(preferred))
    sca.identify(bank, authentication, KARI)
    assert sca.step(bank, authentication) == step


def test_a_person_with_a_choice_of_contexts_is_asked(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID)
    assert agreement is not None
    bank.documents.put(AGREEMENT, {**agreement, "persons": [OLA, KARI]})
    authentication = opened(bank, method="HA2")
    sca.identify(bank, authentication, KARI)
    assert sca.step(bank, authentication) == "context"
    sca.choose_context(bank, authentication, "CORPORATE", AGREEMENT_ID)
    answer = query(sca.complete(bank, authentication))
    assert (answer["psu-corporate-id"], answer["context"]) == (AGREEMENT_ID, "CORPORATE")
    with pytest.raises(BankError) as refused:
        sca.choose_context(bank, authentication, "CORPORATE", "another")
    assert [message.path for message in refused.value.messages] == ["agreement"]


def test_a_firms_number_is_nobodys_while_somebody_acts_for_it(bank: Bank) -> None:
    authentication = opened(bank)
    firm = next(c for c in bank.documents.all(CUSTOMER) if c["type"] == "corporate")
    assert "PSU_CREDENTIALS_INVALID" in str(sca.identify(bank, authentication, firm["customerNumber"]))
    for agreement in bank.documents.find(AGREEMENT, owner=firm["id"]):
        bank.documents.put(AGREEMENT, {**agreement, "persons": []})
    assert sca.identify(bank, opened(bank), firm["customerNumber"]) is None


def test_a_session_is_no_other_tpps_whatever_stands_in_their_ids(bank: Bank) -> None:
    sca.identify(bank, authentication := opened(bank, method="HA2", sessionId="S|1"), KARI)
    sca.complete(bank, authentication)
    assert len(sessions.with_id(bank, TPP, "S|1")) == 1
    assert sessions.with_id(bank, f"{TPP}|S", "1") == []


@pytest.mark.parametrize("name", ["a-1", "99901111111", "NO0099901111111"])
def test_an_account_is_named_by_id_or_either_number_and_shared_once(bank: Bank, name: str) -> None:
    sca_control.approve(bank, opened(bank), national_id=KARI, accounts=[name, "a-1", "card-1", "card-1"])
    consent = consents.current(bank, people.Owner(TPP, KARI, "PRIVATE", None))
    assert consent is not None
    assert (consent["accounts"], consent["cards"]) == (["a-1"], ["card-1"])


def test_nothing_is_no_account_to_share(bank: Bank) -> None:
    with pytest.raises(BankError) as refused:
        sca_control.approve(bank, opened(bank), national_id=KARI, accounts=[])
    assert (refused.value.code, refused.value.messages[0].path) == ("FORMAT_ERROR", "accounts")


@pytest.mark.parametrize("purpose", ["user", "payment", "basket", "cancellation"])
def test_accounts_are_refused_where_none_are_shared(bank: Bank, purpose: str) -> None:
    open_sca = opened(bank, purpose, target="p-1")
    with pytest.raises(BankError, match="shares no accounts") as refused:
        sca_control.approve(bank, open_sca, national_id=KARI, accounts=["a-1"])
    assert (refused.value.code, refused.value.messages[0].path) == ("FORMAT_ERROR", "accounts")
    assert bank.documents.get(SCA, open_sca["id"]) == open_sca


def test_a_context_that_the_request_fixes_is_not_blamed_on_the_person(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID)
    assert agreement is not None
    bank.documents.put(AGREEMENT, {**agreement, "persons": [OLA, KARI]})
    authentication = opened(bank, method="HA2", context="PRIVATE")
    with pytest.raises(BankError, match="asks for the context PRIVATE only"):
        sca_control.approve(bank, authentication, national_id=KARI, context="CORPORATE")


def test_a_corporate_person_shares_what_the_agreement_lets_it_view(bank: Bank) -> None:
    authentication = opened(bank)
    answer = query(sca_control.approve(bank, authentication, national_id=OLA))
    assert answer["psu-corporate-id"] == AGREEMENT_ID
    consent = consents.current(bank, people.Owner(TPP, OLA, "CORPORATE", AGREEMENT_ID))
    assert consent is not None
    assert sorted(consent["accounts"]) == ["f-3", "f-4"]


def test_an_unknown_person_fails_the_sca_and_leaves_no_session(bank: Bank) -> None:
    authentication = opened(bank)
    answer = query(sca.identify(bank, authentication, "12345678901"))
    assert (answer["status"], answer["code"]) == ("401", "PSU_CREDENTIALS_INVALID")
    assert "system" not in answer
    assert not sessions.with_id(bank, TPP, "s-1")


def test_only_the_person_behind_a_request_may_complete_it(bank: Bank) -> None:
    authentication = opened(bank, nationalId=KARI)
    assert query(sca.identify(bank, authentication, OLA))["code"] == "PSU_CREDENTIALS_INVALID"


def test_ten_minutes_are_too_long(bank: Bank) -> None:
    authentication = opened(bank)
    advance(bank, minutes=10)
    answer = query(sca_control.approve(bank, authentication, national_id=KARI))
    assert (answer["status"], answer["code"]) == ("401", "SCA_EXPIRED")


@pytest.mark.parametrize(
    ("scripted", "status", "code"),
    [("reject", "401", "SCA_INVALID"), ("expire", "401", "SCA_EXPIRED"), ("fail", "500", "SYSTEM_ERROR")],
)
def test_a_scripted_outcome_wins_over_the_customers(bank: Bank, scripted: str, status: str, code: str) -> None:
    answer = query(sca_control.approve(bank, opened(bank, outcome=scripted), national_id=KARI))
    assert (answer["status"], answer["code"]) == (status, code)
    assert answer.get("system") == ("core" if scripted == "fail" else None)


def test_an_abandoned_sca_stays_open_without_a_redirect(bank: Bank) -> None:
    authentication = opened(bank, outcome="abandon")
    assert sca_control.approve(bank, authentication, national_id=KARI) is None
    assert sca.is_open(authentication)


def test_an_ended_sca_cannot_be_used_again(bank: Bank) -> None:
    authentication = opened(bank)
    sca_control.approve(bank, authentication, national_id=KARI)
    for again in (lambda: sca_control.approve(bank, authentication), lambda: sca_control.reject(bank, authentication)):
        with pytest.raises(BankError) as refused:
            again()
        assert refused.value.code == "CONFLICT"


def test_completing_a_new_session_ends_the_old_one_and_aborting_does_not(bank: Bank) -> None:
    sca_control.approve(bank, opened(bank, sessionId="old"), national_id=KARI)
    sca_control.reject(bank, opened(bank, sessionId="new"))
    [old] = sessions.with_id(bank, TPP, "old")
    assert sessions.is_live(bank, old)
    sca_control.approve(bank, opened(bank, sessionId="new"), national_id=KARI)
    [old] = sessions.with_id(bank, TPP, "old")
    assert not sessions.is_live(bank, old)


def test_the_psu_id_is_one_per_tpp_and_person(bank: Bank) -> None:
    first = query(sca_control.approve(bank, opened(bank), national_id=KARI))["psu-id"]
    again = query(sca_control.approve(bank, opened(bank, sessionId="s-2"), national_id=KARI))["psu-id"]
    other = people.psu_for(bank, "ANOTHER-TPP", KARI)["id"]
    assert first == again != other


def test_without_a_session_id_the_bank_makes_one(bank: Bank) -> None:
    answer = query(sca_control.approve(bank, opened(bank, sessionId=None), national_id=KARI))
    assert len(answer["tpp-session-id"]) == 36


def test_the_control_interface_finds_an_sca_by_token_target_or_latest(bank: Bank) -> None:
    first = opened(bank, purpose="consent", target="consent-1")
    advance(bank, seconds=1)
    second = opened(bank)
    assert sca_control.find(bank, first["id"])["id"] == first["id"]
    assert sca_control.find(bank, "consent-1")["id"] == first["id"]
    assert sca_control.find(bank, "latest")["id"] == second["id"]
    sca_control.approve(bank, second, national_id=KARI)
    assert sca_control.find(bank, "latest")["id"] == first["id"]
    with pytest.raises(BankError):
        sca_control.find(bank, "nothing")


def test_of_several_scas_of_one_thing_the_newest_open_one_is_meant(bank: Bank) -> None:
    first, second, third = (opened(bank, purpose="payment", target="p-1") for _ in range(3))
    sca.fail(bank, third)
    assert sca_control.find(bank, "p-1")["id"] == sca_control.find(bank, "latest")["id"] == second["id"]
    sca.fail(bank, second)
    assert sca_control.find(bank, "p-1")["id"] == first["id"]
    sca.fail(bank, first)
    assert sca_control.find(bank, "p-1")["id"] == third["id"]
    assert not sca.is_open(sca_control.find(bank, "latest"))


def test_an_sca_that_nobody_has_completed_in_time_is_shown_as_expired(bank: Bank) -> None:
    authentication = opened(bank)
    assert sca_control.view(bank, authentication)["status"] == "started"
    advance(bank, minutes=10)
    assert sca_control.view(bank, authentication)["status"] == "expired"


def test_what_is_no_more_voids_its_sca(bank: Bank) -> None:
    authentication = opened(bank, purpose="payment", target="p-1")
    sca.void(bank, "p-1")
    after = sca.get(bank, authentication["id"])
    assert after is not None
    assert not sca.is_open(after)


# A bank that runs for months


def test_sessions_that_are_over_do_not_pile_up(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PAST_KEPT", 20)
    kari = people.psu_for(bank, TPP, KARI)["id"]

    def without_a_session(session_id: str) -> tuple[str, str]:
        with pytest.raises(ScaNeeded) as refused:
            access.session_holder(bank, Claim(TPP, psu_id=kari, session_id=session_id))
        return refused.value.code, refused.value.messages[0].text

    sca_control.approve(bank, opened(bank, sessionId="of-another"), national_id=OLA)
    for number in range(50):
        sca_control.approve(bank, opened(bank, sessionId=f"s-{number}"), national_id=KARI)
        advance(bank, minutes=61 if number % 2 else 1)
    assert bank.documents.count(SESSION) == 22
    [others] = sessions.with_id(bank, TPP, "of-another")
    assert others["nationalId"] == OLA
    assert without_a_session("s-0")[0] == without_a_session("s-28")[0] == "SCA_NOT_FOUND"
    assert without_a_session("s-30") == ("SCA_EXPIRED", "A newer session has replaced this one.")
    assert without_a_session("s-47") == ("SCA_EXPIRED", "The SCA of this session is an hour old or more.")
    assert without_a_session("s-49") == ("SCA_EXPIRED", "The SCA of this session is an hour old or more.")


def test_an_sca_under_the_id_of_an_earlier_session_brings_that_one_back(bank: Bank) -> None:
    for session_id in ("one", "two", "one", "one"):
        sca_control.approve(bank, opened(bank, sessionId=session_id), national_id=KARI)
    [one], [two] = sessions.with_id(bank, TPP, "one"), sessions.with_id(bank, TPP, "two")
    assert sessions.is_live(bank, one)
    assert not sessions.is_live(bank, two)
    sca_control.approve(bank, opened(bank, sessionId="two"), national_id=KARI)
    [one], [two] = sessions.with_id(bank, TPP, "one"), sessions.with_id(bank, TPP, "two")
    assert not sessions.is_live(bank, one)
    assert sessions.is_live(bank, two)


def test_one_session_id_serves_a_person_in_two_contexts_and_other_persons(bank: Bank) -> None:
    bank.documents.put(CUSTOMER, {"id": "c-ola", "customerNumber": OLA, "type": "private", "name": "Ola Prøve"})
    bank.documents.put(ACCOUNT, {"id": "o-5", "customerId": "c-ola", "bban": "5", "iban": "NO5", "currency": "NOK"})
    for _ in range(3):
        sca_control.approve(bank, opened(bank), national_id=KARI)
        sca_control.approve(bank, opened(bank), national_id=OLA, context="PRIVATE")
        sca_control.approve(bank, opened(bank), national_id=OLA, agreement=AGREEMENT_ID)
    stored = sessions.with_id(bank, TPP, "s-1")
    assert sorted((s["nationalId"], s["context"]) for s in stored) == [
        (KARI, "PRIVATE"),
        (OLA, "CORPORATE"),
        (OLA, "PRIVATE"),
    ]
    assert all(sessions.is_live(bank, session) for session in stored)


def test_ended_consents_do_not_pile_up(bank: Bank) -> None:
    for _ in range(consents.ENDED_KEPT + 5):
        sca_control.approve(bank, opened(bank), national_id=KARI)
        advance(bank, minutes=1)
        consent = consents.current(bank, people.Owner(TPP, KARI, "PRIVATE", None))
        assert consent is not None
        consents.revoke(bank, consent["id"])
        advance(bank, minutes=1)
    sca_control.approve(bank, opened(bank), national_id=KARI)
    shown = consents.listing(bank)
    assert [consent["status"] for consent in shown] == ["valid", *["revoked"] * consents.ENDED_KEPT]
    assert shown[1]["consentId"] == consent["id"], "the newest stay"


def test_scas_that_nobody_completes_do_not_pile_up(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sca, "PASSING_KEPT", 20)
    for number in range(50):
        opened(bank, purpose=("access", "consent", "user")[number % 3], target=f"t-{number}")
    left = [document["target"] for document in bank.documents.all(SCA)]
    assert left == [f"t-{number}" for number in range(30, 50)]
