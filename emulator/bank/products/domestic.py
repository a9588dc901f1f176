"""Norwegian domestic credit transfers (payments.md)."""

from emulator.bank.products import DEBTOR, PAYMENTS, TRANSFER, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=PAYMENTS,
    name="norwegian-domestic-credit-transfers",
    flow="dated",
    body="DomesticTransfer",
    words="Transfer",
    norwegian="Betaling",
    checks=(rules.norwegian_creditor, rules.norwegian_reference, rules.execution_date),
    issued="PMNT-ICDT-DMCT",
    received="PMNT-RCDT-DMCT",
    code="Overføring",
    example={**TRANSFER, "debtorAccount": DEBTOR},
    known_issue=True,
)
