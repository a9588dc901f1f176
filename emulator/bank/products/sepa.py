"""SEPA credit transfers (payments.md)."""

from emulator.bank.products import PAYMENTS, TRANSFER_IN_EUROPE, Product
from emulator.bank.scheme import rules

PRODUCT = Product(
    service=PAYMENTS,
    name="sepa-credit-transfers",
    flow="foreign",
    body="SepaTransfer",
    words="SEPA transfer",
    norwegian="SEPA-betaling",
    checks=(rules.only_in("EUR"), rules.iban_creditor, rules.creditor_in_sepa, rules.execution_date),
    issued="PMNT-ICDT-ESCT",
    received="PMNT-RCDT-ESCT",
    code="SEPA-betaling",
    example=TRANSFER_IN_EUROPE,
    verifies_payee=True,
)
