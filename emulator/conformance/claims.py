"""What the TPP claims about payments and accounts (`--claims`), compared with the ledger of the bank.

The TPP answers `GET {claims}/payments/{id}` with `{"state": "paid|open|failed"}` and `GET {claims}/accounts/{id}` with
`{"balance": "100.00", "transactions": 12}`. It omits a member that it does not know; other members are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from http.client import HTTPException
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from emulator.bank.conditions import number

STATES = ("paid", "open", "failed")
Member = Literal["state", "balance", "transactions"]
MEMBERS = {"payments": ("state",), "accounts": ("balance", "transactions")}
TIMEOUT = 5.0  # seconds for one answer
MOST_BYTES = 65_536  # of one answer

_open = build_opener(ProxyHandler({})).open


class ClaimUnreadable(Exception):
    """The claims address gave no usable answer; the argument is a sentence that names the address."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What the TPP claims of a payment (`state`) or an account (`balance` and `transactions`), and what is true.

    None: it claims nothing. `since`: the bank time (seconds since 1970) from which on an account is as it is.
    """

    claimed: Mapping[str, Any]
    true: Mapping[str, Any]
    since: float = 0.0

    @property
    def text(self) -> str:
        """The claim and the truth, in a sentence."""
        claimed, true = self.claimed, self.true
        if "state" in true:
            return f"It claims that the payment is {claimed['state']}; it is {true['state']}."
        return (
            f"It claims {claimed['balance']} and {claimed['transactions']} transactions; "
            f"the account has {true['balance']} and {true['transactions']}."
        )

    def holds(self, claim: Mapping[Member, Any]) -> bool | None:
        """Whether it meets the `claim` of a check; None if the TPP claims nothing, or the payment has changed since."""
        member, wanted = next(iter(claim.items()), ("", None))
        claimed, true = self.claimed.get(member), self.true.get(member)
        if isinstance(wanted, Mapping):
            return bool(claimed != wanted.get("not"))
        return None if claimed is None or wanted not in ("ledger", true) else bool(claimed == true)


def state_of(status: str) -> str:
    """The state of a payment with this transactionStatus."""
    if status == "ACSC":
        return "paid"
    return "failed" if status in ("RJCT", "CANC") else "open"


def ask(address: str, wanted: Mapping[str, Iterable[str]]) -> tuple[dict[str, Any], list[str]]:
    """What the TPP claims of the payments and accounts with these ids, and a sentence for each request that failed."""
    beliefs: dict[str, Any] = {}
    problems: list[str] = []
    for kind, identity in [(kind, one) for kind, ids in wanted.items() for one in ids]:
        try:
            claim = asked(address, kind, identity)
        except ClaimUnreadable as problem:
            problems.append(str(problem))
            continue
        if claim is None:
            problems.append(f"{_place(address, kind, identity)} answered 404")
        else:
            beliefs[identity] = claim
    return beliefs, problems


def _place(address: str, kind: str, identity: str) -> str:
    return f"{address.rstrip('/')}/{kind}/{quote(identity, safe='')}"


def asked(address: str, kind: str, identity: str) -> dict[str, Any] | None:
    """What the TPP claims of one of `payments` or `accounts`; None: it knows no such thing. Raises ClaimUnreadable."""
    url = _place(address, kind, identity)
    if not url.startswith(("http://", "https://")):
        raise ClaimUnreadable(f"{url} is not an http or https address")
    try:
        with _open(url, timeout=TIMEOUT) as answer:
            text = answer.read(MOST_BYTES + 1)
    except HTTPError as error:
        if error.code == 404:
            return None
        raise ClaimUnreadable(f"{url} answered {error.code}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ClaimUnreadable(f"{url} cannot be reached: {getattr(reason, 'strerror', None) or reason}") from None
    if len(text) > MOST_BYTES:
        raise ClaimUnreadable(f"{url} answered more than {MOST_BYTES} bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ClaimUnreadable(f"{url} answered something that is not JSON") from None
    problem = unreadable(kind, value)
    if problem is not None:
        raise ClaimUnreadable(f"{url} answered {problem}")
    return {name: value[name] for name in MEMBERS[kind] if name in value}


def unreadable(kind: str, value: Any) -> str | None:
    """What is wrong with a claim of `kind` (payments or accounts); None if nothing is."""
    if not isinstance(value, dict):
        return "something that is not an object"
    if kind == "payments":
        return None if value.get("state") in STATES else f"no state of {', '.join(STATES)}"
    if value.get("balance") is not None and decimal(value["balance"]) is None:
        return "a balance that is not a decimal in a string"
    transactions = value.get("transactions")
    if transactions is not None and (not isinstance(transactions, int) or isinstance(transactions, bool)):
        return "transactions that are not an integer"
    return None


def decimal(value: Any) -> Decimal | None:
    """The decimal number in a string; None for anything else."""
    return number(value) if isinstance(value, str) else None
