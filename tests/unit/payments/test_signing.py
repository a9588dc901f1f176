"""Who signs a payment: its customer, under some agreements two; and who may cancel it."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.bank.accounts import ledger
from emulator.bank.authentication import authorisations, sca, sca_control
from emulator.bank.authentication.authorisations import Approach
from emulator.bank.bank import Bank
from emulator.bank.customers.access import Caller
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, AUTHORISATION, SCA
from emulator.bank.payment import baskets, payments, progression
from emulator.bank.threads import run_to_end
from tests.known_state import EVEN, KARI, SIRI, TOR
from tests.unit.payments import world
from tests.unit.payments.world import (
    DOMESTIC,
    FIRM,
    FIRM_AGREEMENT,
    SEPA,
    STRAKS,
    advance,
    agree,
    approve,
    authorise,
    domestic,
    entries,
    from_firm,
    initiate,
    money,
    paid,
    payment,
    reject,
    sepa,
    status,
)

HOW = Approach(redirectUri="https://tpp.example/back")


def outcome(redirect: str | None) -> str:
    """The code of a failed redirect, `ok` of a good one."""
    text = redirect or ""
    return text.partition("code=")[2].partition("&")[0] if "code=" in text else "ok"


# two signatures


@pytest.mark.parametrize("who", [SIRI, None])
def test_a_corporate_payment_that_names_no_agreement_acts_under_the_accounts_own(bank: Bank, who: str | None) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, STRAKS, from_firm(), who=who, context="CORPORATE")
    payments.authorised(bank, payment_id, SIRI)
    assert (status(bank, payment_id), payment(bank, payment_id)["agreement"]) == ("PATC", FIRM_AGREEMENT)


def test_patc_ends_after_30_days_and_survives_a_declined_second_signature(bank: Bank) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, STRAKS, from_firm(), **FIRM)
    approve(bank, payment_id, SIRI)
    with bank.documents.transaction():
        second = sca_control.find(bank, payment_id)
        sca_control.reject(bank, second)
    assert "sca" not in payment(bank, payment_id)
    advance(bank, days=29, hours=23, minutes=59)
    assert status(bank, payment_id) == "PATC"
    advance(bank, minutes=1)
    ended = payment(bank, payment_id)
    assert (ended["status"], ended["psuMessages"]) == ("RJCT", ["notApprovedTwice"])
    assert "due" not in ended


def test_a_payment_that_is_taken_to_patc_by_hand_links_to_no_sca(bank: Bank) -> None:
    payment_id = initiate(bank, STRAKS, from_firm(), **FIRM)
    assert progression.advance(bank, payment_id, "PATC")["status"] == "PATC"
    assert "sca" not in payment(bank, payment_id)


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("asking", [SIRI, KARI])
def test_a_second_authorisation_asked_for_by_who_has_signed_or_may_not_sign_is_for_the_others(
    bank: Bank, asking: str, hinted: bool
) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, DOMESTIC, from_firm(), **FIRM)
    approve(bank, payment_id, SIRI)
    how = Approach(redirectUri="https://tpp.example/back", **({"identityHint": asking} if hinted else {}))
    _, token = payments.start_authorisation(bank, payment(bank, payment_id), how, national_id=asking)
    assert sca.expected(sca.get(bank, token) or {}) == TOR
    assert outcome(approve(bank, token, TOR)) == "ok"
    assert status(bank, payment_id) == "ACTC"


@pytest.mark.parametrize("asking", [SIRI, TOR, None])
def test_the_first_signature_is_the_payments_own_customers_whoever_asks_for_its_sca(
    bank: Bank, asking: str | None
) -> None:
    payment_id = initiate(bank, DOMESTIC, from_firm(), **FIRM)
    _, token = payments.start_authorisation(bank, payment(bank, payment_id), HOW, national_id=asking)
    assert payment(bank, payment_id)["sca"] == token
    assert outcome(approve(bank, token, SIRI)) == "ok"
    assert status(bank, payment_id) == "ACTC"


def test_a_further_sca_for_a_payment_of_an_unknown_customer_is_for_any_who_may_pay_if_who_asks_may_not(
    bank: Bank,
) -> None:
    payment_id = initiate(bank, STRAKS, domestic(), who=None)
    _, token = payments.start_authorisation(bank, payment(bank, payment_id), HOW, national_id=EVEN)
    assert sca.expected(sca.get(bank, token) or {}) == EVEN
    assert outcome(approve(bank, token, KARI)) == "ok"


def test_a_further_sca_for_a_payment_of_an_unknown_customer_is_for_who_asks_and_may_pay(bank: Bank) -> None:
    """Only the person behind the PSU-ID may approve."""
    payment_id = initiate(bank, DOMESTIC, from_firm(), who=None, context="CORPORATE")
    _, token = payments.start_authorisation(bank, payment(bank, payment_id), HOW, national_id=SIRI)
    assert outcome(approve(bank, token, TOR)) == "PSU_CREDENTIALS_INVALID"
    assert status(bank, payment_id) == "RCVD"


def test_the_second_sca_is_like_the_one_that_was_signed(bank: Bank) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, DOMESTIC, from_firm(), **FIRM)
    advance(bank, minutes=20)
    how = Approach(redirectUri="https://tpp.example/other", language="nb", app=True)
    payments.start_authorisation(bank, payment(bank, payment_id), how, national_id=SIRI)
    approve(bank, payment_id, SIRI)
    second = sca_control.find(bank, payment_id)
    assert (second["redirectUri"], second["language"], second["app"]) == ("https://tpp.example/other", "nb", True)
    assert "nationalId" not in second


def test_above_the_approval_limit_two_sign(bank: Bank) -> None:
    agree(bank, approvalLimit="100.00")
    at_limit, above = initiate(bank, STRAKS, from_firm(), **FIRM), initiate(bank, STRAKS, from_firm("100.01"), **FIRM)
    approve(bank, at_limit, SIRI)
    approve(bank, above, SIRI)
    assert (status(bank, at_limit), status(bank, above)) == ("ACTC", "PATC")


def engaged(person: str, *roles: str, **limits: str) -> dict[str, Any]:
    return {"id": f"e-{person}", "customer": person, "accountId": "firm", "iban": "", "roles": list(roles), **limits}


def engage(bank: Bank, *engagements: dict[str, Any]) -> None:
    """Kari and Even act under the firm's agreement, as their own engagements say."""
    agree(bank, persons=(KARI, EVEN))
    agreement = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    bank.documents.put(AGREEMENT, {**agreement, "engagements": list(engagements)})


def test_a_limit_is_that_of_the_person_and_not_lifted_by_anothers(bank: Bank) -> None:
    evens = engaged("c-even", "VIEW", "REGISTER", registerLimit="100.00", approvalLimit="50.00")
    engage(bank, engaged("c-kari", "VIEW", "REGISTER", registerLimit="1000.00"), evens)
    acting = {"context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    with pytest.raises(BankError, match=r"must not exceed 100.00 NOK"):
        initiate(bank, STRAKS, from_firm("100.01"), who=EVEN, **acting)
    for who, after in ((KARI, "ACTC"), (EVEN, "PATC")):
        payment_id = initiate(bank, STRAKS, from_firm("100.00"), who=who, **acting)
        approve(bank, payment_id, who)
        assert status(bank, payment_id) == after


def test_the_register_limit_is_that_of_who_first_signs_a_payment_of_an_unknown_customer(bank: Bank) -> None:
    evens = engaged("c-even", "VIEW", "REGISTER", registerLimit="100.00")
    engage(bank, engaged("c-kari", "VIEW", "REGISTER", registerLimit="1000.00"), evens)
    payment_id = initiate(bank, STRAKS, from_firm("100.01"), who=None, context="CORPORATE")
    before = payment(bank, payment_id)
    assert outcome(approve(bank, payment_id, EVEN)) == "FORBIDDEN"
    assert payment(bank, payment_id) == {name: value for name, value in before.items() if name != "sca"}
    authorise(bank, payment_id, KARI)
    assert (status(bank, payment_id), payment(bank, payment_id)["nationalId"]) == ("ACTC", KARI)


def test_who_may_only_view_is_no_second_signer_and_lifts_no_limit(bank: Bank) -> None:
    engage(bank, engaged("c-kari", "VIEW", "REGISTER", registerLimit="1000.00", approvalLimit="100.00"),
           engaged("c-even", "VIEW"))  # fmt: skip
    acting: dict[str, Any] = {"who": KARI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}
    with pytest.raises(BankError, match=r"must not exceed 1000.00 NOK"):
        initiate(bank, STRAKS, from_firm("1000.01"), **acting)
    payment_id = initiate(bank, STRAKS, from_firm("500.00"), **acting)
    approve(bank, payment_id, KARI)
    assert status(bank, payment_id) == "ACTC"


@pytest.mark.parametrize(
    ("change", "code"),
    [({"paymentsRemoved": True}, "FORBIDDEN"), ({"cashAccountType": "LOAN"}, "PRODUCT_INVALID")],
)
def test_a_payment_from_an_account_that_pays_nothing_since_is_not_approved(
    bank: Bank, change: dict[str, Any], code: str
) -> None:
    payment_id = initiate(bank, STRAKS, domestic())
    bank.documents.put(ACCOUNT, {**(bank.documents.get(ACCOUNT, "kari") or {}), **change})
    redirect = approve(bank, payment_id) or ""
    assert outcome(redirect) == code
    assert "status=403&" in redirect
    assert status(bank, payment_id) == "RCVD"
    assert not sca.is_open(sca_control.find(bank, payment_id))


def test_a_payment_whose_other_signer_has_left_is_signed_once_more_by_the_first(bank: Bank) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, STRAKS, from_firm(), **FIRM)
    approve(bank, payment_id, SIRI)
    agree(bank, signatures=2, persons=(SIRI,))
    _, token = payments.start_authorisation(bank, payment(bank, payment_id), HOW, national_id=SIRI)
    assert (sca.get(bank, token) or {})["nationalId"] == SIRI
    assert outcome(approve(bank, payment_id, SIRI)) == "ok"
    assert status(bank, payment_id) == "ACTC"


# one signature


@pytest.mark.parametrize("in_basket", [False, True])
def test_a_payment_of_an_unknown_customer_is_of_the_agreement_that_is_chosen_at_its_approval(
    bank: Bank, in_basket: bool
) -> None:
    agree(bank)
    other = (bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}) | {"id": "other", "signatures": 2}
    bank.documents.put(AGREEMENT, other)
    target = payment_id = initiate(bank, STRAKS, from_firm(), who=None, context="CORPORATE")
    if in_basket:
        target = str(
            baskets.create(
                bank,
                tpp_id=world.TPP,
                national_id=None,
                context="CORPORATE",
                agreement=None,
                payment_ids=[payment_id],
                how=HOW,
            )["id"]
        )
    redirect = sca_control.approve(bank, sca_control.find(bank, target), national_id=SIRI, agreement="other")
    assert "psu-corporate-id=other" in (redirect or "")
    signed = payment(bank, payment_id)
    assert (signed["agreement"], signed["status"]) == ("other", "PATC"), "it demands two signatures"


@pytest.mark.parametrize("context", [None, "CORPORATE"])
def test_where_no_agreement_is_chosen_it_is_the_first_that_pays_from_the_account(
    bank: Bank, context: str | None
) -> None:
    agree(bank)
    paying = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    bank.documents.put(AGREEMENT, {**paying, "engagements": [], "accounts": []})
    bank.documents.put(AGREEMENT, {**paying, "id": "paying"})
    payment_id = initiate(bank, STRAKS, from_firm(), who=None, context="CORPORATE")
    sca_control.approve(bank, sca_control.find(bank, payment_id), national_id=SIRI, context=context)
    assert (status(bank, payment_id), payment(bank, payment_id)["agreement"]) == ("ACTC", "paying")


# DELETE and cancellation


def _in(bank: Bank, wanted: str) -> str:
    """A payment in the wanted status."""
    if wanted == "RCVD":
        return initiate(bank, DOMESTIC, domestic())
    if wanted == "PDNG":
        payment_id = paid(bank, DOMESTIC, domestic(requestedExecutionDate="2026-03-09"))
        advance(bank, seconds=2)
    elif wanted == "ACCP":
        payment_id = paid(bank, DOMESTIC, domestic("90000.00"))
        advance(bank, seconds=2)
    elif wanted == "ACWC":
        payment_id = paid(bank, DOMESTIC, domestic(remittanceInformationUnstructured="漢"))
    elif wanted == "ACWP":
        payment_id = paid(bank, SEPA, sepa(), who=EVEN)
        advance(bank, seconds=2)
    elif wanted == "RJCT":
        payment_id = initiate(bank, DOMESTIC, domestic())
        reject(bank, payment_id)
    else:
        payment_id = paid(bank, DOMESTIC, domestic())
        progression.advance(bank, payment_id, wanted) if wanted != "ACTC" else None
    assert status(bank, payment_id) == wanted
    return payment_id


@pytest.mark.parametrize("wanted", ["ACTC", "ACWC", "PDNG", "ACCP"])
def test_an_authorised_payment_is_cancelled_with_an_sca(bank: Bank, wanted: str) -> None:
    payment_id = _in(bank, wanted)
    assert payments.cancel(bank, payment(bank, payment_id)) is False
    assert status(bank, payment_id) == wanted
    payments.start_cancellation(bank, payment(bank, payment_id), HOW, national_id=KARI)
    assert outcome(approve(bank, payment_id)) == "ok"
    assert status(bank, payment_id) == "CANC"
    assert money(bank, "kari") == (10000, 0)
    assert entries(bank, "kari", "pending") == []
    advance(bank, days=30)
    assert status(bank, payment_id) == "CANC"


@pytest.mark.parametrize("wanted", ["ACSP", "ACWP", "ACSC", "RJCT", "CANC"])
def test_a_payment_that_is_executing_or_final_cannot_be_cancelled(bank: Bank, wanted: str) -> None:
    payment_id = _in(bank, wanted)
    for attempt in (
        lambda: payments.cancel(bank, payment(bank, payment_id)),
        lambda: payments.start_cancellation(bank, payment(bank, payment_id), HOW, national_id=KARI),
        lambda: payments.cancelled(bank, payment_id, KARI),
    ):
        with pytest.raises(BankError) as refused:
            attempt()
        assert refused.value.code == "CONFLICT"
    assert status(bank, payment_id) == wanted


def test_straks_cannot_be_cancelled_once_it_is_accepted_but_without_money_it_can(bank: Bank) -> None:
    accepted, empty = paid(bank, STRAKS, domestic()), paid(bank, STRAKS, domestic("90000.00"))
    with pytest.raises(BankError, match="CONFLICT"):
        payments.cancel(bank, payment(bank, accepted))
    advance(bank, seconds=2)
    assert payments.cancel(bank, payment(bank, empty)) is False


def test_who_neither_ordered_a_payment_nor_may_pay_from_its_account_cannot_cancel_it(bank: Bank) -> None:
    own = _in(bank, "PDNG")
    firms = paid(bank, DOMESTIC, {**from_firm(), "requestedExecutionDate": "2026-03-09"}, **FIRM)
    colleagues = paid(bank, DOMESTIC, {**from_firm(), "requestedExecutionDate": "2026-03-09"}, **FIRM)
    for payment_id in (own, firms, colleagues):
        payments.start_cancellation(bank, payment(bank, payment_id), HOW, national_id=None)
    assert outcome(approve(bank, own, EVEN)) == "PSU_CREDENTIALS_INVALID"
    assert outcome(approve(bank, colleagues, TOR)) == "ok"
    agreement = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    only_view = [{**engagement, "roles": ["VIEW"]} for engagement in agreement["engagements"]]
    bank.documents.put(AGREEMENT, {**agreement, "engagements": only_view})
    assert outcome(approve(bank, firms, TOR)) == "PSU_CREDENTIALS_INVALID"
    payments.start_cancellation(bank, payment(bank, firms), HOW, national_id=SIRI)
    assert outcome(approve(bank, firms, SIRI)) == "ok"
    assert [status(bank, one) for one in (own, firms, colleagues)] == ["PDNG", "CANC", "CANC"]


def test_a_cancellation_asked_for_by_who_may_only_view_is_for_who_ordered_the_payment(bank: Bank) -> None:
    engage(bank, engaged("c-kari", "VIEW", "REGISTER"), engaged("c-even", "VIEW"))
    later = {**from_firm(), "requestedExecutionDate": "2026-03-09"}
    payment_id = paid(bank, DOMESTIC, later, who=KARI, context="CORPORATE", agreement=FIRM_AGREEMENT)
    how = Approach(redirectUri="https://tpp.example/back", identityHint=EVEN)
    _, token = payments.start_cancellation(bank, payment(bank, payment_id), how, national_id=EVEN)
    opened = sca.get(bank, token) or {}
    assert (sca.expected(opened), opened.get("identityHint")) == (KARI, None)
    assert outcome(approve(bank, token, KARI)) == "ok"
    assert status(bank, payment_id) == "CANC"


def test_a_cancellation_that_comes_too_late_changes_nothing(bank: Bank) -> None:
    payment_id = _in(bank, "PDNG")
    payments.start_cancellation(bank, payment(bank, payment_id), HOW, national_id=KARI)
    progression.advance(bank, payment_id, "ACSC")
    with pytest.raises(BankError, match="CONFLICT"):
        payments.cancelled(bank, payment_id, KARI)
    assert status(bank, payment_id) == "ACSC"


# who sees a payment


def test_who_acts_under_the_same_agreement_finds_its_payments(bank: Bank) -> None:
    payment_id = initiate(bank, STRAKS, from_firm(), **FIRM)
    address: dict[str, Any] = {"service": STRAKS[0], "product": STRAKS[1], "tpp_id": world.TPP}
    tor = Caller(TOR, None, "CORPORATE", FIRM_AGREEMENT)
    assert payments.find(bank, payment_id, **address, caller=tor)["id"] == payment_id
    with pytest.raises(BankError):
        payments.find(bank, payment_id, **address, caller=Caller(TOR, None))


# A bank that runs for months


def test_authorisations_that_nobody_completes_do_not_pile_up(bank: Bank) -> None:
    agree(bank, signatures=2)
    payment_id = initiate(bank, STRAKS, from_firm(), **FIRM)

    def start() -> str:
        return payments.start_authorisation(bank, payment(bank, payment_id), HOW, national_id=None)[0]

    signed = start()
    approve(bank, payment_id, SIRI)
    started = [start() for _ in range(2 * authorisations.MOST_KEPT)]
    assert bank.documents.count(AUTHORISATION) == authorisations.MOST_KEPT
    assert bank.documents.count(SCA) == authorisations.MOST_KEPT + 2, "the payment's own two as well"
    assert authorisations.status(bank, payment_id, signed) == "finalised"
    assert authorisations.status(bank, payment_id, started[-1]) == "started"
    with pytest.raises(BankError) as refused:
        authorisations.status(bank, payment_id, started[0])
    assert refused.value.code == "RESOURCE_UNKNOWN"
    approve(bank, payment_id, TOR)
    assert status(bank, payment_id) != "PATC"


# what the person may do at the moment of signing


def test_who_may_not_pay_from_the_account_any_more_cannot_sign(bank: Bank) -> None:
    own = initiate(bank, STRAKS, domestic())
    account = bank.documents.get(ACCOUNT, "kari") or {}
    bank.documents.put(ACCOUNT, {**account, "customerId": (bank.documents.get(ACCOUNT, "even") or {})["customerId"]})
    assert outcome(approve(bank, own)) == "PSU_CREDENTIALS_INVALID"
    firms = initiate(bank, STRAKS, from_firm(), **FIRM)
    agreement = bank.documents.get(AGREEMENT, FIRM_AGREEMENT) or {}
    bank.documents.put(AGREEMENT, {**agreement, "engagements": [], "accounts": []})
    assert outcome(approve(bank, firms, SIRI)) == "PSU_CREDENTIALS_INVALID"
    assert [status(bank, one) for one in (own, firms)] == ["RCVD", "RCVD"]
    assert run_to_end(ledger.reporting(bank))["balanced"]
