"""Standing orders: periodic Norwegian domestic credit transfers (payments.md#standing-orders)."""

from datetime import timedelta

from emulator.bank.products import DEBTOR, PERIODIC, TRANSFER, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=PERIODIC,
    name="norwegian-domestic-credit-transfers",
    flow="standing",
    body="PeriodicTransfer",
    words="Standing order",
    norwegian="Fast betaling",
    checks=(rules.norwegian_creditor, rules.norwegian_reference, rules.period),
    issued="PMNT-ICDT-STDO",
    received="PMNT-RCDT-DMCT",
    code="Fast betaling",
    example={
        **TRANSFER,
        "debtorAccount": DEBTOR,
        "startDate": timedelta(days=14),
        "frequency": "Monthly",
        "executionRule": "following",
        "dayOfExecution": "16",
    },
)
