"""The access gate: PSU, account, session, consent and quota in their order (consents.md)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.bank.bank import Bank
from emulator.bank.customers import access, people, sessions
from emulator.bank.customers.access import Claim
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER
from tests.unit.access.conftest import AGREEMENT_ID, KARI, OLA, TPP, advance
from tests.unit.effort import calls


def seeded(bank: Bank, who: str = KARI, **more: Any) -> Claim:
    session = sessions.seed(bank, tpp_id=TPP, national_id=who, **more)
    return Claim(
        TPP,
        psu_id=session["psuId"],
        session_id=session["tppSessionId"],
        agreement=session.get("psuCorporateId"),
        context="CORPORATE" if "psuCorporateId" in session else None,
    )


def changed(claim: Claim, **more: Any) -> Claim:
    return Claim(**{name: more.get(name, getattr(claim, name)) for name in Claim.__slots__})


def refused(bank: Bank, claim: Claim, **more: Any) -> BankError:
    with pytest.raises(BankError) as error:
        access.account_reader(bank, claim, **more)
    return error.value


def test_what_an_agreement_has_lost_is_not_shared_under_it_although_another_one_has_it(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID)
    assert agreement is not None
    bank.documents.put(AGREEMENT, {**agreement, "id": "b", "engagements": list(agreement["engagements"])})
    claim = seeded(bank, OLA, agreement=AGREEMENT_ID)
    access.account_reader(bank, claim, resource="f-4")
    agreement["engagements"] = agreement["engagements"][:1]
    bank.documents.put(AGREEMENT, agreement)
    for unattended in (claim, changed(claim, attended=False)):
        assert refused(bank, unattended, resource="f-4", quota="balances").code == "CONSENT_INVALID"
    access.account_reader(bank, claim, resource="f-3")
    access.account_reader(bank, seeded(bank, OLA, agreement="b"), resource="f-4")


def test_a_consent_ends_180_days_after_the_last_sca(bank: Bank) -> None:
    claim = changed(seeded(bank), attended=False)
    advance(bank, days=179, hours=23, minutes=59, seconds=59)
    access.account_reader(bank, claim, resource="a-1", quota="balances")
    advance(bank, seconds=1)
    assert refused(bank, claim, resource="a-1", quota="balances").code == "CONSENT_EXPIRED"


def test_unattended_details_need_a_consent_of_the_last_90_days(bank: Bank) -> None:
    claim = changed(seeded(bank), attended=False)
    advance(bank, days=90)
    access.account_reader(bank, claim, resource="a-1", quota="details")
    advance(bank, seconds=1)
    assert refused(bank, claim, resource="a-1", quota="details").code == "CONSENT_EXPIRED"
    attended = changed(claim, attended=True, session_id="of an SCA for something else")
    sessions.start(bank, people.Owner(TPP, KARI, "PRIVATE", None), attended.session_id or "")
    access.account_reader(bank, attended, resource="a-1", quota="details")


@pytest.mark.parametrize(("attended", "path"), [(True, None), (False, "PSU-IP-Address")])
def test_a_scripted_quota_says_nothing_untrue(bank: Bank, attended: bool, path: str | None) -> None:
    """What a call with PSU-IP-Address is told names no lack of it."""
    claim = changed(seeded(bank), attended=attended)
    with pytest.raises(BankError) as error:
        access.count_unattended(bank, claim, "a-1", "balances", exhausted=True)
    [message] = error.value.messages
    assert (message.code, message.path) == ("ACCESS_EXCEEDED", path)
    assert message.text.startswith("Without PSU-IP-Address") == (not attended)


@pytest.mark.parametrize("over", ["its hour", "a newer session", None])
def test_a_session_that_was_over_hides_no_context_of_a_later_one_under_its_id(bank: Bank, over: str | None) -> None:
    """For payments and reads, now and later; beside one that lived on, what names no context stays private."""
    bank.documents.put(CUSTOMER, {"id": "c-ola", "customerNumber": OLA, "type": "private", "name": "Ola Prøve"})
    bank.documents.put(
        ACCOUNT,
        {"id": "o-5", "customerId": "c-ola", "bban": "5", "iban": "NO5", "currency": "NOK", "status": "enabled"},
    )
    claim = seeded(bank, OLA)
    plain = changed(claim, agreement=None, context=None)
    if over == "a newer session":
        seeded(bank, OLA)
    advance(bank, minutes=60 if over == "its hour" else 40)
    sessions.start(bank, people.Owner(TPP, OLA, "CORPORATE", AGREEMENT_ID), str(claim.session_id))
    for _ in range(2):
        if over is None:
            payer = access.payer(bank, plain)
            assert payer is not None
            assert payer.context == "PRIVATE"
        else:
            for ask in (access.payer, access.account_reader):
                with pytest.raises(BankError, match="PSU-Corporate-ID must name the agreement"):
                    ask(bank, plain)
        advance(bank, minutes=30)


def test_the_identity_number_stands_in_for_the_psu_id(bank: Bank) -> None:
    caller = access.payer(bank, Claim(TPP, identity=KARI))
    assert caller is not None
    assert (caller.national_id, caller.psu_id) == (KARI, None)
    firms = access.payer(bank, Claim(TPP, identity=OLA, context="CORPORATE"))
    assert firms is not None
    assert (firms.national_id, firms.context, firms.agreement) == (OLA, "CORPORATE", None)
    with pytest.raises(ScaNeeded):
        access.payer(bank, Claim(TPP, identity="12345678901"))
    assert access.payer(bank, Claim(TPP)) is None


def test_a_person_of_many_agreements_is_listed_without_a_look_at_all_of_them_for_each(bank: Bank) -> None:
    agreement = bank.documents.get(AGREEMENT, AGREEMENT_ID) or {}
    for number in range(100):
        bank.documents.put(AGREEMENT, {**agreement, "id": f"agreement-{number}"})
    assert calls(lambda: people.listing(bank, 100)) < 20_000
