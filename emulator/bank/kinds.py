"""Every kind of document that a bank holds, and the members by which each kind is found.

A member that is searched is declared here; the store keeps its index in constant time (DESIGN, Documents and Log).
Bank time goes back only in a reset (CONTRACT 9), so documents are inserted in the order of `created`, where `arrival`
says so.
"""

from __future__ import annotations

from typing import Any

from emulator.store import Kind, Ordered

_Document = dict[str, Any]

# clock, settings, ids, rules, scenario, fixtures: one document each, so that a snapshot is one thing
META = Kind[_Document]("meta")

# people
CUSTOMER = Kind[_Document]("customer", indexes=("customerNumber",))
PERSON = Kind[_Document]("person")  # id: the national identity number
AGREEMENT = Kind[_Document]("agreement", indexes=("owner", "persons", "accounts"))
PSU = Kind[_Document]("psu", indexes=("nationalId", "key"))  # id: the PSU-ID; key: `tpp|nationalId`

# money
ACCOUNT = Kind[_Document]("account", indexes=("customerId", "bban", "iban"))
TRANSACTION = Kind[_Document](
    "transaction",
    indexes=("accountId",),
    ordered={"shelf": Ordered(by="order", group="shelf"), "due": Ordered(by="due")},
)
CARD = Kind[_Document]("card", indexes=("customerId", "accountNumber"))
CARD_TRANSACTION = Kind[_Document](
    "cardTransaction", indexes=("cardId",), ordered={"shelf": Ordered(by="order", group="shelf")}
)

# access
SESSION = Kind[_Document](
    "session",
    # owner: `tpp|nationalId|context`, until a newer one takes its place; then past, dropped when there are many
    indexes=("key", "owner", "past", "nationalId"),
    ordered={"created": Ordered(by="created")},
)
CONSENT = Kind[_Document]("consent", indexes=("owner", "nationalId"), ordered={"created": Ordered(by="created")})
SCA = Kind[_Document](
    "sca",
    # passing: of those that stand for nothing that stays, dropped when there are many
    indexes=("target", "status", "passing"),
    arrival="created",
)
LOGIN = Kind[_Document]("login", indexes=("passing",))  # of a customer at the bank itself; id: what its browser keeps
QUOTA = Kind[_Document]("quota")  # id: `tpp|account|operation`

# payments
PAYMENT = Kind[_Document]("payment", indexes=("likeness",), ordered={"due": Ordered(by="due")}, arrival="created")
AUTHORISATION = Kind[_Document]("authorisation", indexes=("target",))
BASKET = Kind[_Document]("basket", ordered={"created": Ordered(by="created")})

# the interface
REPEAT = Kind[_Document]("repeat", arrival="created")  # id: `tpp|x-request-id`
CONTACT = Kind[_Document]("contact")  # id: the tppId

KINDS: tuple[Kind[Any], ...] = (
    META,
    CUSTOMER,
    PERSON,
    AGREEMENT,
    PSU,
    ACCOUNT,
    TRANSACTION,
    CARD,
    CARD_TRANSACTION,
    SESSION,
    CONSENT,
    SCA,
    LOGIN,
    QUOTA,
    PAYMENT,
    AUTHORISATION,
    BASKET,
    REPEAT,
    CONTACT,
)
