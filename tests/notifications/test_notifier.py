"""The task that sends: only what is kept, so many at once, and again what was left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.assemble import notifier
from emulator.assemble.notifier import Notifier
from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.kinds import KINDS
from emulator.bank.notifications import DeliveryResult
from emulator.store import StoreUnwritable, memory_store
from tests.unit.effort import calls


class Office:
    """A bank with its sender: `posted` notes what goes out, `gate` holds the answers back."""

    def __init__(self, bank: Bank | None = None) -> None:
        self.bank = bank or Bank(memory_store(KINDS), seed=1)
        if bank is None:
            self.bank.clock.set(mode="frozen")
            self.bank.change_settings({"notifications": True})
        self.posted: list[str] = []
        self.failures = 0
        self.stored = asyncio.Event()
        self.stored.set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.services: list[Any] = [SimpleNamespace(bank=self.bank, settling=lambda: iter(()))]
        self.notifier = Notifier(lambda: iter(self.services), self.opened, change=self.change, post=self.post)

    def opened(self, name: str) -> Any:
        return next((service for service in self.services if service.bank.name == name), None)

    async def change(self, _: Any, work: Callable[[], Any]) -> Any:
        if self.failures:
            self.failures -= 1
            raise StoreUnwritable("the disk is full")
        done = work()
        await self.stored.wait()
        return done

    async def post(self, uri: str, body: bytes, identity: str, _traceparent: str | None) -> DeliveryResult:
        self.posted.append(uri)
        if "//silent" in uri:
            await asyncio.Event().wait()
        await self.gate.wait()
        return DeliveryResult(status=204)

    def queue(self, *targets: str, tpp: str = "a", receiver: str = "") -> None:
        for target in targets:
            uri = f"https://{receiver or target}.example/"
            notifications.subscribe(self.bank, target, "payment", tpp=tpp, uri=uri, content=("PROCESS",))
            notifications.status_changed(self.bank, target, "ACTC")

    def states(self) -> set[str]:
        return {one["state"] for one in notifications.listing(self.bank)}


async def turns(count: int = 20) -> None:
    """Let everything run that can run by itself."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_is_due_is_applied_in_pieces_before_a_claim_and_others_come_between() -> None:
    office = Office()
    applied: list[str] = []

    def settling() -> Iterator[None]:
        for piece in ("first", "second"):
            applied.append(piece)
            yield

    office.services[0].settling = settling
    office.queue("p")
    office.notifier.start()
    while "second" not in applied:
        assert office.states() == {"waiting"}
        await asyncio.sleep(0)
        applied.append("a request")
    await turns()
    assert "a request" in applied[applied.index("first") : applied.index("second")]
    assert office.states() == {"delivered"}
    office.notifier.stop()


async def test_nothing_is_sent_before_its_claim_is_as_durable_as_asked_for() -> None:
    office = Office()
    office.stored.clear()
    office.notifier.start()
    office.queue("p")
    await turns()
    assert office.posted == []
    office.stored.set()
    await office.notifier.quiet()
    assert office.posted == ["https://p.example/"]
    office.notifier.stop()


async def test_a_claim_that_was_undone_is_not_sent() -> None:
    """A failed fsync takes back the claim and the change before it."""
    office = Office()
    image = office.bank.documents.image()
    office.stored.clear()
    office.notifier.start()
    office.queue("p")
    await turns()
    office.bank.documents.restore(image)
    office.stored.set()
    await office.notifier.quiet()
    assert office.posted == []
    office.notifier.stop()


async def test_a_full_disk_pauses_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "PAUSE", 0.01)
    monkeypatch.setattr(notifier, "TICK", 0.01)
    office = Office()
    office.failures = 3
    office.notifier.start()
    office.queue("p")
    await turns()
    assert (office.posted, office.failures) == ([], 2)
    await office.notifier.quiet()
    assert office.posted == ["https://p.example/"]
    office.notifier.stop()


async def test_an_outcome_that_cannot_be_stored_is_stored_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "PAUSE", 0.01)
    monkeypatch.setattr(notifier, "TICK", 0.01)
    office = Office()
    office.gate.clear()
    office.notifier.start()
    office.queue("p")
    await turns()
    office.failures = 2
    office.gate.set()
    await office.notifier.quiet()
    assert (office.posted, office.states()) == (["https://p.example/"], {"delivered"})
    office.notifier.stop()


async def test_so_many_are_sent_at_once_and_so_many_to_one_receiver() -> None:
    office = Office()
    office.gate.clear()
    office.notifier.start()
    for receiver in "abcdef":
        office.queue(*(f"{receiver}-{number}" for number in range(6)), tpp=receiver, receiver=receiver)
    await turns()
    assert len(office.posted) == notifier.MOST
    assert max(map(office.posted.count, office.posted)) == notifier.EACH
    office.gate.set()
    await office.notifier.quiet()
    assert len(office.posted) == 36
    office.notifier.stop()


@pytest.mark.parametrize("what", ["store", "receivers"])
async def test_a_bank_waits_for_no_other_one(what: str) -> None:
    """The first one's changes fail, or fill its places with receivers that do not answer."""
    office, other = Office(), Office(Bank(memory_store(KINDS), name="other", seed=1))
    other.bank.change_settings({"notifications": True})
    office.services += other.services
    change, post = office.change, office.post

    async def failing(service: Any, work: Callable[[], Any]) -> Any:
        office.failures = 1 if service.bank is office.bank and what == "store" else 0
        return await change(service, work)

    async def silent(uri: str, *rest: Any) -> DeliveryResult:
        return await (other.post if uri == "https://p.example/" else post)(uri, *rest)

    office.gate.clear()
    sender = Notifier(lambda: iter(office.services), office.opened, change=failing, post=silent)
    sender.start()
    for tpp in "abcd":
        office.queue(*(f"{tpp}-{number}" for number in range(4)), tpp=tpp)
    await turns()
    other.queue("p")
    await turns()
    assert other.posted == ["https://p.example/"]
    assert len(office.posted) == (0 if what == "store" else notifier.MOST)
    sender.stop()


async def test_a_receiver_that_never_answers_holds_up_no_other_one_of_its_tpp() -> None:
    office = Office()
    office.notifier.start()
    office.queue(*(f"p{number}" for number in range(40)), receiver="silent")
    await turns()
    office.queue("p")
    await turns()
    assert sorted(office.posted) == ["https://p.example/", *["https://silent.example/"] * 4]
    office.notifier.stop()


async def test_a_receiver_with_very_many_that_are_due_does_not_hide_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notifications, "LOOKED_AT", 10)
    monkeypatch.setattr(notifier, "TICK", 0)
    office = Office()
    office.notifier.start()
    office.queue(*(f"p{number}" for number in range(40)), receiver="silent")
    await turns()
    office.bank.clock.advance(timedelta(seconds=1))
    office.queue("p")
    await turns(100)
    assert office.posted.count("https://p.example/") == 1
    office.notifier.stop()


async def test_what_a_dead_process_was_sending_is_sent_again_at_once() -> None:
    first = Office()
    first.gate.clear()
    first.notifier.start()
    first.queue("p")
    await turns()
    first.notifier.stop()
    assert first.states() == {"sending"}
    second = Office(first.bank)
    second.notifier.start()
    await second.notifier.quiet()
    assert (second.posted, second.states()) == (["https://p.example/"], {"delivered"})
    second.notifier.stop()


async def test_nothing_is_sent_while_the_setting_is_off_and_what_waits_when_it_is_turned_on() -> None:
    office = Office()
    office.queue("p")
    office.bank.change_settings({"notifications": False})
    office.notifier.start()
    await turns()
    assert office.posted == []
    office.bank.change_settings({"notifications": True})
    await turns()
    assert office.posted == ["https://p.example/"]
    office.bank.change_settings({"notifications": False})
    assert office.notifier.idle
    office.notifier.stop()


async def test_a_bank_that_is_deleted_meanwhile_takes_no_place() -> None:
    office = Office()
    office.gate.clear()
    office.notifier.start()
    office.queue("p")
    await turns()
    deleted, office.services = office.services, []
    office.gate.set()
    await turns()
    assert office.notifier.idle
    office.services = deleted
    assert office.states() == {"sending"}
    office.notifier.follow(office.services[0])
    await office.notifier.quiet()
    assert office.states() == {"delivered"}
    office.notifier.stop()


async def test_banks_without_notifications_cost_nothing() -> None:
    office = Office()
    office.notifier.start()
    await turns()

    def turned_on() -> None:
        office.bank.change_settings({"progression": "manual"})
        office.bank.change_settings({"progression": "time"})

    turned_on()  # it fills caches
    alone, tasks = calls(turned_on), len(asyncio.all_tasks())
    for number in range(50):
        other = Bank(memory_store(KINDS), name=f"b{number}")
        office.services.append(SimpleNamespace(bank=other, settling=lambda: iter(())))
        office.notifier.follow(office.services[-1])
    await turns()
    assert len(asyncio.all_tasks()) == tasks
    assert abs(calls(turned_on) - alone) < 10
    office.notifier.stop()
