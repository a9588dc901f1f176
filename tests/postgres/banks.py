"""Clients that create, change, save, restore and delete a bank of their own, or fill it with sandbox data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tests.postgres.owner import BEGINS, Answer, Kind, Owner

CUSTOMERS, ACCOUNTS, TRANSACTIONS = 6, 2, 10  # of one `generate`: transactions of each account
ANEW = ("initialize", "reset", "scenario", "restore")  # what ends a `generate` that is under way
RULE = {"name": "slow", "when": {"operation": "getUser"}, "then": {"delay": "1s"}}
SCENARIO = {
    "scenario": "begin-again",
    "start": {"from": "empty", "clock": BEGINS, "settings": {"progression": "manual"}},
    "rules": [{**RULE, "then": {"answer": {"status": 200, "json": {"large": "enough for a thread " * 4000}}}}],
}


class Content(NamedTuple):
    """What the bank may hold: the hours that its clock was advanced by, and those in its snapshot, None for none."""

    hours: int
    saved: int | None = None


class BankOwner(Owner[Content | None]):
    """The bank is there, or not (None)."""

    kind = "own"
    alone = ("save", "restore")  # a snapshot has the bank as of when saving began
    width = 2
    bank_spec = {"fixtures": "empty", "now": BEGINS, "clock": "frozen"}  # noqa: RUF012 - nobody changes it

    def prepare(self) -> Content | None:
        return None

    def weights(self, states: set[Content | None]) -> Mapping[Kind, float]:
        if None in states and self.chooser.random() < 0.3:
            return {("create",): 1}
        weights: dict[Kind, float] = {("delete",): 6, ("advance",): 40, ("restore",): 5, ("read",): 40}
        return weights if restores(self) else {**weights, ("save",): 5}

    def request(self, kind: Kind) -> Answer:
        word = kind[0]
        if word in ("create", "delete"):
            method, body = ("PUT", dict(self.bank_spec)) if word == "create" else ("DELETE", None)
            return self.asked(f"{self.site.url()}/_emulator/banks/{self.bank}", method, body)[0], None
        method, path, body = {
            "advance": ("POST", "clock/advance", {"by": "PT1H"}),
            "save": ("PUT", "snapshots/kept", {}),
            "restore": ("POST", "snapshots/kept/restore", {}),
            "read": ("GET", "clock", None),
        }[word]
        status, answer = self.control(method, path, body)
        return status, hours(answer["now"]) if status == 200 and word in ("advance", "read") else None

    def step(self, state: Content | None, kind: Kind) -> Iterable[tuple[Content | None, Answer]]:
        word = kind[0]
        if word == "create":  # 409: another request has created or deleted it meanwhile
            return [(Content(0), (201 if state is None else 200, None)), (state, (409, None))]
        if state is None:
            return [(None, (404, None))]
        if word == "delete":
            return [(None, (204, None))]
        if word == "advance":
            return [(state._replace(hours=state.hours + 1), (200, state.hours + 1))]
        if word == "save":
            done = [(state._replace(saved=state.hours), (201 if state.saved is None else 200, None))]
            return [*done, (state, (409, None))] if self.silent() else done  # one is under way
        if word == "restore":
            return [(state, (404, None)) if state.saved is None else (state._replace(hours=state.saved), (200, None))]
        return [(state, (200, state.hours))]


class Sandbox(NamedTuple):
    """Sandbox data: customers (each with its accounts and transactions), hours, rules, a setting; and the snapshot."""

    customers: int = 0
    hours: int = 0
    rules: int = 0
    progression: str = "time"
    saved: Sandbox | None = None


class SandboxOwner(Owner[Sandbox]):
    """Fills a bank with generated customers, empties it, and changes clock, rules and settings in between."""

    kind = "sandbox"
    bank_spec = {"fixtures": "empty", "now": BEGINS, "clock": "frozen"}  # noqa: RUF012 - nobody changes it
    reads = ("state", "ledger")

    def prepare(self) -> Sandbox:
        self.make_bank()
        return Sandbox()

    def weights(self, states: set[Sandbox]) -> Mapping[Kind, float]:
        del states
        weights: dict[Kind, float] = {
            ("generate", str(CUSTOMERS)): 20, ("advance",): 15, ("initialize",): 3, ("reset",): 3, ("scenario",): 3,
            ("rule",): 10, ("unrule",): 5, ("immediate",): 10, ("state",): 10, ("ledger",): 20, ("restore",): 5,
        }  # fmt: skip
        return weights if restores(self) else {**weights, ("save",): 5}

    def request(self, kind: Kind) -> Answer:
        if kind[0] == "initialize":
            return self.signed("POST", "/v1/sandbox/initialize")[0], None
        plan = {"customers": CUSTOMERS, "accountsPerCustomer": ACCOUNTS, "transactionsPerAccount": TRANSACTIONS}
        method, path, body = {
            "generate": ("POST", "generate", plan),
            "advance": ("POST", "clock/advance", {"by": "PT1H"}),
            "reset": ("POST", "reset", {}),
            "scenario": ("POST", "scenario", SCENARIO),
            "rule": ("POST", "rules", RULE),
            "unrule": ("DELETE", "rules", None),
            "immediate": ("PUT", "settings", {"progression": "immediate"}),
            "save": ("PUT", "snapshots/kept", {}),
            "restore": ("POST", "snapshots/kept/restore", {}),
            "state": ("GET", "state", None),
            "ledger": ("GET", "ledger", None),
        }[kind[0]]
        status, answer = self.control(method, path, body)
        if status != 200:
            return status, None
        if kind[0] == "state":
            return status, shown(answer)
        if kind[0] == "ledger":
            return status, (answer["balanced"], len(answer["accounts"]) / ACCOUNTS)
        return status, hours(answer["now"]) if kind[0] == "advance" else None

    def step(self, state: Sandbox, kind: Kind) -> Iterable[tuple[Sandbox, Answer]]:
        word, saved = kind[0], state.saved
        if word == "generate":
            yield state._replace(customers=state.customers + CUSTOMERS), (200, None)
            if any(other[0] in ANEW for _, other in self.silent()):
                yield state, (409, None)
        elif word == "advance":
            yield state._replace(hours=state.hours + 1), (200, state.hours + 1)
        elif word == "initialize":
            yield state._replace(customers=0), (200, None)
        elif word == "reset":
            yield Sandbox(saved=saved), (200, None)
        elif word == "scenario":
            yield Sandbox(rules=1, progression="manual", saved=saved), (200, None)
        elif word == "rule":
            yield state._replace(rules=state.rules + 1), (201, None)
        elif word == "unrule":
            yield state._replace(rules=0), (204, None)
        elif word == "immediate":
            yield state._replace(progression="immediate"), (200, None)
        elif word == "save":
            yield state._replace(saved=state._replace(saved=None)), (200 if saved else 201, None)
            if any(other[0] == "save" for _, other in self.silent()):  # which is under way
                yield state, (409, None)
        elif word == "restore":
            yield (saved._replace(saved=saved), (200, None)) if saved else (state, (404, None))
        elif word == "state":
            yield state, (200, state._replace(saved=None))
        else:
            yield state, (200, (True, state.customers))

    def unanswered(self, state: Sandbox, kind: Kind) -> Iterable[tuple[Sandbox, Kind | None]]:
        """One customer after the other; a process that was killed has left those that were complete."""
        if kind[0] != "generate":
            yield from super().unanswered(state, kind)
        elif (left := int(kind[1])) > 0:
            yield state._replace(customers=state.customers + 1), ("generate", str(left - 1))


def restores(owner: Owner[Any]) -> bool:
    """Whether a restore may be under way: it has read the snapshot, and another one would not be what it restores."""
    return any(kind[0] == "restore" for _, kind in owner.silent())


def hours(now: str) -> int:
    """The hours since the bank was made."""
    return round((datetime.fromisoformat(now) - datetime.fromisoformat(BEGINS)) / timedelta(hours=1))


def shown(state: dict[str, Any]) -> Sandbox | str:
    """What all documents of a bank say; a text if customers are there without their accounts and transactions."""
    meta = {document["id"]: document for document in state["meta"]}
    customers, accounts, transactions = (len(state[kind]) for kind in ("customer", "account", "transaction"))
    if (accounts, transactions) != (customers * ACCOUNTS, customers * ACCOUNTS * TRANSACTIONS):
        return f"{customers} customers with {accounts} accounts and {transactions} transactions"
    rules, settings = meta.get("rules", {}).get("rules", ()), meta.get("settings", {})
    return Sandbox(customers, hours(meta["clock"]["now"]), len(rules), settings.get("progression", "time"))
