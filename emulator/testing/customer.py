"""A customer of the bank, as a test acts for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.payment import self_service


class BankCustomer:
    """A customer at its own page (`/my`), one method for each action.

    Raises BankError for a person or a thing that does not exist or belongs to somebody else.
    """

    def __init__(self, change: Callable[[Callable[[Bank], Any]], Any], national_id: str) -> None:
        self._change = change
        self.national_id = national_id

    def view(self) -> dict[str, Any]:
        """All that the page shows: `{nationalId, name, contexts, payments, consents}`."""
        shown: dict[str, Any] = self._call(self_service.overview)
        return shown

    def accounts(self) -> list[dict[str, Any]]:
        """The accounts and cards of every context."""
        return [account for context in self.view()["contexts"] for account in context["accounts"]]

    def consents(self) -> list[dict[str, Any]]:
        """The consents: name of the TPP, shared accounts, last use, unattended reads of the last 24 hours."""
        return list(self.view()["consents"])

    def payments(self) -> list[dict[str, Any]]:
        """The payments and cancellations that wait for approval by this customer."""
        return list(self.view()["payments"])

    def approve(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Approve a payment (or its cancellation) at the bank; returns its new status."""
        status: str | None = self._call(self_service.approve, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def decline(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Decline a payment (or its cancellation); returns its new status."""
        status: str | None = self._call(self_service.decline, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def withdraw(self, consent_id: str | None = None) -> None:
        """Withdraw a consent; None: all valid ones."""
        valid = [consent["consentId"] for consent in self.consents() if consent["status"] == "valid"]
        for identity in valid if consent_id is None else [consent_id]:
            self._call(self_service.withdraw, identity)

    def _call(self, act: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self._change(lambda bank: act(bank, self.national_id, *arguments, **named))
