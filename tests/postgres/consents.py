"""A client that asks for consents, has them approved, reads an account with them, and deletes them or has them revoked.

It reads without the customer, so that each account may be read four times a day: the fifth time is refused, whichever
processes have answered the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tests.known_state import KARI
from tests.postgres.owner import Answer, Kind, Owner

LIMIT = 4  # reads a day
LATEST = 3  # consents that requests are about


class Access(NamedTuple):
    """The status of each consent, oldest first, and how often the account was read on this day."""

    consents: tuple[tuple[str, str], ...]
    reads: int = 0

    def status(self, consent: str) -> str:
        return dict(self.consents)[consent]

    def become(self, consent: str, status: str) -> Access:
        """With another status of this consent; one that is valid replaces those before."""
        others = [(name, "expired" if (status, old) == ("valid", "valid") else old) for name, old in self.consents]
        return self._replace(consents=tuple((name, status if name == consent else old) for name, old in others))

    def only(self, recent: Collection[str]) -> Access:
        """Without the ended ones that are not recent."""
        return self._replace(consents=tuple(one for one in self.consents if one[0] in recent or one[1] == "valid"))


class ConsentOwner(Owner[Access]):
    """Asks for one consent after the other, and for several things about the latest ones."""

    kind = "consents"
    reads = ("status",)
    width = 3

    def prepare(self) -> Access:
        self.make_bank()
        self.log_in(KARI)
        state = self.needed("GET", "state")
        self._account = next(account["id"] for account in state["account"] if account["bban"] == "99901000014")
        self._consents = [consent["id"] for consent in state["consent"]]
        return Access(tuple((consent, "valid") for consent in self._consents))

    def turn(self) -> None:
        """Now and then there is another consent, which is not granted yet."""
        asked = {kind[-1] for _, kind in self.silent()}
        recent = asked.union(self._consents[-LATEST:])
        self.change(lambda state: state.only(recent))
        if self.chooser.random() < 0.15 and (answer := self.created("/v1/consents")) is not None:
            consent = answer["consentId"]
            self._consents.append(consent)
            self.change(lambda state: state._replace(consents=(*state.consents, (consent, "received"))))
        super().turn()

    def weights(self, states: set[Access]) -> Mapping[Kind, float]:
        del states
        about = {"approve": 10.0, "reject": 1.0, "delete": 2.0, "revoke": 3.0, "status": 12.0}
        of_each: dict[Kind, float] = {(word, one): weight for word, weight in about.items() for one in
                                      self._consents[-LATEST:]}  # fmt: skip
        return {**of_each, ("read",): 100.0, ("day",): 10.0}

    def request(self, kind: Kind) -> Answer:
        word, consent = kind[0], kind[-1]
        if word == "read":
            unattended = {"PSU-IP-Address": None}
            return self.signed("GET", f"/v1/accounts/{self._account}/balances", headers=unattended)[0], None
        if word == "day":
            return self.control("POST", "clock/advance", {"by": "P1D"})[0], None
        if word == "delete":
            return self.signed("DELETE", f"/v1/consents/{consent}")[0], None
        if word == "status":
            status, answer = self.signed("GET", f"/v1/consents/{consent}/status")
            return status, answer["consentStatus"] if status == 200 else None
        if word == "revoke":
            return self.control("POST", f"consents/{consent}/revoke")[0], None
        status, _ = self.control("POST", f"sca/{consent}/{word}", {"nationalId": KARI} if word == "approve" else {})
        return 409 if status == 404 else status, None  # the first consent was given without an SCA

    def step(self, state: Access, kind: Kind) -> Iterable[tuple[Access, Answer]]:
        word = kind[0]
        if word == "read":
            if all(status != "valid" for _, status in state.consents):
                return [(state, (401, None))]
            if state.reads == LIMIT:
                return [(state, (429, None))]
            return [(state._replace(reads=state.reads + 1), (200, None))]
        if word == "day":  # what is ten minutes old can no longer be approved
            late = tuple((name, "late" if old == "received" else old) for name, old in state.consents)
            return [(Access(late), (200, None))]
        status = state.status(kind[1])
        if word == "status":
            return [(state, (200, "expired" if status in ("late", "timedOut") else status))]
        if word == "delete":
            ends = {"valid": "terminatedByTpp", "received": "rejected"}
            return [(state.become(kind[1], ends.get(status, status)), (204, None))]
        if word == "revoke":
            if status in ("received", "rejected", "late", "timedOut"):
                return [(state, (404, None))]
            return [(state.become(kind[1], "revokedByPsu" if status == "valid" else status), (200, None))]
        if status not in ("received", "late"):
            return [(state, (409, None))]
        if status == "late":
            return [(state.become(kind[1], "timedOut"), (200, None))]
        return [(state.become(kind[1], "valid" if word == "approve" else "rejected"), (200, None))]
