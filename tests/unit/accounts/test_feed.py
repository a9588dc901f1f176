"""A feed that drifts: what TPPs see of it, what stays true, and whom it catches (accounts.md#feeds-that-drift)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank import feed
from emulator.bank.accounts import accounts, ledger, transactions
from emulator.bank.accounts.transactions import DriftingFeed, Window
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.feed import EFFECTS
from emulator.bank.kinds import TRANSACTION
from emulator.bank.payment import progression
from emulator.bank.threads import run_to_end
from tests.unit.accounts.conftest import BAKERY, SALARY, account, known_state

DAYS = 90  # that a client reads each time, and more than any effect lasts
Effect = dict[str, Any]

when = st.sampled_from(
    [
        *({}, {"account": "NO*"}, {"creditorName": "*a*"}, {"transactionAmount": {"amount": {"lt": -400}}}),
        *({"status": {"in": ["booked", "pending"]}}, {"valueDate": "2026-02-*"}),
    ]
)
chance = st.sampled_from([0.0, 0.3, 0.7, 1.0])
effects = st.one_of(
    st.fixed_dictionaries({"effect": st.sampled_from(EFFECTS)}, optional={"when": when, "chance": chance}),
    st.fixed_dictionaries({"effect": st.sampled_from(["late", "renumber-day"]), "days": st.integers(1, 6)}),
    st.fixed_dictionaries({"effect": st.sampled_from(["duplicate", "vanish"]), "hours": st.integers(1, 72)}),
    st.fixed_dictionaries({"effect": st.just("amend"), "percent": st.integers(-99, 100)}),
)
feeds = st.lists(effects, min_size=1, max_size=5)


def fresh(effects: list[Effect]) -> Bank:
    bank = known_state()
    bank.change_settings({"feed": effects})
    return bank


def wait(bank: Bank, **by: float) -> None:
    bank.clock.advance(timedelta(**by))
    progression.run_due(bank)


def read(bank: Bank, bban: str, limit: int = 100) -> dict[str, list[dict[str, Any]]]:
    """What a client sees that reads 90 days, from page to page; without dateTo, since dates may lie ahead."""
    first = (bank.clock.today() - timedelta(days=DAYS)).isoformat()
    shown: dict[str, list[dict[str, Any]]] = {"pending": [], "booked": []}
    for offset in range(0, 1000 * limit, limit):
        window = Window(first=first, offset=offset, limit=limit)
        page = transactions.page(bank, account(bank, bban)["id"], window)
        for shelf, entries in page.entries.items():
            shown[shelf] += [transactions.view(entry, corporate=False) for entry in entries]
        if not page.more:
            return shown
    raise AssertionError("the pages do not end")


class Mirror:
    """A careful client: at each read it puts what is listed in the place of what it had of these 90 days."""

    def __init__(self) -> None:
        self.booked: list[dict[str, Any]] = []
        self.pending: list[dict[str, Any]] = []

    def sync(self, bank: Bank, bban: str) -> None:
        shown = read(bank, bban)
        first = (bank.clock.today() - timedelta(days=DAYS)).isoformat()
        older = [entry for entry in self.booked if entry["bookingDate"] < first]
        self.booked, self.pending = older + shown["booked"], shown["pending"]

    def money(self) -> list[tuple[str, str]]:
        """What was booked, by value date and amount."""
        return sorted((entry["valueDate"], entry["transactionAmount"]["amount"]) for entry in self.booked)


class Naive(Mirror):
    """Keeps each id that it has not seen yet, and reads on from the newest booking date that it knows, up to today."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, dict[str, Any]] = {}

    def sync(self, bank: Bank, bban: str) -> None:
        newest = max((entry.get("bookingDate", "") for entry in self.known.values()), default="")
        shown = read(bank, bban)
        today = bank.clock.today().isoformat()
        for entry in [*shown["pending"], *shown["booked"]]:
            if newest <= entry.get("bookingDate", today) <= today:
                before = self.known.setdefault(entry["transactionId"], entry)
                before.setdefault("bookingDate", entry.get("bookingDate", ""))
        self.booked = list(self.known.values())


def stored(bank: Bank, bban: str) -> list[Mapping[str, Any]]:
    """What is booked of the last 90 days."""
    first = (bank.clock.today() - timedelta(days=DAYS)).isoformat()
    group = f"{account(bank, bban)['id']}|booked"
    return [orjson.loads(text) for text in bank.documents.range_texts(TRANSACTION, "shelf", group=group, low=first)]


def booked_money(bank: Bank, bban: str) -> list[tuple[str, str]]:
    return sorted((entry["valueDate"], entry["amount"]) for entry in stored(bank, bban))


@given(feed=feeds, waits=st.lists(st.integers(1, 40), max_size=6), bban=st.sampled_from([SALARY, BAKERY]))
def test_whatever_drifts_a_careful_client_has_every_booking_once_in_the_end(
    feed: list[Effect], waits: list[int], bban: str
) -> None:
    bank, client = fresh(feed), Mirror()
    true = fresh([])
    for hours in (*waits, 24 * 40):  # then all that was late has come
        wait(bank, hours=hours)
        wait(true, hours=hours)
        client.sync(bank, bban)
        assert run_to_end(ledger.reporting(bank)) == run_to_end(ledger.reporting(true))
        assert run_to_end(ledger.reporting(bank))["balanced"] is True
        assert accounts.balances(bank, account(bank, bban)) == accounts.balances(true, account(true, bban))
        shown = [entry["transactionId"] for entry in client.booked if "transactionId" in entry]  # or `without-id`
        assert len(set(shown)) == len(shown)
    known = [pair for pair in client.money() if pair[0] >= (bank.clock.today() - timedelta(days=60)).isoformat()]
    booked = [pair for pair in booked_money(bank, bban) if pair[0] >= known[0][0]]
    assert Counter(known) == Counter(booked)
    assert bank.documents.dump()["transaction"] == true.documents.dump()["transaction"]


@given(feed=feeds, hours=st.integers(0, 100), limit=st.integers(1, 30), offset=st.integers(0, 60))
def test_a_page_of_a_drifting_feed_is_a_slice_of_the_whole_and_shown_ids_lead_to_their_details(
    feed: list[Effect], hours: int, limit: int, offset: int
) -> None:
    bank = fresh(feed)
    wait(bank, hours=hours)
    holder = account(bank, BAKERY)["id"]
    for grouped in (True, False):
        whole = transactions.page(bank, holder, Window(limit=10_000, grouped=grouped)).entries
        listed = whole["pending"] + whole["booked"]
        page = transactions.page(bank, holder, Window(offset=offset, limit=limit, grouped=grouped))
        assert page.entries["pending"] + page.entries["booked"] == listed[offset : offset + limit]
        assert page.more == (offset + limit < len(listed))
        for entry in listed[hours % 25 :: 25]:  # finding one looks through all of them
            assert transactions.stored(bank, holder, entry["id"]) == entry
            if "unidentified" not in entry:
                assert transactions.find(bank, holder, entry["id"]) == entry
        for shelf in ("pending", "booked"):
            orders = [entry["order"] for entry in whole[shelf]]
            assert orders == sorted(orders, reverse=True)


@given(feed=feeds, hours=st.integers(0, 100))
def test_every_read_at_one_moment_shows_the_same_in_every_bank_of_the_seed(feed: list[Effect], hours: int) -> None:
    banks = [fresh(feed), fresh(feed)]
    for bank in banks:
        wait(bank, hours=hours)
    first, second = (read(bank, SALARY) for bank in banks)
    assert first == second == read(banks[0], SALARY, limit=7)


def synced(clients: list[Mirror], feed: list[Effect]) -> Iterator[Bank]:
    """The bank after each read of the clients, morning and evening of a week with a purchase in each half at first."""
    bank = fresh(feed)
    for client in clients:
        client.sync(bank, SALARY)
    for half in range(14):
        if half < 8:
            shop = ("Kålroten Dagligvare", "Kafé Prøvekopp")[half % 2]
            ledger.book(bank, account(bank, SALARY)["id"], {"amount": f"-{20 + half}.00", "creditorName": shop})
        wait(bank, hours=12)
        for client in clients:
            client.sync(bank, SALARY)
        yield bank


# What a naive client gets wrong with each: too many, another amount, too few.
NAIVE = {
    "none": [],
    "new-id": [{"effect": "new-id"}],
    "amend": [{"effect": "amend"}],
    "shift-booking-date": [{"effect": "shift-booking-date"}],
    "late": [{"effect": "late", "days": 3, "when": {"creditorName": "Kålroten*"}}],
    "duplicate": [{"effect": "duplicate"}],
    "renumber-day": [{"effect": "renumber-day"}],
}


@pytest.mark.parametrize("effect", NAIVE)
def test_a_naive_client_is_caught_by_each_effect_and_a_careful_one_is_not(effect: str) -> None:
    naive, careful = Naive(), Mirror()
    *_, bank = synced([naive, careful], NAIVE[effect])
    assert (naive.money() != booked_money(bank, SALARY)) == (effect != "none")
    assert careful.money()[-5:] == booked_money(bank, SALARY)[-5:]


def test_a_client_that_never_forgets_what_is_pending_is_caught_by_what_vanishes() -> None:
    class Keeps(Mirror):
        """Takes a pending item off when its booking comes, and not before."""

        waiting: dict[str, Any]

        def sync(self, bank: Bank, bban: str) -> None:
            super().sync(bank, bban)
            booked = {entry["transactionId"] for entry in self.booked}
            listed = {entry["transactionId"]: entry for entry in self.pending}
            self.waiting = {k: v for k, v in {**getattr(self, "waiting", {}), **listed}.items() if k not in booked}

    def differs(feed: list[Effect]) -> bool:
        client = Keeps()
        return any(len(client.waiting) != len(client.pending) for _ in synced([client], feed))

    assert differs([{"effect": "vanish"}])
    assert not differs([])


def test_two_effects_that_double_an_item_give_every_copy_an_id_of_its_own() -> None:
    bank = fresh([{"effect": "duplicate"}, {"effect": "duplicate", "hours": 6}])
    wait(bank, hours=24)
    ids = [entry["transactionId"] for entry in read(bank, SALARY)["booked"] if entry["bookingDate"] == "2026-03-03"]
    assert len(ids) == len(set(ids)) == 4


def test_late_items_are_shown_twice_from_when_they_appear() -> None:
    bank = fresh([{"effect": "duplicate", "hours": 6}, {"effect": "late", "days": 2}])
    holder = account(bank, SALARY)["id"]
    wait(bank, hours=24)
    entry, shown = next(DriftingFeed(bank, TRANSACTION, holder).trace("booked"))
    assert entry["bookingDate"] == "2026-03-03"
    assert [(one.since, one.until, one.effects) for one in shown] == [
        ("2026-03-05T05:00:00.000000+00:00", None, ("late", "duplicate")),
        ("2026-03-05T05:00:00.000000+00:00", "2026-03-05T11:00:00.000000+00:00", ("late", "duplicate")),
    ]


def test_a_condition_that_no_entry_can_meet_is_refused() -> None:
    for effect, when, path in (
        ("new-id", {"status": "booked"}, "status"),
        ("late", {"status": "pending"}, "status"),
        ("late", {"status": "bookd"}, "status"),
        ("amend", {"bookingDate": "2026-*"}, "bookingDate"),
        ("late", {"creditorName": None}, "creditorName"),
    ):
        with pytest.raises(BankError) as refused:
            fresh([{"effect": effect, "when": when}])
        assert [message.path for message in refused.value.messages] == [f"feed[0].when.{path}"]


def test_a_stored_effect_that_is_refused_now_is_left_out() -> None:
    stated = [{"effect": "late", "when": {"creditorName": None}}, {"effect": "new-id"}]
    assert [effect.effect for effect in feed.effects(stated)] == ["new-id"]


def test_a_chance_chooses_some_and_the_seed_chooses_which() -> None:
    def renumbered(seed: int, chance: float) -> list[bool]:
        bank = known_state(seed)
        before = [entry["transactionId"] for entry in read(bank, SALARY)["booked"]]
        bank.change_settings({"feed": [{"effect": "renumber-day", "chance": chance}]})
        after = [entry["transactionId"] for entry in read(bank, SALARY)["booked"]]
        return [was != now for was, now in zip(before, after, strict=True)]

    some = renumbered(1, 0.5)
    assert len(some) // 4 < sum(some) < len(some) * 3 // 4
    assert some == renumbered(1, 0.5) != renumbered(2, 0.5)
    assert not any(renumbered(1, 0))
    assert all(renumbered(1, 1))
