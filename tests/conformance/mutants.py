"""TPPs that each do one thing wrong: one for each check."""

from __future__ import annotations

import base64
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from emulator.client.clients import Prepared, TppResponse
from tests.explore.merchant import DOMESTIC, GaveUp, Merchant, Order


class Unsigned(Merchant):
    """Leaves the signature out of one request."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        prepared = super().prepare(method, path, **options)
        if method == "GET" and "Signature" in prepared.headers:
            del prepared.headers["Signature"]
        return prepared


class WrongDigest(Merchant):
    """Hashes other bytes than it sends."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        if method == "POST":
            other = base64.b64encode(bytes(32)).decode()
            options["headers"] = {**options["headers"], "Digest": f"SHA-256={other}"}
        return super().prepare(method, path, **options)


class SlowClock(Merchant):
    """Its clock is two minutes behind."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        now = self.tpp._clock
        self.tpp._clock = lambda: now().replace(microsecond=0) - timedelta(minutes=2)
        try:
            return super().prepare(method, path, **options)
        finally:
            self.tpp._clock = now


class OneRequestId(Merchant):
    """Uses one X-Request-ID for everything."""

    same = str(uuid.uuid4())

    def request_id(self) -> str:
        return self.same


class WrongRole(Merchant):
    """Orders a payment with a certificate for account information."""

    certificate = "ais"


class TrustsEverything(Merchant):
    """Does not look at the signature of an answer."""

    def trusted(self, answer: TppResponse) -> bool:
        return True

    def approve(self, link: str) -> None:
        return

    def catch_up(self) -> None:
        return


class OneReturnAddress(Merchant):
    """Has one redirect address for all customers, and orders twice."""

    def start_flow(self) -> None:
        self.state = "always"
        self.flows[self.state] = None
        self.tpp.redirect_uri = "https://shop.example/return?state=always"

    def run(self) -> None:
        self.tasks *= 2
        super().run()


class AddsToTheLink(Merchant):
    """Adds a parameter of its own to the scaRedirect."""

    def approve(self, link: str) -> None:
        super().approve(f"{link}?utm_source=shop")


class Impatient(Merchant):
    """Asks again while the customer is still at the bank."""

    def waiting(self, link: str) -> None:
        self.world.browse(link)
        self.world.wait(0.2)
        for _ in range(2):
            self.ask("GET", "/v1/accounts", headers=self.context())
        for _ in range(5):
            if self.flows[self.state] is None:
                self.world.wait(1.0)


class DropsThePsuId(Merchant):
    """Does not keep the psu-id of the return."""

    def take_over(self, redirect: str) -> None:
        super().take_over(redirect)
        self.tpp.psu_id = None


class NewSessionEachTime(Merchant):
    """Begins a session for every read."""

    def read(self) -> None:
        self.log_in()
        self.world.wait(60.0)
        self.tpp.session_id = str(uuid.uuid4())
        self.ask("GET", "/v1/accounts")


class TakesAnyReturn(Merchant):
    """Takes every return for its own."""

    def returned(self, redirect: str) -> None:
        self.flows[self.state] = redirect
        self.take_over(redirect)
        if "of-another-flow" in redirect:
            other = {"PSU-IP-Address": "203.0.113.8"}  # that of the customer who opened that return
            self.ask("GET", "/v1/accounts", headers=other)


class BelievesInEveryReturn(Merchant):
    """Ships the goods when the customer comes back."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        order["state"] = "paid"


class NeverStops(Merchant):
    """Asks for a payment that nobody approves without end."""

    most_reads = 40
    most_unapproved = 1000
    pace = 6.0


class ForgetsTheAgreement(Merchant):
    """Drops the psu-corporate-id."""

    def take_over(self, redirect: str) -> None:
        super().take_over(redirect)
        self.tpp.psu_corporate_id = None


class PrivateAddress(Merchant):
    """Sends the address of its own load balancer."""

    address = "10.0.0.7"


class PretendsTheCustomer(Merchant):
    """Says that the customer is there."""

    def headers(self) -> dict[str, str | None]:
        return {"PSU-IP-Address": self.address}


class ReadsAllDay(Merchant):
    """Reads a fifth time."""

    def unattended_reads(self) -> int:
        return 5


class IgnoresTheLimit(Merchant):
    """Goes on after 429."""

    def read_unattended(self) -> None:
        account = self.log_in().json()["accounts"][0]
        self.world.wait(1.0)
        for _ in range(2):
            self.ask("GET", account["_links"]["transactions"]["href"])


class Hammers(Merchant):
    """Asks a bank that is down at once and again."""

    def back_off(self, attempt: int) -> None:
        return


class RenewsEveryDay(Merchant):
    """Sends the customer to the bank before every read."""

    def read_unattended(self) -> None:
        account = self.log_in().json()["accounts"][0]
        for _ in range(self.unattended_reads()):
            self.world.wait(1.0)
            self.ask("GET", account["_links"]["transactions"]["href"])
            self.tpp.forget()
            self.start_flow()
            answer = self.ask("GET", "/v1/accounts", headers=self.context())
            self.approve(answer.json()["_links"]["scaRedirect"]["href"])


class KeepsReading(Merchant):
    """Goes on when the consent is gone."""

    def read(self) -> None:
        for account in self.log_in().json()["accounts"] * 3:
            self.world.wait(60.0)
            self.read_whole(account)


class ReadsOnePage(Merchant):
    """Takes the first page for the list."""

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        return None


class WantsAllOfIt(Merchant):
    """Asks for a year without the customer."""

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        return super().ask(method, f"{path}?dateFrom=2025-01-01" if self.alone else path, **options)


class StopsAtAccepted(Merchant):
    """Takes ACTC for the end."""

    def ended(self, status: str | None) -> bool:
        return status is not None and status != "RCVD"


class OrdersAgain(Merchant):
    """Makes a new order when the answer was lost."""

    def send(self, prepared: Prepared) -> TppResponse | None:
        answer = super().send(prepared)
        if answer is None:
            again = self.prepare("POST", prepared.target, body=prepared.body.decode(), headers=self.payer())
            answer = super().send(again)
        return answer


class TakesWaitingForPaid(Merchant):
    """Takes PDNG for paid."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        order["state"] = "paid" if status == "PDNG" else order["state"]


class BelievesTheReturn(Merchant):
    """Takes the customer's return for the payment, and reads no status."""

    def follow_order(self, order: Order) -> None:
        order |= {"state": "paid", "final": True}


class AsksForever(Merchant):
    """Reads on when the status is final."""

    def ended(self, status: str | None) -> bool:
        return False

    most_reads = 5


class StopsAtTheUnknown(Merchant):
    """Gives up at a status that it does not know."""

    def ended(self, status: str | None) -> bool:
        return super().ended(status) or status == "ACCC"


class BelievesNotifications(Merchant):
    """Takes what a notification says for the truth, and asks nobody."""

    def notified(self, body: dict[str, Any]) -> None:
        self.disk[body["paymentId"]] = body["transactionStatus"]

    def follow_order(self, order: Order) -> None:
        for _ in range(self.most_reads):
            if self.ended(self.disk.get(order["payment"])):
                break
            self.world.wait(self.pace)
        self.note(order, self.disk[order["payment"]])


class Polls(Merchant):
    """Reads ten times a second."""

    def follow_order(self, order: Order) -> None:
        for _ in range(5):
            self.look_at(order)
            self.world.wait(0.1)
        super().follow_order(order)


class DropsTheCancellation(Merchant):
    """Takes 202 for cancelled, and deletes again."""

    def withdraw(self, order: Order, deleted: TppResponse) -> None:
        return


class CountsPages(Merchant):
    """Puts the next page's address together."""

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        if super().next_page(link, page) is None:
            return None
        parts = urlsplit(link)
        offset = int(parse_qs(parts.query).get("offset", ["0"])[-1])
        return f"{parts.path}?offset={offset + 20}&limit=20"


class NeverTheLastPage(Merchant):
    """Goes on while there are items on the page, as there always are if each page has the pending ones."""

    asked_again = False

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        following = super().next_page(link, page)
        if following is None and "offset=" in link and not self.asked_again:
            self.asked_again = True
            return link
        return following


class RoundsTheBalance(Merchant):
    """Keeps whole kroner."""

    def balance(self, amount: str) -> str:
        return str(round(float(amount)) + 1)


class GuessesIds(Merchant):
    """Asks for a payment that nobody told it of."""

    def pay_order(self, number: int) -> None:
        super().pay_order(number)
        self.ask("GET", f"{DOMESTIC}/{uuid.uuid4()}/status", headers=self.payer())


class RepeatsTheRefused(Merchant):
    """Sends again what was refused."""

    def turned_down(self, order: Order, answer: TppResponse) -> None:
        super().turned_down(order, answer)
        self.send(self.prepare("POST", DOMESTIC, json=order["body"], headers=self.payer()))


class KeepsTheFirstIds(Merchant):
    """Goes on with the accounts that it listed first."""

    first: list[dict[str, Any]] | None = None

    def listed(self, accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.first = self.first or super().listed(accounts)
        return self.first

    def read_whole(self, account: dict[str, Any]) -> int:
        status = super().read_whole(account)
        if status == 404:
            self.read_accounts.pop(account["iban"], None)  # it claims nothing of an account that it cannot read
        return 200


class StrictReader(Merchant):
    """Stops at a member that it does not know."""

    def ended(self, status: str | None) -> bool:
        return super().ended(status) or self.strict

    strict = False

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        answer = super().ask(method, path, **options)
        self.strict = "estimatedSettlement" in answer.text
        return answer


class CountsIds(Merchant):
    """Takes another id for another transaction."""

    def read_whole(self, account: dict[str, Any]) -> int:
        self.iban = account["iban"]
        return super().read_whole(account)

    def likeness(self, entry: dict[str, Any]) -> str:
        return f"{self.iban} {entry['transactionId']}"

    def counted(self, listed: dict[str, Any]) -> int:
        seen = self.disk.setdefault("seen", {})
        seen.update(listed)
        return sum(key.startswith(self.iban) for key in seen)


MUTANTS: dict[str, type[Merchant]] = {
    "signs-every-request": Unsigned,
    "digest-of-the-sent-bytes": WrongDigest,
    "honest-clock": SlowClock,
    "fresh-request-id": OneRequestId,
    "certificate-in-order": WrongRole,
    "verifies-signed-answers": TrustsEverything,
    "own-state-for-each-redirect": OneReturnAddress,
    "follows-sca-redirect-unchanged": AddsToTheLink,
    "waits-for-the-sca": Impatient,
    "takes-psu-id-and-session": DropsThePsuId,
    "reuses-the-session": NewSessionEachTime,
    "binds-the-return-to-its-flow": TakesAnyReturn,
    "failed-sca-is-no-payment": BelievesInEveryReturn,
    "abandoned-sca-ends-the-polling": NeverStops,
    "keeps-the-corporate-id": ForgetsTheAgreement,
    "true-customer-address": PrivateAddress,
    "no-address-without-the-customer": PretendsTheCustomer,
    "four-unattended-reads-a-day": ReadsAllDay,
    "backs-off-on-429": IgnoresTheLimit,
    "backs-off-on-503": Hammers,
    "renews-the-consent-in-time": RenewsEveryDay,
    "stops-on-a-revoked-consent": KeepsReading,
    "ninety-days-unattended": WantsAllOfIt,
    "notices-a-late-rejection": StopsAtAccepted,
    "repeats-a-lost-answer": OrdersAgain,
    "waiting-is-neither-paid-nor-failed": TakesWaitingForPaid,
    "stops-at-a-final-status": AsksForever,
    "survives-an-unknown-status": StopsAtTheUnknown,
    "a-notification-is-a-hint": BelievesNotifications,
    "polls-at-a-measured-pace": Polls,
    "cancels-by-the-rules": DropsTheCancellation,
    "follows-the-links-of-pages": CountsPages,
    "ends-at-the-last-page": NeverTheLastPage,
    "balance-follows-the-ledger": RoundsTheBalance,
    "asks-only-what-was-given": GuessesIds,
    "no-blind-repeats": RepeatsTheRefused,
    "survives-new-members": StrictReader,
    "one-transaction-once": CountsIds,
    "finds-accounts-by-iban": KeepsTheFirstIds,
}


class _LosesLater(Merchant):
    """Loses what it knows of the customer after three requests with it, and stops where the bank refuses it."""

    lost: tuple[str, ...] = ()
    served = 0

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        self.served += self.tpp.psu_id is not None
        if self.served > 3:
            for name in self.lost:
                setattr(self.tpp, name, None)
        return super().prepare(method, path, **options)

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        answer = super().ask(method, path, **options)
        if answer.status >= 400 and self.served > 3:
            raise GaveUp
        return answer


class LosesThePsuId(_LosesLater):
    lost = ("psu_id",)


class LosesTheSession(_LosesLater):
    lost = ("session_id",)


class LosesBoth(_LosesLater):
    lost = ("psu_id", "session_id")


class LosesTheAgreement(_LosesLater):
    lost = ("psu_corporate_id",)


class LosesTheAgreementAndTheContext(_LosesLater):
    lost = ("psu_corporate_id", "psu_context")


# Further ways to fail a check, later than at the first occasion.
MORE_MUTANTS: list[tuple[str, type[Merchant]]] = [
    ("takes-psu-id-and-session", LosesThePsuId),
    ("takes-psu-id-and-session", LosesTheSession),
    ("takes-psu-id-and-session", LosesBoth),
    ("keeps-the-corporate-id", LosesTheAgreement),
    ("keeps-the-corporate-id", LosesTheAgreementAndTheContext),
    ("one-transaction-once", ReadsOnePage),
    ("waiting-is-neither-paid-nor-failed", BelievesTheReturn),
]
