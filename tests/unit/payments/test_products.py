"""The products are found by their folder; a wrong one stops the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.bank import products
from emulator.bank.errors import BankError
from emulator.discovery import MalformedModule
from tests.unit.payments.world import package_of

GOOD = """
from emulator.bank.products import PAYMENTS, Product

PRODUCT = Product(service=PAYMENTS, name="{name}", flow="{flow}", body="Body", words="Words", norwegian="Ord",
                  checks=(), issued="{code}", received="PMNT-RCDT-DMCT", code="Own",
                  example={{}})
"""


def _load(folder: Path, **files: str) -> dict[tuple[str, str], products.Product]:
    with package_of(folder, files) as (path, name):
        return products.load(path, name)


def _good(name: str = "new-transfers", flow: str = "dated", code: str = "PMNT-ICDT-DMCT") -> str:
    return GOOD.format(name=name, flow=flow, code=code)


def test_every_product_is_there() -> None:
    domestic = "norwegian-domestic-credit-transfers"
    assert set(products.table()) >= {
        ("payments", "instant-norwegian-domestic-credit-transfers-straks"),
        ("payments", domestic),
        ("payments", "sepa-credit-transfers"),
        ("payments", "cross-border-credit-transfers"),
        ("periodic-payments", domestic),
        ("bulk-payments", domestic),
    }


def test_a_product_that_is_not_there_is_unknown() -> None:
    with pytest.raises(BankError) as refused:
        products.find("periodic-payments", "sepa-credit-transfers")
    assert refused.value.code == "PRODUCT_UNKNOWN"


def test_a_file_in_the_folder_is_a_product(tmp_path: Path) -> None:
    assert set(_load(tmp_path, one=_good())) == {("payments", "new-transfers")}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"one": _good(), "two": _good()}, "two is a second payments/new-transfers"),
        ({"one": "PRODUCT = 1"}, "one has no Product"),
        ({"one": ""}, "one has no Product"),
        ({"one": _good(name="New Transfers")}, "one has the name New Transfers"),
        ({"one": _good(code="PMNT")}, None),
        ({"one": _good(code="pmnt-icdt")}, "one has a bank transaction code"),
    ],
)
def test_a_doubled_or_malformed_product_is_refused_by_name(
    tmp_path: Path, files: dict[str, str], message: str | None
) -> None:
    if message is None:
        assert _load(tmp_path, **files)
        return
    with pytest.raises(MalformedModule, match=message):
        _load(tmp_path, **files)
