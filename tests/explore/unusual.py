"""Merchants that behave, each in an unusual way that is right all the same: none may be blamed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.explore.merchant import GaveUp, Merchant, Order


class ReadsEveryDetail(Merchant):
    """Reads the details of every transaction, in both readings: hundreds of requests."""

    def read_whole(self, account: dict[str, Any]) -> int:
        self.transactions = account["_links"]["transactions"]["href"]
        return super().read_whole(account)

    def record(self, known: dict[str, Any], booked: list[dict[str, Any]]) -> None:
        super().record(known, booked)
        for entry in booked:
            self.ask("GET", f"{self.transactions}/{entry['transactionId']}", wants=("transactionsDetails", dict))


class ListsTheBalances(Merchant):
    """Reads the balances one by one, and later all of them with the list of accounts."""

    def read(self) -> None:
        super().read()
        answer = self.ask("GET", "/v1/accounts?withBalance=true", wants=("accounts", list))
        for account in answer.json()["accounts"] if answer.status == 200 else ():
            booked = next(one for one in account["balances"] if one["balanceType"] == "closingBooked")
            self.known_account(account)["balance"] = booked["balanceAmount"]["amount"]


class ReadsInParallel(Merchant):
    """Sends the requests for all accounts before it looks at an answer."""

    def read(self) -> None:
        for account in self.log_in().json()["accounts"]:
            for name in ("balances", "transactions"):
                self.ask("GET", account["_links"][name]["href"])


class SignsOneByOne(Merchant):
    """Has no baskets: the customer signs each payment."""

    def sign_basket(self, number: int, orders: list[Order]) -> None:
        for order in orders:
            self.sign(order, order["sca"])


class NamesNoOrder(Merchant):
    """Sends what ISO 20022 has for an order without an id."""

    def terms(self, number: int, part: int = 0) -> dict[str, Any]:
        return {**super().terms(number, part), "endToEndIdentification": "NOTPROVIDED"}


class TriesThreeTimes(Merchant):
    """Reads a status twice, and once more at the end, where each may be sent three times."""

    most_reads = 2

    def ask(self, method: str, path: str, **options: Any) -> Any:
        self.tries = 3 if path.endswith("/status") else 24
        return super().ask(method, path, **options)

    def catch_up(self) -> None:
        for order in self.orders.values():
            with suppress(GaveUp):
                self.look_at(order)
