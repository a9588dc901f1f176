"""Every kind of document in a bank, and the members by which documents are looked up.

Each such member is declared here and indexed by the store, in constant time per change. Bank time goes back only in a
reset, so documents of a kind with `arrival` are inserted in the order of that member.

A new kind is a TypedDict in `documents.py`, declared here; storing, snapshots and `GET state` follow. By hand: whether
`initialize` keeps it (`KEPT_BY_INITIALIZE` in `fixtures/__init__.py`), what of it goes with an account or a customer
(`bank/sandbox`), where it is counted (`COUNTED` in `api/service.py` and `web/console/banks.py`, `_COUNTED` in
`scenario/target.py`), and if it is never deleted, `FOR_EVER` in `tests/bench/soak.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from emulator.bank import documents as d
from emulator.store import Documents, Kind, Ordered

D = TypeVar("D", bound=Mapping[str, Any])

META = Kind[dict[str, Any]]("meta")  # see Singleton


class Singleton(Generic[D]):
    """A document that exists at most once in a bank, under a fixed id of the kind `meta`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, documents: Documents) -> D | None:
        return cast(D | None, documents.get(META, self.name))

    def follow(self, documents: Documents, take: Callable[[D | None], None]) -> None:
        """Call `take` with the document now and after every change of it, also when a snapshot is restored."""
        text: bytes | None = b""  # different from the text of any document

        def changed() -> None:
            nonlocal text
            present = documents.text(META, self.name)
            if present != text:
                text = present
                take(self.read(documents))

        documents.follow(META, changed)
        changed()

    def write(self, documents: Documents, document: D) -> None:
        """Insert or replace the document, whose id is the name."""
        documents.put(META, cast(dict[str, Any], document))

    def delete(self, documents: Documents) -> None:
        documents.delete(META, self.name)


CLOCK = Singleton[d.ClockDocument]("clock")
SETTINGS = Singleton[Mapping[str, Any]]("settings")  # those that differ from the bank's defaults, by name
BANK = Singleton[d.BankDocument]("bank")
EXCHANGE = Singleton[d.ExchangeDocument]("exchange")
CONSOLE = Singleton[d.ConsoleDocument]("console")
RULES = Singleton[d.RulesDocument]("rules")
SCENARIO = Singleton[d.ScenarioDocument]("scenario")

# people
CUSTOMER = Kind[d.Customer]("customer", indexes=("customerNumber",))
PERSON = Kind[d.Person]("person")  # id: the national identity number
AGREEMENT = Kind[d.Agreement]("agreement", indexes=("owner", "persons", "accounts"))
PSU = Kind[d.Psu]("psu", indexes=("nationalId", "key"))  # id: the PSU-ID; key: `tpp|nationalId`

# money
ACCOUNT = Kind[d.Account]("account", indexes=("customerId", "owners", "bban", "iban"))
TRANSACTION = Kind[d.Transaction](
    "transaction",
    indexes=("accountId",),
    ordered={"shelf": Ordered(by="order", group="shelf"), "due": Ordered(by="due")},
)
CARD = Kind[d.Card]("card", indexes=("customerId", "accountNumber"))
CARD_TRANSACTION = Kind[d.CardTransaction](
    "cardTransaction", indexes=("cardId",), ordered={"shelf": Ordered(by="order", group="shelf")}
)

# access
SESSION = Kind[d.Session](
    "session",
    # owner: `tpp|nationalId|context`, until a newer session replaces it; past: replaced, the oldest are evicted
    indexes=("key", "owner", "past", "nationalId"),
    ordered={"created": Ordered(by="created")},
)
CONSENT = Kind[d.Consent](
    "consent",
    indexes=("owner", "nationalId"),
    ordered={"created": Ordered(by="created"), "due": Ordered(by="due")},
)
SCA = Kind[d.Sca](
    "sca",
    # passing: may be evicted, the oldest first
    indexes=("target", "status", "passing"),
    ordered={"due": Ordered(by="due")},
    arrival="created",
)
LOGIN = Kind[d.Login]("login", indexes=("passing",))  # at the bank itself; id: the token that the browser stores
QUOTA = Kind[d.Quota]("quota")  # id: `tpp|account|operation`

# payments
PAYMENT = Kind[d.Payment]("payment", indexes=("likeness",), ordered={"due": Ordered(by="due")}, arrival="created")
AUTHORISATION = Kind[d.Authorisation]("authorisation", indexes=("target",))
BASKET = Kind[d.Basket]("basket", ordered={"created": Ordered(by="created")})

# notifications
SUBSCRIPTION = Kind[d.Subscription]("subscription", indexes=("passing",))  # id: the payment, basket or consent
NOTIFICATION = Kind[d.Notification](
    "notification",
    indexes=("target", "lane", "state", "done"),
    ordered={"due": Ordered(by="due")},
    arrival="created",
)

# the interface
REPEAT = Kind[d.Repeat]("repeat", arrival="created")  # id: `tpp|x-request-id`
CONTACT = Kind[d.Contact]("contact")  # id: the tppId

# The parameter of the sandbox's addresses that has the id, named when there is no such document.
PARAMETERS: Mapping[Kind[Any], str] = {
    CUSTOMER: "customerId",
    AGREEMENT: "agreementId",
    ACCOUNT: "mockAccountId",
    CARD: "mockCardAccountId",
}
HolderKind = Kind[d.Account] | Kind[d.Card]
EntryKind = Kind[d.Transaction] | Kind[d.CardTransaction]
ENTRIES_OF: Mapping[HolderKind, EntryKind] = {ACCOUNT: TRANSACTION, CARD: CARD_TRANSACTION}

KINDS: tuple[Kind[Any], ...] = tuple(declared for declared in globals().values() if isinstance(declared, Kind))
"""Every kind, in the order above."""
