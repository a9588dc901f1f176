"""What a definition says in the members of sandbox bodies (CONTRACT 8), said in the fixture's own."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from emulator.bank.founding.entries import DefinitionError, Path, exact
from emulator.bank.sandbox.accounts import booked_among

if TYPE_CHECKING:
    from emulator.bank.founding import definitions as d

_RENAMED = {
    "date": ("booking_date", "bookingDate"),
    "text": ("remittance_information_unstructured", "remittanceInformationUnstructured"),
    "code": ("proprietary_bank_transaction_code", "proprietaryBankTransactionCode"),
}


def own_terms(definition: d.Transaction, currency: str, path: Path) -> d.Transaction:
    """A transaction of an account in `currency` in the fixture's members alone; DefinitionError for two that clash."""
    changed: dict[str, Any] = {}
    for own, (other, shown) in _RENAMED.items():
        value = getattr(definition, other)
        if value is not None and getattr(definition, own) is not None:
            raise DefinitionError((*path, shown), f"Either {own} or {shown} was expected.")
        if value is not None:
            changed[own] = value
    if definition.currency not in (None, currency):
        raise DefinitionError((*path, "currency"), f"The currency of the account was expected, {currency}.")
    return definition.model_copy(update=changed | _other_side(definition, path))


def _other_side(definition: d.Transaction, path: Path) -> dict[str, Any]:
    """The counterparty: the creditor of money that leaves, the debtor of money that comes."""
    amounts = definition.amounts or [definition.amount or Decimal(0)]
    role = "creditor" if amounts[0] < 0 else "debtor"
    name, account = getattr(definition, f"{role}_name"), getattr(definition, f"{role}_account")
    changed: dict[str, Any] = {}
    if name is not None:
        if definition.name is not None:
            raise DefinitionError((*path, f"{role}Name"), f"Either name or {role}Name was expected.")
        changed["name"] = name
    if account is not None:
        if definition.iban is not None or definition.bban is not None:
            raise DefinitionError((*path, f"{role}Account"), f"Either iban and bban or {role}Account was expected.")
        changed |= {"iban": account.iban, "bban": account.bban}
    return changed


def balance_of(definition: d.Account, path: Path) -> Decimal:
    """What is booked on an account: `balance`, or the booked one of `balances`; 0 where neither is told.

    DefinitionError for both, and for balances of which one is not in the account's currency, or finer than that.
    """
    if definition.balances is None:
        return definition.balance or Decimal(0)
    if definition.balance is not None:
        raise DefinitionError((*path, "balances"), "Either balance or balances was expected.")
    _check_balances(definition.balances, definition.currency, path)
    told = [(balance.balance_type or "", balance.balance_amount.amount) for balance in definition.balances]
    return booked_among(told)


def _check_balances(balances: Sequence[d.PostedBalance], currency: str, path: Path) -> None:
    for index, balance in enumerate(balances):
        inner = (*path, "balances", index, "balanceAmount")
        if balance.balance_amount.currency != currency:
            raise DefinitionError((*inner, "currency"), f"The currency of the account was expected, {currency}.")
        exact(balance.balance_amount.amount, currency, (*inner, "amount"))
