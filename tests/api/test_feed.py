"""A feed that drifts, at the interface: lists, details, cards and the sandbox listing alike."""

from __future__ import annotations

from typing import Any

from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, messages, ok
from tests.known_state import EVEN, KARI, SIRI

RENUMBER = [{"effect": "renumber-day"}]


def own(client: DeskClient) -> str:
    account: str = ok(client.get("/v1/accounts"))["accounts"][0]["resourceId"]
    return account


def entries(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [*body["pending"], *body["booked"]]


def test_pages_and_details_follow_the_shown_ids(kari: DeskClient, desk: ControlDesk) -> None:
    account = own(kari)
    path = f"/v1/accounts/{account}/transactions"
    before = ok(kari.get(path))
    desk.do("PUT", "/settings", {"feed": RENUMBER})
    shown, link = [], f"{path}?limit=7"
    while link:
        page = ok(kari.get(link))["transactions"]
        shown += entries(page)
        link = page["_links"].get("next", {}).get("href")
    was = entries(before["transactions"])
    assert [{**entry, "transactionId": ""} for entry in shown] == [{**entry, "transactionId": ""} for entry in was]
    assert not {e["transactionId"] for e in shown if "bookingDate" in e} & {e["transactionId"] for e in was}
    for entry in shown[::9]:
        assert ok(kari.get(f"{path}/{entry['transactionId']}"))["transactionsDetails"] == entry
    assert kari.get(f"{path}/{was[-1]['transactionId']}").status == 404
    desk.do("PUT", "/settings", {"feed": []})
    assert ok(kari.get(path)) == before


def test_cards_and_the_sandbox_listing_show_the_same_drift(kari: DeskClient, desk: ControlDesk) -> None:
    card = ok(kari.get("/v1/card-accounts"))["cardAccounts"][0]["resourceId"]
    account = own(kari)
    paths = f"/v1/card-accounts/{card}/transactions", f"/v1/sandbox/accounts/{account}/transactions"
    cards, sandbox = (ok(kari.get(path)) for path in paths)
    desk.do("PUT", "/settings", {"feed": [{"effect": "duplicate", "hours": 2160}, {"effect": "new-id"}]})
    doubled = ok(kari.get(paths[0]))["cardTransactions"]
    assert len(doubled["booked"]) == 2 * len(cards["cardTransactions"]["booked"])
    ids = [entry["cardTransactionId"] for entry in entries(doubled)]
    assert len(set(ids)) == len(ids)
    listed = ok(kari.get(f"{paths[1]}?limit=500"))
    seen = ok(kari.get(f"/v1/accounts/{account}/transactions?limit=500"))["transactions"]
    assert [entry["id"] for entry in listed] == [entry["transactionId"] for entry in entries(seen)]
    assert ok(kari.get(listed[-1]["_links"]["self"]["href"]))["id"] == listed[-1]["id"]
    assert ok(kari.get(sandbox[0]["_links"]["self"]["href"]))["id"] == sandbox[0]["id"]


def test_links_of_sandbox_listings_lead_to_what_they_show_also_where_tpps_see_no_id(
    kari: DeskClient, desk: ControlDesk
) -> None:
    card = ok(kari.get("/v1/card-accounts"))["cardAccounts"][0]["resourceId"]
    for effect in ("new-id", "shift-booking-date"):
        desk.do("PUT", "/settings", {"feed": [{"effect": effect}, {"effect": "without-id"}]})
        for holder in (f"accounts/{own(kari)}", f"card-accounts/{card}"):
            for entry in ok(kari.get(f"/v1/sandbox/{holder}/transactions?limit=500"))[::20]:
                assert ok(kari.get(entry["_links"]["self"]["href"])) == entry, effect


def test_a_feed_that_cannot_be_is_refused_with_every_mistake(desk: ControlDesk) -> None:
    feed = [{"effect": "newid"}, {"effect": "late", "hours": 2}, {"effect": "new-id", "when": {"creditorNme": "A"}}]
    refused = desk.ask("PUT", "/settings", {"feed": feed})
    assert (refused.status, refused.errors()) == (
        400,
        [
            ("FORMAT_ERROR", f"feed[{index}].{member}")
            for index, member in enumerate(("effect", "hours", "when.creditorNme"))
        ],
    )
    assert "did you mean new-id?" in refused.texts()
    twice = {"scenario": "x", "start": {"feed": [], "settings": {"feed": []}}}
    assert "write it once" in desk.ask("POST", "/scenario", twice).texts()
    assert desk.get("/settings")["feed"] == []


def test_all_links_of_a_customer_with_renewed_ids_lead_somewhere(tpp: DeskClient, desk: ControlDesk) -> None:
    """Setting account_ids: pages, batches, cards; the quota of the account goes on under its new id."""
    desk.do("PUT", "/settings", {"account_ids": "renewed"})
    for who, context in ((SIRI, "CORPORATE"), (KARI, "PRIVATE")):
        client = tpp.log_in(who, context=context)
        held = [*ok(client.get("/v1/accounts"))["accounts"], *ok(client.get("/v1/card-accounts"))["cardAccounts"]]
        for one in held:
            for name in ("self", "balances", "transactions"):
                answer = ok(client.get(one["_links"][name]["href"]))
                assert one["resourceId"] in one["_links"][name]["href"]
            page = next(answer[name] for name in ("transactions", "cardTransactions") if name in answer)
            ok(client.get(page["_links"]["account"]["href"]))
            for entry in page["booked"][:3] if context == "CORPORATE" else []:
                details = ok(client.get(entry["_links"]["transactionDetails"]["href"]))["transactionsDetails"]
                for inner in details.get("entryDetails", ()):
                    ok(client.get(inner["_links"]["transactionDetails"]["href"]))
    alone = {"PSU-IP-Address": None}
    for expected in (200, 200, 200, 200, 429):
        account = own(tpp.log_in(KARI))
        assert tpp.get(f"/v1/accounts/{account}/balances", headers=alone).status == expected


def test_an_id_of_another_consent_of_the_customer_is_unknown(tpp: DeskClient, desk: ControlDesk) -> None:
    desk.do("PUT", "/settings", {"account_ids": "renewed"})
    private = own(tpp.log_in(EVEN, context="PRIVATE"))
    other = tpp.log_in(EVEN, context="CORPORATE")
    assert ok(other.get(f"/v1/accounts/{own(other)}"))["account"]["resourceId"] == own(other)
    for path in ("", "/balances", "/transactions"):
        assert messages(other.get(f"/v1/accounts/{private}{path}")) == [("RESOURCE_UNKNOWN", "id")]


def test_a_consent_keeps_the_ids_that_it_was_given_with(tpp: DeskClient, desk: ControlDesk) -> None:
    for setting, next_one in (("same", "renewed"), ("renewed", "same")):
        desk.do("PUT", "/settings", {"account_ids": setting})
        account = own(tpp.log_in(KARI))
        desk.do("PUT", "/settings", {"account_ids": next_one})
        assert own(tpp) == account
        assert tpp.get(f"/v1/accounts/{account}/balances").status == 200
        assert own(tpp.log_in(KARI)) != account
