"""A client that makes payments and bulks, signs them alone and in baskets, and cancels and executes them.

What one SCA signs is signed as a whole, and what is paid is booked as a whole, whatever fails meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.known_state import BULK, KARI, PAYMENT, STRAKS
from tests.postgres.history import NEXT
from tests.postgres.owner import Answer, Kind, Owner

TOGETHER = 3  # payments that are in a basket, and entries of a bulk
REFUSED = (400, None)  # in place of every 4xx, and of 202, which asks for another SCA
SINGLE = {**PAYMENT, "creditorAddress": {"country": "NO"}}
ENTRY = {name: value for name, value in PAYMENT.items() if name != "debtorAccount"}
MANY = {"debtorAccount": PAYMENT["debtorAccount"], "payments": [ENTRY] * TOGETHER}


class Round(NamedTuple):
    """Payments, or one bulk, with the basket that they may be in: none, open, signed or gone."""

    name: str
    statuses: tuple[str, ...]
    basket: str = "none"


class Orders(NamedTuple):
    """The rounds that requests are about, and how many payments were booked since the beginning."""

    rounds: tuple[Round, ...] = ()
    booked: int = 0


@dataclass
class Named:
    """The ids of a round; `once` is the X-Request-ID of its basket."""

    payments: list[str]
    once: str = field(default_factory=lambda: str(uuid.uuid4()))
    basket: str | None = None


class SigningOwner(Owner[Orders]):
    """One round after the other."""

    kind = "signing"
    reads = ("read", "ledger")
    width = 2

    def prepare(self) -> Orders:
        self.make_bank()
        self.log_in(KARI)
        self.needed("PUT", "settings", {"progression": "manual"})
        self._rounds: dict[str, Named] = {}
        self._began = self._balance(self.needed("GET", "ledger"))
        return Orders()

    def turn(self) -> None:
        """The next requests; once nothing is open, in another round."""
        about = {kind[1] for _, kind in self.silent() if len(kind) > 1}
        ongoing = {one.name for state in self.states() for one in state.rounds if {"RCVD", *NEXT} & set(one.statuses)}
        if not ongoing - about and not self._begin():
            return
        keep = about | ongoing | set(list(self._rounds)[-1:])
        self.change(lambda state: state._replace(rounds=tuple(one for one in state.rounds if one.name in keep)))
        super().turn()

    def _begin(self) -> bool:
        """Begin a round; whether it could be."""
        bulk = self.chooser.random() < 0.3
        bodies = [(BULK, MANY)] if bulk else [(STRAKS, SINGLE)] * TOGETHER
        created = [self.created(*body) for body in bodies]
        if None in created:
            return False  # what was made of it stays as it is
        name = f"{'bulk' if bulk else 'round'} {len(self._rounds)}"
        self._rounds[name] = Named([one["paymentId"] for one in created])
        begun = Round(name, ("RCVD",) * len(created))
        self.change(lambda state: state._replace(rounds=(*state.rounds, begun)))
        return True

    def weights(self, states: set[Orders]) -> Mapping[Kind, float]:
        del states
        name, named = list(self._rounds.items())[-1]
        each = {"approve": 2.0, "cancel": 1.0, "advance": 6.0}
        of_each: dict[Kind, float] = {(word, name, str(at)): weight for word, weight in each.items() for at in
                                      range(len(named.payments))}  # fmt: skip
        if len(named.payments) > 1:
            of_each |= {("basket", name): 10.0}
        if named.basket is not None:
            of_each |= {("sign", name): 8.0, ("decline", name): 1.0, ("delete", name): 2.0}
        return {**of_each, ("read", name): 10.0, ("ledger",): 5.0}

    def request(self, kind: Kind) -> Answer:
        status, shown = self._sent(kind)
        return REFUSED if status == 202 or 400 <= status < 500 else (status, shown)

    def _sent(self, kind: Kind) -> Answer:
        if kind[0] == "ledger":
            status, answer = self.control("GET", "ledger")
            return status, round(self._began - self._balance(answer)) if status == 200 else None
        word, named = kind[0], self._rounds[kind[1]]
        if word == "read":
            wanted = dict.fromkeys(named.payments, "")
            status, answer = self.control("GET", "payments?limit=20")
            for one in answer["payments"] if status == 200 else ():
                wanted[one["paymentId"]] = one["transactionStatus"]
            return status, tuple(wanted[one] for one in named.payments)
        if word == "basket":
            body, once = {"paymentIds": named.payments}, {"X-Request-ID": named.once}
            status, answer = self.signed("POST", "/v1/signing-baskets", json=body, headers=once)
            if status == 201:
                named.basket = answer["basketId"]
            return status, None
        if word == "delete":
            return self.signed("DELETE", f"/v1/signing-baskets/{named.basket}")[0], None
        if word in ("sign", "decline"):
            return self._approved(named.basket, "approve" if word == "sign" else "reject")
        payment = named.payments[int(kind[2])]
        if word == "approve":
            return self._approved(payment, word)
        if word == "cancel":
            return self.signed("DELETE", f"{BULK if 'bulk' in kind[1] else STRAKS}/{payment}")[0], None
        return self.control("POST", f"payments/{payment}/advance")[0], None

    def _approved(self, target: str | None, word: str) -> Answer:
        """The end of an SCA; where it has failed, the customer is sent back with a reason."""
        status, answer = self.control("POST", f"sca/{target}/{word}")
        failed = word == "approve" and "psu-id=" not in str(answer)
        return REFUSED if status == 200 and failed else (status, None)

    @staticmethod
    def _balance(ledger: dict[str, Any]) -> float:
        """What Kari has, in payments."""
        (balance,) = [one["balance"] for one in ledger["accounts"] if one["iban"].endswith("99901000014")]
        return float(balance) / float(PAYMENT["instructedAmount"]["amount"])

    def step(self, state: Orders, kind: Kind) -> Iterable[tuple[Orders, Answer]]:
        if kind[0] == "ledger":
            return [(state, (200, state.booked))]
        (one,) = [one for one in state.rounds if one.name == kind[1]]
        if kind[0] == "decline" and "RCVD" not in one.statuses:
            return [(state, REFUSED), (state, (200, None))]  # it ends its SCA, if that is open
        after, answer = _step(one, kind)
        paid = after.statuses.count("ACSC") - one.statuses.count("ACSC")
        rounds = tuple(after if other is one else other for other in state.rounds)
        return [(Orders(rounds, state.booked + paid * (TOGETHER if "bulk" in one.name else 1)), answer)]


def _step(one: Round, kind: Kind) -> tuple[Round, Answer]:
    """What a request makes of a round, and the answer."""
    word, waiting = kind[0], "RCVD" in one.statuses
    if word == "read":
        return one, (200, one.statuses)
    if word == "basket":  # the same request once more: the stored answer
        if one.basket == "none" and set(one.statuses) == {"RCVD"}:
            return one._replace(basket="open"), (201, None)
        return one, REFUSED if one.basket == "none" else (201, None)
    if word == "delete":
        return (one._replace(basket="gone"), (204, None)) if one.basket == "open" else (one, REFUSED)
    if word in ("sign", "decline"):
        if one.basket != "open" or not waiting:
            return one, REFUSED
        to = "ACTC" if word == "sign" else "RJCT"
        statuses = tuple(to if status == "RCVD" else status for status in one.statuses)
        return one._replace(statuses=statuses, basket="signed" if word == "sign" else "open"), (200, None)
    at = int(kind[2])
    status = one.statuses[at]
    if word == "advance":
        to, answer = NEXT.get(status, status), 200
    else:
        to, answer = {"approve": ("ACTC", 200), "cancel": ("CANC", 204)}[word]
        to = to if status == "RCVD" else status
    if to == status:
        return one, REFUSED
    return one._replace(statuses=(*one.statuses[:at], to, *one.statuses[at + 1 :])), (answer, None)
