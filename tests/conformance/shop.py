"""A small TPP that behaves: it pays, cancels and reads accounts, and says what it believes. Mutants change one thing.

It is written against a `World` that sends its requests and lets time pass, so that it can be judged without a socket.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from emulator.client.clients import TppResponse
from emulator.client.tpp import Prepared, Tpp

FINAL = {"ACSC", "RJCT", "CANC", "PART"}
FAILED = {"RJCT", "CANC"}
SEPA = "/v1/payments/sepa-credit-transfers"


class World(Protocol):
    """What surrounds the TPP: the bank at the other end of the wire, time, and the customer's browser."""

    def send(self, prepared: Prepared) -> TppResponse | None:
        """The bank's answer; None when the connection was closed without one."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass, in which the customer acts."""
        ...

    def browse(self, link: str) -> None:
        """Send the customer's browser to an address."""
        ...

    def customer_is_there(self) -> bool:
        """Whether the customer uses the TPP right now."""
        ...


class GaveUp(Exception):
    """The TPP cannot go on."""


class Shop:
    """The good TPP. `task` and `debtor` are what the plan's environment says."""

    certificate = "demo"
    address = "203.0.113.7"
    pace = 2.0  # seconds between two reads of a status
    most_reads = 15
    most_refused = 3

    def __init__(self, world: World, tpp: Tpp, *, task: str, debtor: str) -> None:
        self.world = world
        self.tpp = tpp
        self.task = task
        self.debtor = debtor
        self.flows: dict[str, str | None] = {}  # state -> where the browser came back to
        self.state = ""
        self.payments: dict[str, str] = {}
        self.accounts: dict[str, dict[str, Any]] = {}  # by IBAN
        self.ibans: dict[str, str] = {}  # by resourceId, of which an account has several
        self.tpp.notification_uri = "https://shop.example/notifications"

    def notified(self, body: dict[str, Any]) -> None:
        """A notification came: somebody says that there is something to read, and the status is read anyway."""

    # The customer's return

    def start_flow(self) -> None:
        """A redirect address with a state of its own."""
        self.state = uuid.uuid4().hex
        self.flows[self.state] = None
        self.tpp.redirect_uri = f"https://shop.example/return?state={self.state}"

    def returned(self, redirect: str) -> None:
        """The browser came to the redirect address."""
        query = {name: values[-1] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if self.flows.get(query.get("state", "")) is None and query.get("state") in self.flows:
            self.flows[query["state"]] = redirect
            self.take_over(redirect)

    def take_over(self, redirect: str) -> None:
        """Take psu-id and session from a return."""
        self.tpp.remember(redirect)

    # Requests

    def headers(self) -> dict[str, str | None]:
        """Headers of every request."""
        return {"PSU-IP-Address": self.customer_address() if self.world.customer_is_there() else None}

    def customer_address(self) -> str:
        """The customer's address."""
        return self.address

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        """A signed request."""
        headers = {**self.headers(), "X-Request-ID": self.request_id(), **(options.pop("headers", None) or {})}
        return self.tpp.prepare(method, path, headers=headers, **options)

    def request_id(self) -> str:
        """An X-Request-ID for the next request."""
        return str(uuid.uuid4())

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        """Send a request; what is lost is sent again as it is, a bank that is down is asked again later."""
        prepared = self.prepare(method, path, **options)
        for attempt in range(6):
            answer = self.send(prepared)
            if answer is None:
                prepared = self.repeated(prepared, method, path, options)
            elif answer.status == 503:
                self.back_off(attempt)
                headers = {**(options.get("headers") or {}), "X-Request-ID": prepared.headers["X-Request-ID"]}
                prepared = self.prepare(method, path, **{**options, "headers": headers})
            else:
                return answer
        return self.gave_up()

    def gave_up(self) -> TppResponse:
        """What becomes of a request that never was answered."""
        raise GaveUp

    def repeated(self, prepared: Prepared, method: str, path: str, options: dict[str, Any]) -> Prepared:
        """The request to send again when the answer was lost."""
        return prepared

    def back_off(self, attempt: int) -> None:
        """Wait before the bank that is down is asked again."""
        self.world.wait(5.0 * 2**attempt)

    def send(self, prepared: Prepared) -> TppResponse | None:
        """One request over the wire."""
        return self.world.send(prepared)

    # Tasks

    def run(self) -> None:
        """Do the task."""
        tasks = {
            "pay": self.pay,
            "pay-and-cancel": self.pay_and_cancel,
            "read": self.read,
            "read-unattended": self.read_unattended,
        }
        with suppress(GaveUp):
            tasks[self.task]()

    def order(self) -> dict[str, Any]:
        """The body of a payment."""
        return {
            "instructedAmount": {"amount": "12.50", "currency": "EUR"},
            "creditorName": "Muster Verlag",
            "creditorAccount": {"iban": "DE19999999990000123456", "currency": "EUR"},
            "debtorAccount": {"iban": self.debtor, "currency": "NOK"},
        }

    def create(self) -> TppResponse:
        """Order the payment; an answer whose Digest does not fit is asked for again."""
        self.start_flow()
        prepared = self.prepare("POST", SEPA, json=self.order(), headers=self.customer())
        answer = self.send(prepared)
        for _ in range(2):
            if answer is not None and self.trusted(answer):
                break
            prepared = self.repeated(prepared, "POST", SEPA, {"json": self.order()}) if answer is None else prepared
            answer = self.send(prepared)
        if answer is None:
            raise GaveUp
        return answer

    def customer(self) -> dict[str, str | None]:
        """Who pays: the PSU-ID, or the identity number as long as there is none."""
        return {} if self.tpp.psu_id else {"X-PSU-IDENTITY": self.world.national_id, "PSU-Context": "PRIVATE"}  # type: ignore[attr-defined]

    def trusted(self, answer: TppResponse) -> bool:
        """Whether the answer's Digest is that of its body, where it has one."""
        import base64
        import hashlib

        digest = answer.headers.get("Digest")
        true = base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
        return digest is None or digest.partition("=")[2] == true

    def pay(self) -> None:
        """Order, send the customer to the bank, and follow the payment to its end."""
        answer = self.create()
        if answer.status != 201:
            self.refused(answer)
            return
        body = answer.json()
        payment = body["paymentId"]
        self.payments[payment] = "open"
        self.approve(body["_links"]["scaRedirect"]["href"])
        self.follow(payment, body["_links"]["status"]["href"])

    def refused(self, answer: TppResponse) -> None:
        """The bank refused the order: nothing is sent again."""

    def approve(self, link: str) -> None:
        """Send the customer to the bank and wait for the return."""
        self.world.browse(link)
        for _ in range(5):
            if self.flows[self.state] is not None:
                return
            self.world.wait(1.0)

    def follow(self, payment: str, status: str) -> None:
        """Read the status until it is final, more slowly each time."""
        for read in range(self.most_reads):
            answer = self.ask("GET", status, headers=self.customer())
            if answer.status == 200:
                self.believe(payment, answer.json().get("transactionStatus"))
                if self.ended(answer.json().get("transactionStatus")):
                    return
            elif self.hopeless(answer):
                return
            self.world.wait(self.pace + read)

    def hopeless(self, answer: TppResponse) -> bool:
        """Whether asking again would change nothing."""
        return 400 <= answer.status < 500

    def ended(self, status: str | None) -> bool:
        """Whether the status is final."""
        return status in FINAL

    def believe(self, payment: str, status: str | None) -> None:
        """Note what a status means for the order."""
        self.payments[payment] = "paid" if status == "ACSC" else "failed" if status in FAILED else "open"

    def pay_and_cancel(self) -> None:
        """Pay, then cancel while the payment waits."""
        answer = self.create()
        body = answer.json()
        self.approve(body["_links"]["scaRedirect"]["href"])
        address = body["_links"]["self"]["href"]
        self.world.wait(2.0)
        deleted = self.ask("DELETE", address)
        if deleted.status == 202:
            self.cancel(deleted.json())

    def cancel(self, body: dict[str, Any]) -> None:
        """Start the cancellation authorisation and send the customer there."""
        self.start_flow()
        started = self.ask("POST", body["_links"]["startAuthorisation"]["href"])
        if started.status == 201:
            self.approve(started.json()["_links"]["scaRedirect"]["href"])

    def log_in(self) -> TppResponse:
        """Read the accounts, through an SCA where the bank asks for one."""
        self.start_flow()
        answer = self.ask("GET", "/v1/accounts", headers=self.context())
        link = (answer.json().get("_links") or {}).get("scaRedirect")
        if answer.status == 401 and link:
            self.waiting(link["href"])
            answer = self.ask("GET", "/v1/accounts")
        if answer.status != 200:
            raise GaveUp
        return answer

    def context(self) -> dict[str, str | None]:
        """The context of the first read."""
        return {"PSU-Context": self.world.context}  # type: ignore[attr-defined]

    def waiting(self, link: str) -> None:
        """Send the customer to the bank, and wait without asking again."""
        self.approve(link)

    def read(self) -> None:
        """Read accounts, balances and all pages of transactions, twice."""
        for _ in range(2):
            listed = self.log_in() if not self.accounts else self.ask("GET", "/v1/accounts")
            if self.expired(listed):
                listed = self.log_in()
            if self.stopped(listed):
                return
            for account in self.listed(listed.json()["accounts"]):
                answer = self.read_account(account)
                if self.expired(answer):
                    break
                if self.stopped(answer):
                    return
            self.world.wait(60.0)

    def listed(self, accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The accounts to read, as the bank lists them now."""
        return accounts

    def expired(self, answer: TppResponse) -> bool:
        """Whether only the session is over, which the customer renews."""
        return answer.status == 401 and answer.json()["tppMessages"][0]["code"] == "SCA_EXPIRED"

    def stopped(self, answer: TppResponse) -> bool:
        """Whether there is nothing more to read: the consent is gone."""
        return answer.status == 401

    def read_account(self, account: dict[str, Any]) -> TppResponse:
        """The balance and every transaction of an account."""
        links = account["_links"]
        answer = self.ask("GET", links["balances"]["href"])
        if answer.status != 200:
            return answer
        booked = next(b for b in answer.json()["balances"] if b["balanceType"] == "closingBooked")
        self.ibans[account["resourceId"]] = account["iban"]
        believed = self.accounts.setdefault(account["iban"], {"transactions": {}})
        believed["balance"] = self.balance(booked["balanceAmount"]["amount"])
        link = self.first_page(links["transactions"]["href"])
        while link:
            answer = self.ask("GET", link)
            if answer.status != 200:
                return answer
            page = answer.json()["transactions"]
            self.record(believed["transactions"], page["booked"])
            link = self.next_page(link, page)
        return answer

    def balance(self, amount: str) -> str:
        """The balance as it is kept."""
        return str(Decimal(amount))

    def first_page(self, link: str) -> str:
        """The address of the first page: by default of a hundred transactions, of the last 90 days."""
        return link

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        """The address of the next page, None behind the last."""
        return (page.get("_links") or {}).get("next", {}).get("href")

    def record(self, known: dict[str, Any], booked: list[dict[str, Any]]) -> None:
        """Keep what is booked, each once whatever its id is today."""
        for entry in booked:
            key = (
                entry["valueDate"],
                entry["transactionAmount"]["amount"],
                entry.get("creditorName"),
                entry.get("debtorName"),
            )
            known.setdefault(str(key), entry)

    def read_unattended(self) -> None:
        """Read with the customer once, then four times without, and again as time goes by."""
        listed = self.log_in()
        account = listed.json()["accounts"][0]
        self.world.wait(1.0)  # here the customer leaves
        for _ in range(self.unattended_reads()):
            answer = self.ask("GET", self.unattended_page(account["_links"]["transactions"]["href"]))
            if answer.status in (401, 429):
                return
            self.world.wait(1.0)
            self.renew()

    def unattended_reads(self) -> int:
        """How often the account is read without the customer."""
        return 4

    def unattended_page(self, link: str) -> str:
        """The address of an unattended read."""
        return link

    def renew(self) -> None:
        """Renew the consent in time."""

    # What it says it believes

    def claim(self, kind: str, identity: str) -> dict[str, Any] | None:
        """The answer at the claims address."""
        if kind == "payments":
            return {"state": self.payments.get(identity, "open")}
        known = self.accounts.get(self.ibans.get(identity, ""))
        return None if known is None else {"balance": known["balance"], "transactions": len(known["transactions"])}
