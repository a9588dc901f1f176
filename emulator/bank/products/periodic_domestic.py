"""Standing orders: periodic Norwegian domestic credit transfers (CONTRACT 6, Periodic)."""

from emulator.bank.products import PERIODIC, Product
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
)
