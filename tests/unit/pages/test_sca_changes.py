"""What is behind an SCA changes while its page is open: it ends with a redirect, and never in a fault of the bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from emulator.bank.authentication import sca, sca_control
from emulator.bank.bank import Bank
from emulator.bank.customers import people, sessions
from emulator.bank.kinds import ACCOUNT, CARD, CONSENT, PAYMENT, SESSION
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import customers as sandbox_customers
from emulator.bank.threads import run_to_end
from tests.known_state import KARI as PAYER
from tests.known_state import STRAKS
from tests.unit.pages.living import DEBTOR, Living, living, straks
from tests.unit.pages.people import FIRM, KARI, OLA, open_access
from tests.unit.pages.visitor import Page, Visitor

Change = Callable[..., object]


def customer_of(bank: Bank, person: str) -> str:
    return str((people.customer(bank, person) or {})["id"])


def replace_customer(bank: Bank, person: str, number: str, kind: str) -> None:
    body = {"customerNumber": number, "name": "K", "type": kind}
    sandbox_customers.replace_customer(bank, customer_of(bank, person), body)


def renumber(bank: Bank, person: str = KARI) -> None:
    replace_customer(bank, person, "12345678", "private")


def make_corporate(bank: Bank, person: str = KARI) -> None:
    replace_customer(bank, person, person, "corporate")


def delete_customer(bank: Bank, person: str = KARI) -> None:
    run_to_end(sandbox_customers.deleting_customer(bank, customer_of(bank, person)))


def delete_agreement(bank: Bank) -> None:
    sandbox_customers.delete_agreement(bank, FIRM)


def standing_at(bank: Bank, visitor: Visitor, step: str, **known: str) -> Page:
    """The page of a step, with Kari identified and acting as the request (else she herself) says."""
    acting = FIRM if known.get("context") == "CORPORATE" else "PRIVATE"
    page = visitor.get(f"/sca/{open_access(bank, **known)}")
    chosen = {"identity": {"nationalId": KARI}, "method": {"method": "HA2"}, "context": {"acting": acting}}
    while f'name="step" value="{step}"' not in page.source:
        shown = next(name for name in chosen if f'name="step" value="{name}"' in page.source)
        page = visitor.get(visitor.submit(page, **chosen[shown]).headers["location"])
    return page


def code_of(page: Page) -> str | None:
    """What a redirect tells the TPP; None for any other answer."""
    return code_in(page.headers.get("location", "")) if page.status == 303 else None


def code_in(redirect: str) -> str | None:
    return parse_qs(urlsplit(redirect).query).get("code", [None])[0]


CANNOT_GO_ON: list[tuple[Change, str, str | None]] = [
    *((change, step, None) for change in (delete_customer, renumber) for step in ("method", "context", "approve")),
    *((make_corporate, step, "PRIVATE") for step in ("method", "approve")),
    *((delete_agreement, step, "CORPORATE") for step in ("method", "approve")),
]


@pytest.mark.parametrize(
    ("change", "step", "context", "how"),
    [
        *((*case, "continue") for case in CANNOT_GO_ON),
        *((delete_customer, "approve", None, how) for how in ("get", "approve", "decline")),
        (delete_agreement, "method", "CORPORATE", "get"),
    ],
)
def test_a_customer_who_cannot_go_on_ends_the_sca(
    bank: Bank, visitor: Visitor, change: Change, step: str, context: str | None, how: str
) -> None:
    page = standing_at(bank, visitor, step, **({"context": context} if context else {}))
    change(bank)
    token = page.forms[-1].action.rpartition("/")[2]
    answer = visitor.get(f"/sca/{token}") if how == "get" else visitor.submit(page, action=how)
    assert code_of(answer) == "PSU_CREDENTIALS_INVALID"
    assert (sca.get(bank, token) or {})["status"] == "failed"
    assert visitor.get(f"/sca/{token}").status == 410


@pytest.mark.parametrize("how", ["get", "post", "control"])
def test_an_agreement_that_was_chosen_and_is_gone_gives_no_session(bank: Bank, visitor: Visitor, how: str) -> None:
    page = standing_at(bank, visitor, "context")
    token = page.forms[-1].action.rpartition("/")[2]
    page = visitor.get(visitor.submit(page, acting=FIRM).headers["location"])
    assert "Driftskonto" in page.text
    delete_agreement(bank)
    if how == "control":
        redirect = sca_control.approve(bank, sca_control.find(bank, token))
        assert redirect is not None
        assert "code=PSU_CREDENTIALS_INVALID" in redirect
    else:
        answer = visitor.get(f"/sca/{token}") if how == "get" else visitor.submit(page, action="approve")
        assert code_of(answer) == "PSU_CREDENTIALS_INVALID"
    assert bank.documents.count(SESSION) == bank.documents.count(CONSENT) == 0


def test_who_takes_the_place_of_an_identified_customer_does_not_inherit_its_choice(
    bank: Bank, visitor: Visitor
) -> None:
    page = standing_at(bank, visitor, "context")
    visitor.submit(page, acting=FIRM)
    sca_control.approve(bank, sca_control.find(bank, "latest"), national_id=OLA)
    [session] = bank.documents.all(SESSION)
    assert (session["nationalId"], session["context"], session["agreement"]) == (OLA, "PRIVATE", None)


def test_a_context_that_is_gone_is_not_offered_again_and_the_others_are(bank: Bank, visitor: Visitor) -> None:
    page = standing_at(bank, visitor, "context")
    delete_agreement(bank)
    page = visitor.get(visitor.submit(page, acting=FIRM, action="continue").headers["location"])
    assert "Brukskonto" in page.text
    assert "context=PRIVATE" in visitor.submit(page, action="approve").headers["location"]


def test_an_account_that_is_deleted_while_it_is_ticked_is_asked_about_again(bank: Bank, visitor: Visitor) -> None:
    page = standing_at(bank, visitor, "approve", context="PRIVATE")
    for account in ("a-1", "a-2"):
        run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, account))
    run_to_end(sandbox_accounts.deleting(bank, CARD, "k-1"))
    again = visitor.submit(page, action="approve")
    assert (again.status, "Brukskonto" in again.text) == (400, False)
    assert "psu-id=" in visitor.submit(again, action="approve").headers["location"]


# In a whole emulator


@pytest.fixture
def emulator() -> Iterator[Living]:
    """Its TPP knows the payer already."""
    with living() as running:
        known = sessions.seed(running.service.bank, tpp_id="PSDNO-SBX-demo", national_id=PAYER)
        running.tpp.psu_id = known["psuId"]
        yield running


def body_of(emulator: Living, method: str, path: str, **options: Any) -> Any:
    headers_sent = {"TPP-Redirect-URI": "https://tpp.example/back", "X-PSU-AuthMethod-Preferred": "HA2"}
    answer = emulator.call(method, path, headers={"PSU-Context": "PRIVATE", **headers_sent}, **options)
    return json.loads(answer.body) if answer.body else None


def awaiting(emulator: Living, what: str) -> tuple[Page, list[str]]:
    """The page where the payer approves a payment or a basket of two, and the ids of its payments."""
    payments = [body_of(emulator, "POST", STRAKS, json=straks()) for _ in range(2 if what == "basket" else 1)]
    ids = [one["paymentId"] for one in payments]
    opened = (
        body_of(emulator, "POST", "/v1/signing-baskets", json={"paymentIds": ids}) if what == "basket" else payments[0]
    )
    browser = emulator.visitor()
    page = browser.get(urlsplit(opened["_links"]["scaRedirect"]["href"]).path)
    page = browser.get(browser.submit(page, nationalId=PAYER).headers["location"])
    assert "Even Eksempel" in page.text
    return page, ids


@pytest.mark.parametrize(
    ("change", "what", "how"),
    [
        *((delete_customer, "payment", how) for how in ("get", "approve", "decline", "control")),
        *((delete_customer, "basket", how) for how in ("get", "approve")),
        (renumber, "payment", "control"),
        (make_corporate, "basket", "decline"),
    ],
)
def test_a_payer_who_is_gone_approves_and_declines_nothing(
    emulator: Living, change: Change, what: str, how: str
) -> None:
    page, ids = awaiting(emulator, what)
    bank, browser = emulator.service.bank, emulator.visitor()
    change(bank, PAYER)
    if how == "control":
        code = code_in(sca_control.reject(bank, sca_control.find(bank, page.forms[-1].action.rpartition("/")[2])))
    else:
        code = code_of(browser.get(page.forms[-1].action) if how == "get" else browser.submit(page, action=how))
    assert code == "PSU_CREDENTIALS_INVALID"
    assert {(bank.documents.get(PAYMENT, one) or {})["status"] for one in ids} == {"RCVD"}


@pytest.mark.parametrize("what", ["payment", "basket"])
def test_an_account_that_is_gone_leaves_a_page_and_a_redirect(emulator: Living, what: str) -> None:
    page, _ = awaiting(emulator, what)
    bank, browser = emulator.service.bank, emulator.visitor()
    run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, bank.documents.find(ACCOUNT, bban=DEBTOR)[0]["id"]))
    assert browser.get(page.forms[-1].action).status == 200
    assert browser.submit(page, action="approve").headers["location"].startswith("https://tpp.example/back?")


@pytest.mark.parametrize("what", ["payment", "basket"])
@pytest.mark.parametrize("how", ["approve", "decline", "reject"])
def test_a_payment_that_a_repair_dropped_leaves_a_redirect(emulator: Living, what: str, how: str) -> None:
    page, [dropped, *others] = awaiting(emulator, what)
    bank, browser = emulator.service.bank, emulator.visitor()
    bank.documents.delete(PAYMENT, dropped)
    if how == "reject":
        answer = sca_control.reject(bank, sca_control.find(bank, page.forms[-1].action.rpartition("/")[2]))
    else:
        answer = browser.submit(page, action=how).headers["location"]
    assert str(answer).startswith("https://tpp.example/back?")
    wanted = "RJCT" if how != "approve" else "ACTC"
    assert {(bank.documents.get(PAYMENT, one) or {})["status"] for one in others} <= {wanted, "ACSC", "ACSP"}


def test_a_payment_that_is_deleted_uses_up_its_page(emulator: Living) -> None:
    page, [payment_id] = awaiting(emulator, "payment")
    body_of(emulator, "DELETE", f"{STRAKS}/{payment_id}")
    assert emulator.visitor().get(page.forms[-1].action).status == 410
    assert emulator.visitor().submit(page, action="approve").status == 410


def test_a_basket_whose_payments_are_deleted_one_by_one_approves_the_rest(emulator: Living) -> None:
    page, ids = awaiting(emulator, "basket")
    bank, browser = emulator.service.bank, emulator.visitor()
    body_of(emulator, "DELETE", f"{STRAKS}/{ids[0]}")
    assert browser.get(page.forms[-1].action).text.count("Even Eksempel") == 1
    body_of(emulator, "DELETE", f"{STRAKS}/{ids[1]}")
    assert code_of(browser.get(page.forms[-1].action)) == "SCA_INVALID"
    assert {(bank.documents.get(PAYMENT, one) or {})["status"] for one in ids} == {"CANC"}


@pytest.mark.parametrize("how", ["get", "approve", "decline"])
def test_a_payment_that_another_authorisation_signed_awaits_no_approval(emulator: Living, how: str) -> None:
    page, [payment_id] = awaiting(emulator, "payment")
    body_of(emulator, "POST", f"{STRAKS}/{payment_id}/authorisations")
    bank, browser = emulator.service.bank, emulator.visitor()
    sca_control.approve(bank, sca_control.find(bank, payment_id), national_id=PAYER)
    signed = bank.documents.get(PAYMENT, payment_id)
    answer = browser.get(page.forms[-1].action) if how == "get" else browser.submit(page, action=how)
    assert code_of(answer) == "SCA_INVALID"
    assert bank.documents.get(PAYMENT, payment_id) == signed
    assert browser.get(page.forms[-1].action).status == 410
