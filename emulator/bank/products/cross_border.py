"""Cross-border credit transfers: any currency, the creditor by IBAN or by another account number."""

from emulator.bank.products import PAYMENTS, TRANSFER_IN_EUROPE, Product
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
    example={
        **TRANSFER_IN_EUROPE,
        "instructedAmount": {"amount": "75.00", "currency": "USD"},
        "creditorAgent": "EXAMUS33",
        "creditorAccount": {"bban": "000123456789", "currency": "USD"},
    },
    crosses_border=True,
)
