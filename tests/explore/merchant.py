"""A TPP that behaves, with orders and reads that it keeps on a disk: it can be killed and started again at any time.

It is written against a `World` that sends its requests and lets time pass, so that it can be judged without a socket:
by the checks, and in the search for a fault. Those of `tests/conformance/mutants.py` and `planted.py` change one thing.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from emulator.client.clients import Prepared, Tpp, TppResponse

FINAL = {"ACSC", "RJCT", "CANC", "PART"}
DOMESTIC = "/v1/payments/norwegian-domestic-credit-transfers"
BULK = "/v1/bulk-payments/norwegian-domestic-credit-transfers"
BASKETS = "/v1/signing-baskets"
CREDITOR = "99990000014"  # of a bank that does not exist
CANCELLED_BEFORE = 60  # days: a payment that is to be cancelled waits for its date
Order = dict[str, Any]


class World(Protocol):
    """What surrounds the TPP: the bank at the other end of the wire, time, and the customer's browser."""

    national_id: str
    context: str

    def send(self, prepared: Prepared) -> TppResponse | None:
        """The bank's answer; None when the connection was closed without one."""

    def wait(self, seconds: float) -> None:
        """Let time pass, in which the customer acts."""

    def browse(self, link: str) -> None:
        """Send the customer's browser to an address."""

    def customer_is_there(self) -> bool:
        """Whether the customer uses the TPP right now."""


class GaveUp(Exception):
    """The TPP cannot go on."""


class Merchant:
    """The good TPP. `disk` outlives it; `tasks` are done in their order, each once."""

    certificate = "demo"
    address = "203.0.113.7"
    home = "https://shop.example"
    pace = 2.0  # seconds between two reads of a status
    most_reads = 15
    most_unapproved = 18  # reads of a payment that the customer has not approved
    tries = 24

    def __init__(
        self,
        world: World,
        tpp: Tpp,
        *,
        debtor: str,
        tasks: tuple[str, ...],
        disk: dict[str, Any] | None = None,
    ) -> None:
        self.world = world
        self.tpp = tpp
        self.debtor = debtor
        self.tasks = tasks
        self.disk = {} if disk is None else disk
        self.orders: dict[str, Order] = self.disk.setdefault("orders", {})
        self.read_accounts: dict[str, dict[str, Any]] = self.disk.setdefault("accounts", {})
        self.done: set[int] = self.disk.setdefault("done", set())
        self.flows: dict[str, str | None] = self.disk.setdefault("flows", {})  # state -> where the browser came back to
        self.state = ""
        self.alone = False
        self.session_over = False
        self.tpp.notification_uri = "https://shop.example/notifications"
        for name, value in self.disk.get("psu", {}).items():
            setattr(self.tpp, name, value)

    # Every task

    def run(self) -> None:
        tasks = {
            "pay": self.pay_order,
            "pay-and-cancel": self.pay_and_cancel_order,
            "pay-bulk": self.pay_bulk,
            "basket": self.basket,
            "read": lambda _: self.read(),
            "read-unattended": lambda _: self.read_unattended(),
        }
        for number, task in enumerate(self.tasks):
            if number not in self.done:
                with suppress(GaveUp):
                    tasks[task](number)
                self.done.add(number)
        self.catch_up()

    def catch_up(self) -> None:
        """Ask for every order that is open, in turn, until all have ended or nothing more comes."""
        for _ in range(self.most_reads):
            waiting = [order for order in self.orders.values() if order["payment"] and not order["final"]]
            waiting = [order for order in waiting if order.get("unapproved", 0) < self.most_unapproved]
            if not waiting:
                return
            for order in waiting:
                with suppress(GaveUp):
                    self.look_at(order)
            self.world.wait(5.0)

    def notified(self, body: dict[str, Any]) -> None:
        """A notification came: somebody says that there is something to read, and the status is read anyway."""

    # The customer's return

    def start_flow(self) -> None:
        """A redirect address with a state of its own."""
        self.state = uuid.uuid4().hex
        self.flows[self.state] = None
        self.tpp.redirect_uri = f"{self.home}/return?state={self.state}"

    def returned(self, redirect: str) -> None:
        """The browser came to the redirect address."""
        query = {name: values[-1] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if self.flows.get(query.get("state", "")) is None and query.get("state") in self.flows:
            self.flows[query["state"]] = redirect
            self.take_over(redirect)

    def take_over(self, redirect: str) -> None:
        """Take psu-id and session from a return."""
        self.tpp.remember(redirect)
        names = ("psu_id", "session_id", "psu_corporate_id", "psu_context")
        self.disk["psu"] = {name: getattr(self.tpp, name) for name in names}

    # Requests

    def headers(self) -> dict[str, str | None]:
        """Headers of every request."""
        is_there = not self.alone and self.world.customer_is_there()
        return {"PSU-IP-Address": self.address if is_there else None}

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        """A signed request."""
        headers = {**self.headers(), "X-Request-ID": self.request_id(), **(options.pop("headers", None) or {})}
        return self.tpp.prepare(method, path, headers=headers, **options)

    def request_id(self) -> str:
        """An X-Request-ID for the next request."""
        return str(uuid.uuid4())

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        """Send a request until there is an answer that can be read; `wants`: a member and its type."""
        wants = options.pop("wants", None)
        identity = options.pop("identity", None) or self.request_id()
        headers = {**(options.pop("headers", None) or {}), "X-Request-ID": identity}
        prepared = self.prepare(method, path, headers=headers, **options)
        for attempt in range(self.tries):
            if self.alone and not self.may_read():
                raise GaveUp
            answer = self.send(prepared)
            if answer is not None and answer.status in (429, 503):
                if answer.status == 429 and (self.alone or not self.is_passing(answer)):
                    return answer
                self.back_off(min(attempt, 3))
                prepared = self.prepare(method, path, headers=headers, **options)
            elif answer is not None and self.usable(answer, wants):
                self.session_over = "SCA_EXPIRED" in answer.text  # which the customer renews, other than a consent
                return answer
        raise GaveUp

    def back_off(self, attempt: int) -> None:
        """Wait before the bank that is down is asked again."""
        self.world.wait(5.0 * 2**attempt)

    def send(self, prepared: Prepared) -> TppResponse | None:
        """One request over the wire."""
        return self.world.send(prepared)

    def is_passing(self, answer: TppResponse) -> bool:
        """Whether a 429 is about too many requests at a time, and not about the reads of the day."""
        return "ACCESS_EXCEEDED" not in answer.text or "Too many requests" in answer.text

    def usable(self, answer: TppResponse, wants: tuple[str, type] | None) -> bool:
        """Whether an answer can be read and is the bank's."""
        if answer.status >= 400:
            return True
        if not self.trusted(answer):
            return False
        body = members(answer)
        return wants is None or isinstance(body.get(wants[0]), wants[1])

    def trusted(self, answer: TppResponse) -> bool:
        """Whether the answer's Digest is that of its body, where it has one."""
        digest = answer.headers.get("Digest")
        true = base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
        return digest is None or digest.partition("=")[2] == true

    def payer(self) -> dict[str, str | None]:
        """Who asks for a payment: the customer who ordered it, whoever has logged in since."""
        return {"PSU-ID": None, "X-PSU-IDENTITY": self.world.national_id, "PSU-Context": "PRIVATE"}

    # Orders

    def terms(self, number: int, part: int = 0) -> dict[str, Any]:
        """The body of a payment; each order has an id and an amount of its own."""
        return {
            "instructedAmount": {"amount": f"{12 + part}.{50 + number}", "currency": "NOK"},
            "creditorName": "Muster Verlag",
            "creditorAccount": {"bban": CREDITOR, "currency": "NOK"},
            "debtorAccount": {"bban": self.debtor[4:], "currency": "NOK"},
            "endToEndIdentification": f"order-{number}-{part}",
        }

    def place(self, name: str, path: str, body: dict[str, Any]) -> Order:
        """Order a payment. Everything is on the disk before it is sent, so that it is never ordered twice."""
        order = self.orders.get(name)
        if order is None:
            order = self.orders[name] = {
                "state": "open",
                "payment": None,
                "final": False,
                "signed": False,
                "identity": self.request_id(),
                "body": body,
            }
        if order["payment"] is None and not order["final"]:
            self.send_order(order, path)
        return order

    def send_order(self, order: Order, path: str) -> None:
        """Send an order, the same bytes under the same X-Request-ID each time."""
        self.start_flow()
        self.state = order.setdefault("flow", self.state)
        self.tpp.redirect_uri = f"{self.home}/return?state={self.state}"
        options = {"json": order["body"], "headers": self.payer(), "identity": order["identity"]}
        answer = self.ask("POST", path, **options, wants=("paymentId", str))
        if answer.status != 201:
            self.turned_down(order, answer)
            return
        body = answer.json()
        links = body["_links"]
        order |= {"payment": body["paymentId"], "sca": links["scaRedirect"]["href"], "path": path}
        order["status"], order["self"] = links["status"]["href"], links["self"]["href"]

    def turned_down(self, order: Order, answer: TppResponse) -> None:
        """The bank refused the order: nothing is sent again."""
        order |= {"state": "failed", "final": True}

    def sign(self, order: Order, link: str) -> None:
        """Send the customer to the bank, once."""
        if not order["signed"]:
            order["signed"] = True
            self.approve(link)

    def look_at(self, order: Order) -> bool:
        """Read the status; returns whether there is nothing more to read."""
        answer = self.ask("GET", order["status"], headers=self.payer(), wants=("transactionStatus", str))
        return self.noted(order, answer) if answer.status == 200 else True

    def noted(self, order: Order, answer: TppResponse) -> bool:
        """Keep the status in an answer; returns whether it is final."""
        self.note(order, answer.json()["transactionStatus"])
        return bool(order["final"])

    def note(self, order: Order, status: str) -> None:
        """Keep what a status means for the order."""
        order["state"] = "paid" if status == "ACSC" else "failed" if status in ("RJCT", "CANC") else "open"
        order["final"] = self.ended(status)
        order["unapproved"] = order.get("unapproved", 0) + (status == "RCVD")

    def ended(self, status: str | None) -> bool:
        """Whether the status is final."""
        return status in FINAL

    def follow_order(self, order: Order) -> None:
        """Read the status until it is final, more slowly each time; an open one is looked at again at the end."""
        for read in range(self.most_reads):
            if self.look_at(order) or order.get("unapproved", 0) >= self.most_unapproved // 2:
                return
            self.world.wait(self.pace + read)

    def pay_order(self, number: int) -> None:
        order = self.place(f"{number}", DOMESTIC, self.terms(number))
        if order["payment"] and not order["final"]:
            self.sign(order, order["sca"])
            self.follow_order(order)

    def pay_and_cancel_order(self, number: int) -> None:
        later = (datetime.now(UTC) + timedelta(days=CANCELLED_BEFORE)).date().isoformat()
        order = self.place(f"{number}", DOMESTIC, {**self.terms(number), "requestedExecutionDate": later})
        if not order["payment"] or order["final"]:
            return
        self.sign(order, order["sca"])
        self.world.wait(2.0)
        deleted = self.ask("DELETE", order["self"], headers=self.payer())
        if deleted.status == 202:
            self.withdraw(order, deleted)
        self.follow_order(order)

    def withdraw(self, order: Order, deleted: TppResponse) -> None:
        """The bank wants the customer to authorise the cancellation."""
        path = link_in(deleted, "startAuthorisation") or f"{order['self']}/cancellation-authorisations"
        self.start_flow()
        started = self.ask("POST", path, headers=self.payer(), wants=("_links", dict))
        if started.status == 201:
            self.approve(started.json()["_links"]["scaRedirect"]["href"])

    def pay_bulk(self, number: int) -> None:
        entry = {
            "creditorName": "Muster Verlag",
            "creditorAccount": {"bban": CREDITOR, "currency": "NOK"},
        }
        body = {
            "paymentInformationId": f"bulk-{number}",
            "debtorAccount": {"bban": self.debtor[4:], "currency": "NOK"},
            "payments": [
                {**entry, "instructedAmount": {"amount": f"{20 + part}.{10 + number}", "currency": "NOK"}}
                for part in range(2)
            ],
        }
        order = self.place(f"{number}", BULK, body)
        if order["payment"] and not order["final"]:
            self.sign(order, order["sca"])
            self.follow_order(order)

    def basket(self, number: int) -> None:
        """Two payments, signed together; between them the balance is read."""
        account = self.log_in().json()["accounts"][0]
        placed = []
        for part in range(2):
            placed.append(self.place(f"{number}-{part}", DOMESTIC, self.terms(number, part)))
            if part == 0:
                self.glance(account, placed)
        waiting = [order for order in placed if order["payment"] and not order["final"]]
        if waiting:
            self.sign_basket(number, waiting)
            for order in waiting:
                self.follow_order(order)

    def glance(self, account: dict[str, Any], placed: list[Order]) -> None:
        """Read the balance; a session that is over is renewed."""
        answer = self.ask("GET", account["_links"]["balances"]["href"], wants=("balances", list))
        if answer.status == 401:
            self.renewed(placed)
        elif answer.status == 200:
            self.keep_balance(account, answer)

    def renewed(self, placed: list[Order]) -> None:
        """Renew the session in the middle of a basket."""
        self.log_in()

    def sign_basket(self, number: int, orders: list[Order]) -> None:
        if orders[0]["signed"]:
            return
        self.start_flow()
        answer = self.ask(
            "POST",
            BASKETS,
            json={"paymentIds": [order["payment"] for order in orders]},
            headers=self.payer(),
            wants=("_links", dict),
        )
        if answer.status == 201:
            for order in orders:
                order["signed"] = True
            self.approve(answer.json()["_links"]["scaRedirect"]["href"])

    def approve(self, link: str) -> None:
        """Send the customer to the bank and wait for the return."""
        self.world.browse(link)
        for _ in range(5):
            if self.flows[self.state] is not None:
                return
            self.world.wait(1.0)

    # Accounts

    def log_in(self) -> TppResponse:
        """Read the accounts, through an SCA where the bank asks for one."""
        self.start_flow()
        answer = self.ask("GET", "/v1/accounts", headers=self.context(), wants=("accounts", list))
        link = link_in(answer, "scaRedirect") if answer.status == 401 else None
        if link is not None:
            self.waiting(link)
            if "psu-id=" not in (self.flows[self.state] or ""):
                raise GaveUp  # nobody has signed: asking again would only open another SCA
            answer = self.ask("GET", "/v1/accounts", wants=("accounts", list))
        if answer.status != 200:
            raise GaveUp
        return answer

    def context(self) -> dict[str, str | None]:
        """The context of the first read."""
        return {} if self.tpp.psu_id else {"PSU-Context": self.world.context}

    def waiting(self, link: str) -> None:
        """Send the customer to the bank, and wait without asking again."""
        self.approve(link)

    def read(self) -> None:
        """Read accounts, balances and all pages of transactions, twice."""
        for attempt in range(2):
            listed = self.log_in() if attempt == 0 else self.ask("GET", "/v1/accounts", wants=("accounts", list))
            if listed.status == 401 and self.session_over:
                listed = self.log_in()
            if listed.status != 200:
                return
            for account in self.listed(listed.json()["accounts"]):
                status = self.read_whole(account)
                if status == 401 and self.session_over:
                    break
                if status != 200:
                    return
            self.world.wait(60.0)

    def listed(self, accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The accounts to read."""
        return accounts[:2]

    def read_whole(self, account: dict[str, Any]) -> int:
        """The balance and every transaction of an account, until two lists in sequence are the same."""
        links = account["_links"]
        known = self.known_account(account)
        answer = self.ask("GET", links["balances"]["href"], wants=("balances", list))
        if answer.status != 200:
            return answer.status
        self.keep_balance(account, answer)
        before: dict[str, Any] | None = None
        for _ in range(4):
            listed: dict[str, Any] = {}
            status = self.read_pages(links["transactions"]["href"], listed)
            if status != 200:
                self.broken_off(known, listed)
                return status
            if listed.keys() == (before or {}).keys() and before is not None:
                known["transactions"] = self.counted(listed)
                return 200
            before = listed
            self.world.wait(40.0)
        return 200

    def known_account(self, account: dict[str, Any]) -> dict[str, Any]:
        """What is known of an account; its IBAN stays when a renewal gives it another id."""
        self.disk.setdefault("ibans", {})[account["resourceId"]] = account["iban"]
        return self.read_accounts.setdefault(account["iban"], {})

    def keep_balance(self, account: dict[str, Any], answer: TppResponse) -> None:
        """Keep the balance that was read."""
        booked = next(b for b in answer.json()["balances"] if b["balanceType"] == "closingBooked")
        known = self.known_account(account)
        known["balance"] = self.balance(booked["balanceAmount"]["amount"])
        self.today = str(booked.get("lastChangeDateTime", ""))

    def broken_off(self, known: dict[str, Any], listed: dict[str, Any]) -> None:
        """The pages ended with a refusal: what was counted before stays."""

    def counted(self, listed: dict[str, Any]) -> int:
        """How many there are."""
        return len(listed)

    def read_pages(self, link: str, listed: dict[str, Any]) -> int:
        """All pages of a list; returns the last status."""
        following: str | None = f"{link}?limit=20"
        while following:
            answer = self.ask("GET", following, wants=("transactions", dict))
            if answer.status != 200:
                return answer.status
            page = answer.json()["transactions"]
            self.record(listed, page["booked"])
            following = self.next_page(following, page)
        return 200

    def balance(self, amount: str) -> str:
        """The balance as it is kept."""
        return str(Decimal(amount))

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        """The address of the next page, None behind the last."""
        return (page.get("_links") or {}).get("next", {}).get("href")

    def record(self, known: dict[str, Any], booked: list[dict[str, Any]]) -> None:
        """Keep what is booked, each once whatever its id is today."""
        for entry in booked:
            known.setdefault(self.likeness(entry), entry)

    def likeness(self, entry: dict[str, Any]) -> str:
        """What does not change when a feed drifts."""
        names = ("valueDate", "creditorName", "debtorName", "endToEndId", "remittanceInformationUnstructured")
        return str((entry["transactionAmount"]["amount"], *(entry.get(name) for name in names)))

    def read_unattended(self) -> None:
        """Read with the customer once, then at most four times a day without."""
        account = self.log_in().json()["accounts"][0]
        self.world.wait(1.0)  # here the customer leaves
        self.alone = True
        try:
            while self.disk.get("unattended", 0) < self.unattended_reads():
                answer = self.ask("GET", account["_links"]["transactions"]["href"], wants=("transactions", dict))
                if answer.status != 200:
                    self.disk["unattended"] = 9
                    return
                self.world.wait(1.0)
        finally:
            self.alone = False

    def may_read(self) -> bool:
        """Count a read without the customer; whether one is left today."""
        self.disk["unattended"] = read = self.disk.get("unattended", 0) + 1
        return bool(read <= self.unattended_reads())

    def unattended_reads(self) -> int:
        """How often the account is read without the customer."""
        return 4

    # What it claims

    def claim(self, kind: str, identity: str) -> dict[str, Any] | None:
        """The answer at the claims address."""
        if kind == "payments":
            for order in self.orders.values():
                if order["payment"] == identity:
                    return {"state": order["state"]}
            return None
        return self.read_accounts.get(self.disk.get("ibans", {}).get(identity, ""))


def members(answer: TppResponse) -> dict[str, Any]:
    """The members of the JSON object in an answer; none if it is something else."""
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def link_in(answer: TppResponse, name: str) -> str | None:
    """A link in an answer."""
    links = members(answer).get("_links")
    link = links.get(name) if isinstance(links, dict) else None
    return link["href"] if isinstance(link, dict) else None
