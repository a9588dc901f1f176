"""Amounts, account numbers, dates and the two languages of the pages."""

from __future__ import annotations

import re
import string
from pathlib import Path

from emulator.bank import products
from emulator.bank.authentication import sca
from emulator.bank.scheme.execution import FREQUENCIES
from emulator.web.pages import wording
from emulator.web.pages.wording import TEXTS


def test_both_languages_of_a_text_have_the_same_places_to_fill_in() -> None:
    def places(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    for key, (norwegian, english) in TEXTS.items():
        assert norwegian.strip(), key
        assert english.strip(), key
        assert places(norwegian) == places(english), key


SAID = re.compile(r"""say\(\s*["'](\w+)["']""")
PAGES = Path(wording.__file__).parent


def test_every_text_that_a_page_names_exists_and_every_text_is_used() -> None:
    sources = [*PAGES.glob("*.py"), *(PAGES.parent / "templates").glob("[ms][yc]*/*.html")]
    written = "".join(file.read_text() for file in sources)
    named = set(SAID.findall(written))
    # a key may be put together of two parts: `payment` and `_title`, `my_state_` and `valid`
    beginnings = tuple(key for key in named if key.endswith("_"))
    assert named - set(beginnings) <= TEXTS.keys()
    unused = [
        key
        for key in TEXTS
        if not key.startswith((*beginnings, "refused", "frequency_", "sca_method_"))
        and not re.search(rf"""["']({key}|_?{key.rpartition("_")[2]}|{key.removeprefix("my_")})["']""", written)
    ]
    assert unused == []


def test_every_method_of_the_bank_has_a_name_in_both_languages() -> None:
    methods = tuple(key.removeprefix("sca_method_") for key in TEXTS if key.startswith("sca_method_"))
    assert tuple(method for method in methods if not method.startswith("hint_")) == sca.METHODS
    assert {f"hint_{method}" for method in sca.METHODS} <= set(methods)


def test_money_is_grouped_as_its_language_does() -> None:
    for amount, language, shown in (
        ("1234567.50", "nb", "1 234 567,50 NOK"),
        ("1234567.50", "en", "1,234,567.50 NOK"),
        ("100", "nb", "100 NOK"),
        ("-1000.00", "en", "−1,000.00 NOK"),
        ("0.05", "en", "0.05 NOK"),
        ("999999999999999.999", "en", "999,999,999,999,999.999 NOK"),
    ):
        assert wording.money(amount, "NOK", language).replace("\u00a0", " ") == shown


def test_account_numbers_are_grouped() -> None:
    for number, shown in (
        ("99901000014", "9990 10 00014"),
        ("NO8599901000014", "NO85 9990 1000 014"),
        ("DE19999999990000123456", "DE19 9999 9999 0000 1234 56"),
        ("545454XXXXXX1234", "545454XXXXXX1234"),
        ("", ""),
    ):
        assert wording.account_number(number).replace("\u00a0", " ") == shown


def test_days_are_written_out() -> None:
    assert wording.day("2026-03-02", "nb") == "2. mars 2026"
    assert wording.day("2026-03-02", "en") == "2 March 2026"
    assert wording.day("soon", "en") == "soon"


def test_moments_are_those_of_oslo() -> None:
    assert wording.moment_in("2026-03-02T08:00:00Z", "nb") == "2. mars 2026 kl. 09:00"
    assert wording.moment_in("2026-07-01T22:30:00Z", "en") == "2 July 2026, 00:30"


STANDING = {
    "service": "periodic-payments",
    "product": "norwegian-domestic-credit-transfers",
    "frequency": "EveryTwoWeeks",
    "startDate": "2026-03-02",
}


def test_kinds_of_payments_are_told_with_dates_as_the_language_writes_them() -> None:
    for line, norwegian, english in (
        ({"service": "payments", "product": "sepa-credit-transfers"}, "SEPA-betaling", "SEPA transfer"),
        (
            STANDING,
            "Fast betaling, annenhver uke fra 2. mars 2026",
            "Standing order, every two weeks from 2 March 2026",
        ),
    ):
        assert wording.payment_kind(line, "nb") == norwegian
        assert wording.payment_kind(line, "en") == english


def test_every_product_and_frequency_has_a_name_in_both_languages() -> None:
    for service, product in products.table():
        line = {"service": service, "product": product}
        assert wording.payment_kind(line, "nb") != wording.payment_kind(line, "en")
    for frequency in FREQUENCIES:
        assert f"frequency_{frequency}" in TEXTS
