"""Cross-border credit transfers: any currency, the creditor by IBAN or by another account number (CONTRACT 13)."""

from emulator.bank.products import PAYMENTS, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=PAYMENTS,
    name="cross-border-credit-transfers",
    flow="foreign",
    body="CrossBorderTransfer",
    words="Transfer abroad",
    norwegian="Betaling til utlandet",
    checks=(rules.iban_creditor, rules.execution_date),
    issued="PMNT-ICDT-XBCT",
    received="PMNT-RCDT-XBCT",
    code="Utenlandsbetaling",
    crosses_border=True,
)
