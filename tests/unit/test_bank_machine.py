"""A bank lives at random: payments, baskets, customers who approve or do not, clocks and resets, against a small model.

Whatever happens: money is conserved per currency, no payment is booked twice, statuses go along the table, final
ones stay, a basket is its worst payment, a refusal changes nothing, and a reset restores the known state.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from emulator.bank import fixtures, products, settlement
from emulator.bank.accounts import ledger
from emulator.bank.authentication import sca, sca_control
from emulator.bank.authentication.authorisations import Approach
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, BASKET, KINDS, PAYMENT, TRANSACTION
from emulator.bank.payment import baskets, initiation, payments, progression
from emulator.bank.payment.flows import FLOWS
from emulator.bank.scheme.transitions import FINAL, STATUSES
from emulator.bank.threads import run_to_end
from emulator.store import Document, memory_store

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOW = Approach(redirectUri="https://tpp.example/back")
TPP = "PSDNO-FSA-000001"
DOMESTIC = "norwegian-domestic-credit-transfers"
STRAKS = "instant-norwegian-domestic-credit-transfers-straks"
SEPA = "sepa-credit-transfers"
ELSEWHERE = "99921000010"
EURO_ACCOUNT = "NO2099901100027"
ABROAD = "DE19999999990000123456"

# Who pays from where: the identity number and the account.
PAYERS = (("14888520059", "99901000014"), ("14888520059", "99901000022"), ("03817910172", "99901100019"))
CREDITORS = (ELSEWHERE, "99901000014", "99901100019", "99901000022")
APPROVED = st.sampled_from([True, True, False])
PACES = st.sampled_from(["time", "immediate", {"polls": 2}, "manual"])
CALENDARS = st.sampled_from(["always-open", "norway"])
PLACES = st.integers(min_value=0, max_value=30)


def without_transactions() -> fixtures.Fixture:
    """The known state without its transactions, as after each step all that there are are read."""
    source = fixtures.load("known-state")
    definitions = copy.deepcopy(source.parsed.value)
    for holder in (*definitions["accounts"], *definitions["cards"], definitions):
        holder.pop("transactions", None)
    return fixtures.parse(json.dumps(definitions, default=str), source.source)


@dataclass
class Part:
    """What one transaction on each side comes of: a payment, or an entry of a bulk."""

    tag: str
    creditor: str
    amount: Decimal


@dataclass
class Known:
    """What the model knows of a payment: where its money goes, and the statuses that were told of it."""

    who: str
    flow: str
    debtor: str
    parts: list[Part]
    statuses: list[str]

    @property
    def waits(self) -> bool:
        """Whether a basket may take it, as far as the payment itself goes."""
        return self.statuses == ["RCVD"] and self.flow not in ("batch", "standing")


class BankMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bank = Bank(memory_store(KINDS), seed=5)
        payments.attach(self.bank)
        baskets.attach(self.bank)
        self.known: dict[str, Known] = {}
        self.baskets: dict[str, list[str]] = {}
        self.tags = 0
        self.bank.watch(self._told)

    @initialize(progression=PACES, calendar=CALENDARS)
    def open(self, progression: Any, calendar: str) -> None:
        self.chosen = {"progression": progression, "calendar": calendar}
        self._reset()

    def _reset(self) -> None:
        fixtures.reset(self.bank, without_transactions(), now=NOW, mode="frozen")
        self.known.clear()
        self.baskets.clear()
        self.fresh = self._documents()
        self.bank.change_settings(self.chosen)

    def _documents(self) -> dict[str, list[Document]]:
        """All documents but the bank's own notes, which keep the settings and where ids begin."""
        return {kind: documents for kind, documents in self.bank.documents.dump().items() if kind != "meta"}

    def _told(self, event: dict[str, Any]) -> None:
        if event["type"] == "payment" and event["id"] in self.known:
            self.known[event["id"]].statuses.append(event["status"])

    def _attempt(self, act: Callable[[], Any]) -> Any:
        """Do something to the bank in one change; a refusal must leave everything as it was."""
        before = self._documents()
        statuses = {payment_id: list(known.statuses) for payment_id, known in self.known.items()}
        try:
            with self.bank.documents.transaction():
                return act()
        except BankError:
            assert self._documents() == before
            for payment_id, known in self.known.items():
                known.statuses = statuses[payment_id]
            return None

    def _payment(self, place: int) -> tuple[str, Known]:
        return list(self.known.items())[place % len(self.known)]

    def _document(self, payment_id: str) -> Document:
        stored = self.bank.documents.get(PAYMENT, payment_id)
        assert stored is not None
        return stored

    # what may happen

    @rule(
        kind=st.sampled_from([("payments", STRAKS), *[("payments", DOMESTIC)] * 2, ("periodic-payments", DOMESTIC)]),
        payer=st.sampled_from(PAYERS),
        creditor=st.sampled_from(CREDITORS),
        kroner=st.sampled_from([1, 250, 90_000, 400_000]),
        days=st.sampled_from([0, 0, 0, 1, 3, 12, -1]),
        approved=APPROVED,
    )
    def initiate(
        self, kind: tuple[str, str], payer: tuple[str, str], creditor: str, kroner: int, days: int, approved: bool
    ) -> None:
        day = (self.bank.clock.today() + timedelta(days=days)).isoformat()
        body: dict[str, Any] = {
            "instructedAmount": {"amount": f"{kroner}.00", "currency": "NOK"},
            "creditorName": "Takstein Utleie AS",
            "creditorAccount": {"bban": creditor, "currency": "NOK"},
            "creditorAddress": {"country": "NO"},
            "debtorAccount": {"bban": payer[1], "currency": "NOK"},
        }
        if kind[0] == "periodic-payments":
            body |= {"frequency": "Weekly", "startDate": day}
        elif kind[1] == DOMESTIC and days:
            body["requestedExecutionDate"] = day
        expected = days >= 0 or kind[1] == STRAKS
        assert self._initiate(kind, payer[0], body, [creditor], approved) is expected

    @rule(euros=st.sampled_from([1, 9_000, 18_000]), here=st.booleans(), approved=APPROVED)
    def initiate_sepa(self, euros: int, here: bool, approved: bool) -> None:
        creditor = EURO_ACCOUNT if here else ABROAD
        body = {
            "instructedAmount": {"amount": f"{euros}.00", "currency": "EUR"},
            "creditorName": "Muster Verlag GmbH",
            "creditorAccount": {"iban": creditor, "currency": "EUR"},
            "debtorAccount": {"iban": EURO_ACCOUNT, "currency": "EUR"},
        }
        kind, bban = ("payments", SEPA), EURO_ACCOUNT[4:] if here else creditor
        assert self._initiate(kind, "03817910172", body, [bban], approved)

    @rule(
        payer=st.sampled_from(PAYERS),
        entries=st.lists(
            st.tuples(st.sampled_from(CREDITORS), st.sampled_from([1, 250, 90_000])), min_size=1, max_size=4
        ),
        days=st.sampled_from([0, 0, 3]),
        approved=APPROVED,
    )
    def initiate_bulk(self, payer: tuple[str, str], entries: list[tuple[str, int]], days: int, approved: bool) -> None:
        body: dict[str, Any] = {
            "payments": [
                {
                    "instructedAmount": {"amount": f"{kroner}.00", "currency": "NOK"},
                    "creditorName": "Takstein Utleie AS",
                    "creditorAccount": {"bban": creditor, "currency": "NOK"},
                }
                for creditor, kroner in entries
            ],
            "debtorAccount": {"bban": payer[1], "currency": "NOK"},
        }
        if days:
            body["requestedExecutionDate"] = (self.bank.clock.today() + timedelta(days=days)).isoformat()
        creditors = [creditor for creditor, _ in entries]
        assert self._initiate(("bulk-payments", DOMESTIC), payer[0], body, creditors, approved)

    def _initiate(
        self, kind: tuple[str, str], who: str, body: dict[str, Any], creditors: list[str], approved: bool
    ) -> bool:
        """Initiate, and approve at once; whether the bank took it."""
        parts = []
        for part, creditor in zip(body.get("payments", [body]), creditors, strict=True):
            self.tags += 1
            part["remittanceInformationUnstructured"] = tag = f"model {self.tags}"
            here = self.bank.documents.first(ACCOUNT, bban=creditor)
            target = here["id"] if here is not None else "outside"
            parts.append(Part(tag, target, Decimal(part["instructedAmount"]["amount"])))
        product = products.find(*kind)
        order = initiation.PaymentOrder(tpp_id=TPP, initiation=body, approach=HOW, national_id=who)
        payment_id = self._attempt(lambda: initiation.initiate(self.bank, product, order))
        if payment_id is not None:
            self.known[payment_id["id"]] = Known(who, product.flow, payment_id["debtorAccountId"], parts, ["RCVD"])
            if approved:
                self._authenticate(payment_id["id"], who, "approve")
        return payment_id is not None

    @precondition(lambda self: self.known)
    @rule(place=PLACES, act=st.sampled_from(["approve", "approve", "approve", "reject", "expire", "stranger"]))
    def authenticate(self, place: int, act: str) -> None:
        payment_id, known = self._payment(place)
        self._authenticate(payment_id, known.who, act)

    def _authenticate(self, target: str, who: str, act: str) -> None:
        opened = sca_control.find(self.bank, target)
        if act == "approve":
            self._attempt(lambda: sca_control.approve(self.bank, opened, national_id=who))
        elif act == "reject":
            self._attempt(lambda: sca_control.reject(self.bank, opened))
        elif act == "expire":
            self._attempt(lambda: sca_control.end(self.bank, opened, sca.EXPIRED))
        else:
            statuses = self._statuses()
            self._attempt(lambda: sca_control.approve(self.bank, opened, national_id="09877410142"))
            assert self._statuses() == statuses

    def _statuses(self) -> dict[str, str]:
        return {payment_id: self._document(payment_id)["status"] for payment_id in self.known}

    @precondition(lambda self: self.known)
    @rule(place=PLACES, cancel=st.booleans())
    def start_another_sca(self, place: int, cancel: bool) -> None:
        payment_id, known = self._payment(place)
        start = payments.start_cancellation if cancel else payments.start_authorisation
        document = self._document(payment_id)
        self._attempt(lambda: start(self.bank, document, HOW, national_id=known.who))

    @precondition(lambda self: self.known)
    @rule(place=PLACES)
    def delete(self, place: int) -> None:
        document = self._document(self._payment(place)[0])
        self._attempt(lambda: payments.cancel(self.bank, document))

    @precondition(lambda self: self.known)
    @rule(place=PLACES, to=st.none() | st.sampled_from(STATUSES))
    def advance_by_hand(self, place: int, to: str | None) -> None:
        payment_id, _ = self._payment(place)
        self._attempt(lambda: progression.advance(self.bank, payment_id, to))

    @precondition(lambda self: self.known)
    @rule(place=PLACES)
    def read_status(self, place: int) -> None:
        document = self._document(self._payment(place)[0])
        self._attempt(lambda: progression.read(self.bank, document))

    @precondition(lambda self: self.known)
    @rule(places=st.lists(PLACES, min_size=1, max_size=4), fitting=st.booleans(), approved=APPROVED)
    def group(self, places: list[int], fitting: bool, approved: bool) -> None:
        ids = list(dict.fromkeys(self._payment(place)[0] for place in places))
        who = self.known[ids[0]].who
        if fitting:
            ids = [payment_id for payment_id, known in self.known.items() if known.who == who and known.waits][
                :10
            ] or ids
        owner = {"tpp_id": TPP, "national_id": who, "context": "PRIVATE", "agreement": None}
        basket_id = self._attempt(lambda: baskets.create(self.bank, payment_ids=ids, how=HOW, **owner))
        if basket_id is not None:
            self.baskets[basket_id["id"]] = ids
            if approved:
                self._authenticate(basket_id["id"], who, "approve")

    @precondition(lambda self: self.baskets)
    @rule(place=PLACES, act=st.sampled_from(["approve", "approve", "reject", "expire", "stranger", "delete"]))
    def sign_basket(self, place: int, act: str) -> None:
        basket_id, ids = list(self.baskets.items())[place % len(self.baskets)]
        if act != "delete":
            self._authenticate(basket_id, self.known[ids[0]].who, act)
            return
        statuses = self._statuses()
        document = self.bank.documents.get(BASKET, basket_id) or {}
        self._attempt(lambda: baskets.delete(self.bank, document))
        if not self.bank.documents.exists(BASKET, basket_id):
            del self.baskets[basket_id]
        assert self._statuses() == statuses

    @rule(payer=st.sampled_from(PAYERS), kroner=st.sampled_from([100, 300_000]))
    def money_arrives(self, payer: tuple[str, str], kroner: int) -> None:
        account = self.bank.documents.first(ACCOUNT, bban=payer[1]) or {}
        ledger.book(self.bank, account["id"], {"amount": Decimal(kroner)})

    @rule(seconds=st.sampled_from([1, 1, 2, 4, 60, 600]))
    def a_moment_passes(self, seconds: int) -> None:
        self._advance(seconds=seconds)

    @rule(hours=st.sampled_from([9, 24, 24, 100, 720]))
    def time_passes(self, hours: int) -> None:
        self._advance(hours=hours)

    @rule(progression=PACES, calendar=CALENDARS)
    def change_settings(self, progression: Any, calendar: str) -> None:
        self.bank.change_settings({"progression": progression, "calendar": calendar})
        self._advance()

    def _advance(self, **by: float) -> None:
        self.bank.clock.advance(timedelta(**by))
        progression.run_due(self.bank)
        due = progression.next_due(self.bank)
        assert due is None or due > self.bank.clock.stamp()

    @precondition(lambda self: len(self.known) > 7)
    @rule()
    def reset(self) -> None:
        fresh = self.fresh
        self._reset()
        assert self.fresh == fresh

    # what is always true

    @invariant()
    def the_ledger_balances(self) -> None:
        assert run_to_end(ledger.reporting(self.bank))["balanced"]

    @invariant()
    def statuses_go_along_the_table_and_final_ones_stay(self) -> None:
        for payment_id, known in self.known.items():
            history = [one["status"] for one in self._document(payment_id)["history"]]
            assert history == known.statuses
            assert history[-1] == self._document(payment_id)["status"]
            for start, end in pairwise(history):
                assert FLOWS[known.flow].allowed(start, end), (known.flow, history)
            assert not FINAL.intersection(history[:-1])

    @invariant()
    def money_moves_once_from_debtor_to_creditor(self) -> None:
        entries: dict[str, list[Document]] = {}
        for entry in self.bank.documents.all(TRANSACTION):
            if entry["status"] == "booked":
                entries.setdefault(entry.get("remittanceInformationUnstructured", ""), []).append(entry)
        for payment_id, known in self.known.items():
            for part, status in zip(known.parts, self._part_statuses(payment_id), strict=True):
                booked = entries.get(part.tag, [])
                out = [(entry["accountId"], Decimal(entry["amount"])) for entry in booked if entry["amount"][0] == "-"]
                into = [(entry["accountId"], Decimal(entry["amount"])) for entry in booked if entry["amount"][0] != "-"]
                times = len(out) if known.flow == "standing" else int(status == "ACSC")
                assert out == [(known.debtor, -part.amount)] * times
                assert into == [(part.creditor, part.amount)] * (times if part.creditor != "outside" else 0)

    def _part_statuses(self, payment_id: str) -> list[str]:
        """The status of a payment, or of each entry of a bulk."""
        document = self._document(payment_id)
        return settlement.statuses(document) if "entries" in document else [document["status"]]

    @invariant()
    def what_is_reserved_is_held_by_payments_on_their_way(self) -> None:
        for payment_id, known in self.known.items():
            document = self._document(payment_id)
            held = Decimal(document.get("held", "0"))
            if known.flow == "batch":
                holding = [entry["status"] == settlement.HELD for entry in document["entries"]]
                assert holding == ["pendingId" in entry for entry in document["entries"]]
                assert held == sum(part.amount for part, holds in zip(known.parts, holding, strict=True) if holds)
                continue
            on_its_way = document["status"] in ("ACTC", "ACWC", "PDNG", "ACSP", "ACWP")
            assert held in ((0, known.parts[0].amount) if on_its_way and known.flow != "standing" else (0,))
            assert ("pendingId" in document) == bool(held)

    @invariant()
    def a_final_bulk_says_what_became_of_its_entries(self) -> None:
        for payment_id, known in self.known.items():
            document = self._document(payment_id)
            if known.flow == "batch" and document["status"] in FINAL:
                ends = set(self._part_statuses(payment_id))
                assert ends == {document["status"]} or (document["status"] == "PART" and "RJCT" in ends)

    @invariant()
    def a_basket_is_its_worst_payment(self) -> None:
        for basket_id, ids in self.baskets.items():
            statuses = {self._document(payment_id)["status"] for payment_id in ids}
            if statuses & {"RJCT", "CANC"}:
                worst = "RJCT"
            else:
                worst = "RCVD" if "RCVD" in statuses else "ACTC"
            document = self.bank.documents.get(BASKET, basket_id) or {}
            assert baskets.state(self.bank, document)[0] == worst


BankMachine.TestCase.settings = settings(stateful_step_count=40)
test_the_bank_keeps_its_promises = BankMachine.TestCase
