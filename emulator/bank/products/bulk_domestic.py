"""Bulks of Norwegian domestic credit transfers; the checks are those of each entry (payments.md#bulk-payments)."""

from emulator.bank.products import BULK, DEBTOR, TRANSFER, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=BULK,
    name="norwegian-domestic-credit-transfers",
    flow="batch",
    body="BulkTransfer",
    words="Bulk payment",
    norwegian="Masseutbetaling",
    checks=(rules.norwegian_creditor, rules.norwegian_reference),
    whole=(rules.execution_date,),
    issued="PMNT-ICDT-DMCT",
    received="PMNT-RCDT-DMCT",
    code="Masseutbetaling",
    example={"debtorAccount": DEBTOR, "batchBookingPreferred": True, "payments": [TRANSFER]},
)
