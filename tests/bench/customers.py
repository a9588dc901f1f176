"""A TPP with a logged-in customer at a running bank, and its signed requests as bytes, made before they are timed."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from emulator.client import Identity, TppClient
from emulator.client.clients import Options
from tests.bench.harness import raw
from tests.known_state import SEPA


def sepa_payment(debtor: Mapping[str, str]) -> dict[str, Any]:
    """A SEPA payment from an account (`iban`, `currency`) whose JSON has 600 bytes."""
    return {
        "instructedAmount": {"amount": "12.34", "currency": "EUR"},
        "creditorName": "Beispiel Lieferung und Montage Gesellschaft mbH",
        "creditorAccount": {"iban": "DE19999999990000123456", "currency": "EUR"},
        "creditorAddress": {
            "country": "DE",
            "city": "Musterstadt Sued",
            "postalCode": "12345",
            "street": "Beispielweg",
        },
        "debtorAccount": {"iban": debtor["iban"], "currency": debtor["currency"]},
        "endToEndIdentification": "BENCH-00000000001",
        "remittanceInformationUnstructured": (
            "Rechnung 4711, Lieferung vom zweiten Quartal, mit Dank; abzueglich der Gutschrift 17 vom ersten,"
            " siehe unseren Brief vom 21. Februar"
        ),
    }


class Customer:
    """The TPP `demo` with a session for the bank's first private person, or the named one, and its first account.

    `bank`: the name of another than the default bank.
    """

    def __init__(self, port: int, state: Path, *, national_id: str | None = None, bank: str | None = None) -> None:
        self.base = f"http://127.0.0.1:{port}" + ("" if bank is None else f"/banks/{bank}")
        self.client = TppClient(self.base, Identity.from_folder(state / "tpps" / "demo"))
        people = self.control("GET", "people?limit=1000000")["people"][::-1]
        person = next(
            person
            for person in people
            if person["accounts"] and not person["agreements"] and national_id in (None, person["nationalId"])
        )
        self.account = person["accounts"][0]
        tpp = self.control("GET", "tpps")["tpps"][0]["tppId"]
        session = self.control("POST", "sessions", {"tpp": tpp, "nationalId": person["nationalId"]})
        self.client.psu_id, self.client.session_id = session["psuId"], session["tppSessionId"]

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """An operation of /_emulator."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/_emulator/{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def payment(self) -> dict[str, Any]:
        """A SEPA payment from the customer's account."""
        return sepa_payment(self.account)

    def creates(self, count: int) -> list[bytes]:
        """Signed payment initiations, each with its own X-Request-ID."""
        return [self.request("POST", SEPA, json=self.payment()) for _ in range(count)]

    def gets(self, path: str, count: int) -> list[bytes]:
        """Signed reads of `path`, each with its own X-Request-ID."""
        return [self.request("GET", path) for _ in range(count)]

    def a_payment(self) -> str:
        """The id of a new payment."""
        answer = self.client.post(SEPA, json=self.payment())
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {answer.text}")
        return str(answer.json()["paymentId"])

    def request(self, method: str, path: str, **options: Unpack[Options]) -> bytes:
        """One signed request."""
        prepared = self.client.prepare(method, path, **options)
        return raw(prepared.method, prepared.target, prepared.headers, prepared.body)
