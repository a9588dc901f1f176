"""TPPs that each do one thing wrong: one for each check."""

from __future__ import annotations

import base64
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from emulator.client.clients import TppResponse
from emulator.client.tpp import Prepared, Tpp
from tests.conformance.shop import SEPA, GaveUp, Shop, World


class Unsigned(Shop):
    """Leaves the signature out of one request."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        prepared = super().prepare(method, path, **options)
        if method == "GET" and "Signature" in prepared.headers:
            del prepared.headers["Signature"]
        return prepared


class WrongDigest(Shop):
    """Hashes other bytes than it sends."""

    def create(self) -> TppResponse:
        self.start_flow()
        other = base64.b64encode(bytes(32)).decode()
        headers = {**self.customer(), "Digest": f"SHA-256={other}"}
        answer = self.send(self.prepare("POST", SEPA, json=self.order(), headers=headers))
        assert answer is not None
        return answer


class SlowClock(Shop):
    """Its clock is two minutes behind."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        now = self.tpp._clock
        self.tpp._clock = lambda: now().replace(microsecond=0) - timedelta(minutes=2)
        try:
            return super().prepare(method, path, **options)
        finally:
            self.tpp._clock = now


class OneRequestId(Shop):
    """Uses one X-Request-ID for everything."""

    same = str(uuid.uuid4())

    def request_id(self) -> str:
        return self.same


class WrongRole(Shop):
    """Orders a payment with a certificate for account information."""

    certificate = "ais"


class TrustsEverything(Shop):
    """Does not look at the signature of an answer."""

    def trusted(self, answer: TppResponse) -> bool:
        return True

    def approve(self, link: str) -> None:
        return


class OneReturnAddress(Shop):
    """Has one redirect address for all customers, and orders twice."""

    def start_flow(self) -> None:
        self.state = "always"
        self.flows = {self.state: None}
        self.tpp.redirect_uri = "https://shop.example/return?state=always"

    def pay(self) -> None:
        super().pay()
        self.payments.clear()
        super().pay()


class AddsToTheLink(Shop):
    """Adds a parameter of its own to the scaRedirect."""

    def approve(self, link: str) -> None:
        super().approve(f"{link}?utm_source=shop")


class Impatient(Shop):
    """Asks again while the customer is still at the bank."""

    def waiting(self, link: str) -> None:
        self.world.browse(link)
        self.world.wait(0.2)
        for _ in range(2):
            self.ask("GET", "/v1/accounts", headers=self.context())
        for _ in range(5):
            if self.flows[self.state] is None:
                self.world.wait(1.0)


class DropsThePsuId(Shop):
    """Does not keep the psu-id of the return."""

    def take_over(self, redirect: str) -> None:
        super().take_over(redirect)
        self.tpp.psu_id = None


class NewSessionEachTime(Shop):
    """Begins a session for every read."""

    def read(self) -> None:
        self.log_in()
        self.world.wait(60.0)
        self.tpp.session_id = str(uuid.uuid4())
        self.ask("GET", "/v1/accounts")


class TakesAnyReturn(Shop):
    """Takes every return for its own."""

    def returned(self, redirect: str) -> None:
        self.flows[self.state] = redirect
        self.take_over(redirect)
        if "of-another-flow" in redirect:
            other = {"PSU-IP-Address": "203.0.113.8"}  # that of the customer who opened that return
            self.ask("GET", "/v1/accounts", headers=other)


class BelievesInEveryReturn(Shop):
    """Ships the goods when the customer comes back."""

    def believe(self, payment: str, status: str | None) -> None:
        self.payments[payment] = "paid"


class NeverStops(Shop):
    """Asks for a payment that nobody approves without end."""

    most_reads = 40
    pace = 6.0


class ForgetsTheAgreement(Shop):
    """Drops the psu-corporate-id."""

    def take_over(self, redirect: str) -> None:
        super().take_over(redirect)
        self.tpp.psu_corporate_id = None


class PrivateAddress(Shop):
    """Sends the address of its own load balancer."""

    address = "10.0.0.7"


class PretendsTheCustomer(Shop):
    """Says that the customer is there."""

    def headers(self) -> dict[str, str | None]:
        return {"PSU-IP-Address": self.address}


class ReadsAllDay(Shop):
    """Reads a fifth time."""

    def unattended_reads(self) -> int:
        return 5


class IgnoresTheLimit(Shop):
    """Goes on after 429."""

    def read_unattended(self) -> None:
        account = self.log_in().json()["accounts"][0]
        self.world.wait(1.0)
        for _ in range(2):
            self.ask("GET", account["_links"]["transactions"]["href"])


class Hammers(Shop):
    """Asks a bank that is down at once and again."""

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        for _ in range(6):
            answer = self.send(self.prepare(method, path, **options))
            if answer is not None and answer.status != 503:
                return answer
        raise GaveUp


class RenewsEveryDay(Shop):
    """Sends the customer to the bank before every read."""

    def renew(self) -> None:
        self.tpp.forget()
        self.start_flow()
        answer = self.ask("GET", "/v1/accounts", headers=self.context())
        self.approve(answer.json()["_links"]["scaRedirect"]["href"])


class KeepsReading(Shop):
    """Goes on when the consent is gone."""

    def listed(self, accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return accounts * 3

    def read_account(self, account: dict[str, Any]) -> TppResponse:
        self.world.wait(60.0)
        return super().read_account(account)

    def stopped(self, answer: TppResponse) -> bool:
        return False


class ReadsOnePage(Shop):
    """Takes the first page for the list."""

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        return None


class WantsAllOfIt(Shop):
    """Asks for a year without the customer."""

    def unattended_page(self, link: str) -> str:
        return f"{link}?dateFrom=2025-01-01"


class StopsAtAccepted(Shop):
    """Takes ACTC for the end."""

    def ended(self, status: str | None) -> bool:
        return status is not None and status != "RCVD"

    def believe(self, payment: str, status: str | None) -> None:
        self.payments[payment] = "failed" if status == "RJCT" else "open"


class OrdersAgain(Shop):
    """Makes a new order when the answer was lost."""

    def repeated(self, prepared: Prepared, method: str, path: str, options: dict[str, Any]) -> Prepared:
        return self.prepare(method, path, headers=self.customer(), **options)


class TakesWaitingForPaid(Shop):
    """Takes PDNG for paid."""

    def believe(self, payment: str, status: str | None) -> None:
        self.payments[payment] = "paid" if status in ("ACSC", "PDNG") else "failed" if status == "RJCT" else "open"


class AsksForever(Shop):
    """Reads on when the status is final."""

    def ended(self, status: str | None) -> bool:
        return False

    most_reads = 5


class StopsAtTheUnknown(Shop):
    """Gives up at a status that it does not know."""

    def ended(self, status: str | None) -> bool:
        return super().ended(status) or status == "ACCC"


class BelievesNotifications(Shop):
    """Takes what a notification says for the truth, and asks nobody."""

    def __init__(self, world: World, tpp: Tpp, *, task: str, debtor: str) -> None:
        super().__init__(world, tpp, task=task, debtor=debtor)
        self.heard: dict[str, str] = {}

    def notified(self, body: dict[str, Any]) -> None:
        self.heard[body["paymentId"]] = body["transactionStatus"]

    def follow(self, payment: str, status: str) -> None:
        for _ in range(self.most_reads):
            if self.ended(self.heard.get(payment)):
                break
            self.world.wait(self.pace)
        self.believe(payment, self.heard[payment])


class Polls(Shop):
    """Reads ten times a second."""

    def follow(self, payment: str, status: str) -> None:
        for _ in range(5):
            self.ask("GET", status, headers=self.customer())
            self.world.wait(0.1)
        super().follow(payment, status)


class DropsTheCancellation(Shop):
    """Takes 202 for cancelled, and deletes again."""

    def cancel(self, body: dict[str, Any]) -> None:
        return


class CountsPages(Shop):
    """Puts the next page's address together."""

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        if super().next_page(link, page) is None:
            return None
        parts = urlsplit(link)
        offset = int(parse_qs(parts.query).get("offset", ["0"])[-1])
        return f"{parts.path}?offset={offset + 100}"


class NeverTheLastPage(Shop):
    """Goes on while there are items on the page, as there always are if each page has the pending ones."""

    asked_again = False

    def next_page(self, link: str, page: dict[str, Any]) -> str | None:
        following = super().next_page(link, page)
        if following is None and "offset=" in link and not self.asked_again:
            self.asked_again = True
            return link
        return following


class RoundsTheBalance(Shop):
    """Keeps whole kroner."""

    def balance(self, amount: str) -> str:
        return str(round(float(amount)) + 1)


class GuessesIds(Shop):
    """Asks for a payment that nobody told it of."""

    def pay(self) -> None:
        super().pay()
        self.ask("GET", f"{SEPA}/{uuid.uuid4()}/status", headers=self.customer())


class RepeatsTheRefused(Shop):
    """Sends again what was refused."""

    def refused(self, answer: TppResponse) -> None:
        self.send(self.prepare("POST", SEPA, json=self.order(), headers=self.customer()))


class KeepsTheFirstIds(Shop):
    """Goes on with the accounts that it listed first."""

    first: list[dict[str, Any]] | None = None

    def listed(self, accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.first = self.first or accounts
        return self.first

    def read_account(self, account: dict[str, Any]) -> TppResponse:
        answer = super().read_account(account)
        if answer.status == 404:
            self.accounts.pop(account["iban"], None)  # it claims nothing of an account that it cannot read
        return answer


class StrictReader(Shop):
    """Stops at a member that it does not know."""

    def ended(self, status: str | None) -> bool:
        return super().ended(status) or self.strict

    strict = False

    def ask(self, method: str, path: str, **options: Any) -> TppResponse:
        answer = super().ask(method, path, **options)
        self.strict = "estimatedSettlement" in answer.text
        return answer


class CountsIds(Shop):
    """Takes another id for another transaction."""

    def record(self, known: dict[str, Any], booked: list[dict[str, Any]]) -> None:
        known.update((entry["transactionId"], entry) for entry in booked)


MUTANTS: dict[str, type[Shop]] = {
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


class _LosesLater(Shop):
    """Loses what it knows of the customer after three requests with it, and stops where the bank refuses it."""

    lost: tuple[str, ...] = ()
    served = 0

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        self.served += self.tpp.psu_id is not None
        if self.served > 3:
            for name in self.lost:
                setattr(self.tpp, name, None)
        return super().prepare(method, path, **options)

    def read_account(self, account: dict[str, Any]) -> TppResponse:
        answer = super().read_account(account)
        if answer.status >= 400:
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
MORE_MUTANTS: list[tuple[str, type[Shop]]] = [
    ("takes-psu-id-and-session", LosesThePsuId),
    ("takes-psu-id-and-session", LosesTheSession),
    ("takes-psu-id-and-session", LosesBoth),
    ("keeps-the-corporate-id", LosesTheAgreement),
    ("keeps-the-corporate-id", LosesTheAgreementAndTheContext),
    ("one-transaction-once", ReadsOnePage),
]
