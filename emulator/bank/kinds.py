"""Every kind of document that a bank keeps, and the members by which each kind is found.

A member that is searched is declared here; the store keeps its index in constant time (DESIGN, Store). Bank time goes
back through a reset only (CONTRACT 9), so what comes later is not created earlier: `arrival` is the order of `created`.
"""

from __future__ import annotations

from emulator.store import Kind, Ordered

KINDS: dict[str, Kind] = {
    # clock, settings, ids, rules, scenario, fixtures: one document each, so that a snapshot is one thing
    "meta": Kind(),
    # people
    "customer": Kind(indexes=("customerNumber",)),
    "person": Kind(),  # id: the national identity number
    "agreement": Kind(indexes=("owner", "persons", "accounts")),
    "psu": Kind(indexes=("nationalId", "key")),  # id: the PSU-ID; key: `tpp|nationalId`
    # money
    "account": Kind(indexes=("customerId", "bban", "iban")),
    "transaction": Kind(
        indexes=("accountId",),
        ordered={"shelf": Ordered(by="order", group="shelf"), "due": Ordered(by="due")},
    ),
    "card": Kind(indexes=("customerId", "accountNumber")),
    "cardTransaction": Kind(indexes=("cardId",), ordered={"shelf": Ordered(by="order", group="shelf")}),
    # access
    "session": Kind(
        # owner: `tpp|nationalId|context`, until a newer one takes its place; then past, dropped when there are many
        indexes=("key", "owner", "past", "nationalId"),
        ordered={"created": Ordered(by="created")},
    ),
    "consent": Kind(indexes=("owner", "nationalId"), ordered={"created": Ordered(by="created")}),
    "sca": Kind(
        # passing: of those that stand for nothing that stays, dropped when there are many
        indexes=("target", "status", "passing"),
        arrival="created",
    ),
    "quota": Kind(),  # id: `tpp|account|operation`
    # payments
    "payment": Kind(
        indexes=("likeness",),
        ordered={"due": Ordered(by="due")},
        arrival="created",
    ),
    "authorisation": Kind(indexes=("target",)),
    "basket": Kind(ordered={"created": Ordered(by="created")}),
    # the interface
    "repeat": Kind(arrival="created"),  # id: `tpp|x-request-id`
    "contact": Kind(),  # id: the tppId
}
