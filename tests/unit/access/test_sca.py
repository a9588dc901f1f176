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
from emulator.bank.kinds import AGREEMENT, CUSTOMER, SCA, SESSION
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


@pytest.mark.parametrize(
    ("preferred", "step"),
    [("HA2", "approve"), ("ANYBRAND_MOBILE", "approve"), ("ANYBRANDID", "approve"), ("CARRIER_PIGEON", "method")],
)
def test_a_preferred_method_that_the_bank_has_is_not_asked_again(bank: Bank, preferred: str, step: str) -> None:
    authentication = opened(bank, method=authorisations.offered_method(preferred))
    sca.identify(bank, authentication, KARI)
    assert sca.steps(bank, authentication)[0] == step


def test_a_person_with_a_choice_of_contexts_is_asked(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID)
    assert agreement is not None
    bank.documents.put(AGREEMENT, {**agreement, "persons": [OLA, KARI]})
    authentication = opened(bank, method="HA2")
    sca.identify(bank, authentication, KARI)
    assert sca.steps(bank, authentication)[0] == "context"
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


@pytest.mark.parametrize("name", ["a-1", "99901111111", "9990.11.11111", "NO0099901111111", "NO00 9990 1111 111"])
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
    with pytest.raises(BankError, match="CORPORATE is not possible here; possible: PRIVATE"):
        sca_control.approve(bank, authentication, national_id=KARI, context="CORPORATE")


def test_an_agreement_that_is_not_that_of_the_context_is_told_with_it(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID)
    assert agreement is not None
    bank.documents.put(AGREEMENT, {**agreement, "persons": [OLA, KARI]})
    with pytest.raises(BankError, match=f"The context PRIVATE under {AGREEMENT_ID} is not possible here; possible: "):
        sca_control.approve(bank, opened(bank), national_id=KARI, context="PRIVATE", agreement=AGREEMENT_ID)


def test_ten_minutes_are_too_long(bank: Bank) -> None:
    authentication = opened(bank)
    advance(bank, minutes=10)
    answer = query(sca_control.approve(bank, authentication, national_id=KARI))
    assert (answer["status"], answer["code"]) == ("401", "SCA_EXPIRED")


def test_of_several_scas_of_one_thing_the_newest_open_one_is_meant(bank: Bank) -> None:
    first, second, third = (opened(bank, purpose="payment", target="p-1") for _ in range(3))
    sca.fail(bank, third, sca.CORE_FAILED)
    assert sca_control.find(bank, "p-1")["id"] == sca_control.find(bank, "latest")["id"] == second["id"]
    sca.fail(bank, second, sca.CORE_FAILED)
    assert sca_control.find(bank, "p-1")["id"] == first["id"]
    sca.fail(bank, first, sca.CORE_FAILED)
    assert sca_control.find(bank, "p-1")["id"] == third["id"]
    assert not sca.is_open(sca_control.find(bank, "latest"))


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
