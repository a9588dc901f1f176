"""Verification of payee: how names are compared, and what becomes of a payment (setting `payee_check`)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, CUSTOMER, PAYMENT
from emulator.bank.payment import payee
from tests.known_state import EVEN
from tests.unit.payments import world
from tests.unit.payments.world import DOMESTIC, SEPA, STRAKS, domestic, initiate, sepa

NAMES = st.text(max_size=70)


def test_a_name_matches_the_holder() -> None:
    for name, holder, match in (
        ("Kari Kladd", "Kari Kladd", "MTCH"),
        ("  KARI   kladd ", "Kari Kladd", "MTCH"),
        ("Jose O'Neil-Garcia", "José O’Neil García", "MTCH"),
        ("Provebakeriet", "Prøvebakeriet AS", "MTCH"),
        ("Prøvebakeriet A/S", "Prøvebakeriet AS", "MTCH"),
        ("Muster Verlag G.m.b.H.", "Muster Verlag", "MTCH"),
        ("Strasse Æsir", "Straße Aesir", "MTCH"),
        ("AS", "AS", "MTCH"),
        ("Kladd Kari", "Kari Kladd", "CMTC"),
        ("Kladd, Kari Marie", "Kari Marie Kladd", "CMTC"),
        ("K. Kladd", "Kari Kladd", "CMTC"),
        ("Kari M Kladd", "Kari Kladd", "CMTC"),
        ("Kari Marie Kladd", "Kari M. Kladd", "CMTC"),
        ("Kari Klad", "Kari Kladd", "CMTC"),
        ("Kari Klodd", "Kari Kladd", "CMTC"),
        ("Prøvebakeri AS", "Prøvebakeriet AS", "CMTC"),
        ("Kari", "Kari Kladd", "NMTC"),
        ("Kladd", "Kari Kladd", "NMTC"),
        ("K K", "Kari Kladd", "NMTC"),
        ("Even Eksempel", "Kari Kladd", "NMTC"),
        ("Eva Nordmann", "Ola Nordmann", "NMTC"),
        ("AS", "Prøvebakeriet AS", "NMTC"),
        ("---", "Kari Kladd", "NMTC"),
        ("---", "...", "NMTC"),
    ):
        assert payee.compare(name, holder) == payee.compare(holder, name) == match


@given(NAMES, NAMES)
def test_it_does_not_matter_which_name_is_whose(one: str, other: str) -> None:
    assert payee.compare(one, other) == payee.compare(other, one)


@given(NAMES)
def test_a_name_matches_itself_however_it_is_written(name: str) -> None:
    if payee.words(name):
        assert payee.compare(name, f"  {name}\t") == "MTCH"
        assert payee.compare(name, name.casefold()) == "MTCH"


def to_even(name: str) -> dict[str, Any]:
    return domestic(to="99901100019", creditorName=name)


def verified(bank: Bank, product: tuple[str, str], body: dict[str, Any], **more: Any) -> tuple[Any, list[str]]:
    """What a creation stores of the verification, and the texts of its warnings."""
    payment = bank.documents.get(PAYMENT, initiate(bank, product, body, **more))
    assert payment is not None
    stored = payment.get("payeeVerification")
    warned = [] if stored is None else payee.warnings(stored)
    assert all((one.category, one.code, one.path) == ("WARNING", "PAYMENT_FAILED", "creditorName") for one in warned)
    return stored, [one.text for one in warned]


@pytest.mark.parametrize(
    "name, result, warns",
    [
        ("even eksempel", {"partyNameMatch": "MTCH"}, []),
        ("E Eksempel", {"partyNameMatch": "CMTC", "matchedName": "Even Eksempel"}, ["Even Eksempel"]),
        ("Nobody", {"partyNameMatch": "NMTC"}, ["NMTC"]),
    ],
)
def test_warn_makes_the_payment_and_says_what_was_seen(
    bank: Bank, name: str, result: dict[str, str], warns: list[str]
) -> None:
    bank.change_settings({"payee_check": "warn"})
    answer, texts = verified(bank, STRAKS, to_even(name))
    assert answer == result
    assert len(texts) == len(warns)
    assert all(warning in text for warning, text in zip(warns, texts, strict=True))


@pytest.mark.parametrize("check", ["warn", "refuse"])
def test_an_account_elsewhere_cannot_be_verified_and_is_never_refused(bank: Bank, check: str) -> None:
    bank.change_settings({"payee_check": check})
    for product, body, who in ((STRAKS, domestic(), world.KARI), (SEPA, sepa(), EVEN)):
        result, (text,) = verified(bank, product, body, who=who)
        assert result == {"partyNameMatch": "NOAP"}
        assert text.startswith("NOAP")


@pytest.mark.parametrize(
    "name, message_part",
    [("E Eksempel", "CMTC: the name is similar to that of the account's holder, Even"), ("Nobody", "NMTC")],
)
def test_refuse_refuses_a_name_that_does_not_match(bank: Bank, name: str, message_part: str) -> None:
    bank.change_settings({"payee_check": "refuse"})
    for product, body, who in (
        (STRAKS, to_even(name), world.KARI),
        (SEPA, sepa(to="NO4299901100019", creditorName=name), EVEN),
    ):
        with pytest.raises(BankError) as refused:
            initiate(bank, product, body, who=who)
        (message,) = refused.value.messages
        assert (message.code, message.path, message.category) == ("PAYMENT_FAILED", "creditorName", "ERROR")
        assert message_part in message.text
    assert bank.documents.count(PAYMENT) == 0
    assert verified(bank, STRAKS, to_even("Even Eksempel")) == ({"partyNameMatch": "MTCH"}, [])


def test_only_straks_and_sepa_are_verified(bank: Bank) -> None:
    bank.change_settings({"payee_check": "refuse"})
    assert verified(bank, DOMESTIC, to_even("Nobody")) == (None, [])
    having = {product.name for product in products.table().values() if product.verifies_payee}
    assert having == {SEPA[1], STRAKS[1]}


def test_each_owner_of_a_joint_account_is_its_holder(bank: Bank) -> None:
    bank.change_settings({"payee_check": "warn"})
    account = bank.documents.first(ACCOUNT, bban="99901100019")
    kari = bank.documents.first(CUSTOMER, customerNumber=world.KARI)
    assert account is not None
    assert kari is not None
    bank.documents.put(ACCOUNT, {**account, "owners": [kari["id"]]})
    for name in ("Even Eksempel", "Kari Kladd"):
        assert verified(bank, STRAKS, to_even(name)) == ({"partyNameMatch": "MTCH"}, [])
    result, _ = verified(bank, STRAKS, to_even("K Kladd"))
    assert result == {"partyNameMatch": "CMTC", "matchedName": "Kari Kladd"}
    assert verified(bank, STRAKS, to_even("Nobody"))[0] == {"partyNameMatch": "NMTC"}
