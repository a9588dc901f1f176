"""Instant Norwegian domestic credit transfers, straks (payments.md)."""

from emulator.bank.products import DEBTOR, PAYMENTS, TRANSFER, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=PAYMENTS,
    name="instant-norwegian-domestic-credit-transfers-straks",
    flow="instant",
    body="InstantTransfer",
    words="Instant transfer",
    norwegian="Straksbetaling",
    checks=(rules.only_in("NOK"), rules.straks_limit, rules.norwegian_creditor, rules.norwegian_reference),
    issued="PMNT-IRCT-DMCT",
    received="PMNT-RRCT-DMCT",
    code="Straksbetaling",
    example={**TRANSFER, "debtorAccount": DEBTOR, "creditorAddress": {"country": "NO"}},
    verifies_payee=True,
    instant_headers=True,
)
