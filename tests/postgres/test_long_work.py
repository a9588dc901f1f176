"""Long work whose bank is lost, deleted or not stored meanwhile."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from emulator.api.messages import AT_ONCE, HANG_UP, Request, Response, Unfinished
from emulator.assemble.registry import DEFAULT
from emulator.bank.kinds import CUSTOMER
from emulator.scenario import loader
from emulator.store.postgres.connection import OutcomeUnknown
from tests.postgres.leased import commits_of, taken
from tests.postgres.process import HEADERS, Process, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("default", [False, True])
async def test_long_work_that_loses_its_bank_is_not_answered_as_if_it_were_stored(
    one: Process, two: Process, bank: str, default: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor done again at the next home: a part of it is stored, and its client asks what is there."""
    name = DEFAULT if default else bank
    bank = "" if default else bank
    await one.control("PUT", "settings", {}, bank=bank)
    service = one.registry.opened(name)
    assert service is not None
    before = service.bank.documents.count(CUSTOMER)
    asked = one.ask("POST", "generate", {"customers": 200, "accountsPerCustomer": 1}, bank=bank)
    await eventually(lambda: service.bank.documents.count(CUSTOMER) > before + 20)
    await taken(one, two, name, monkeypatch)
    monkeypatch.undo()
    answer = await asked
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    assert before < len((await one.control("GET", "people", bank=bank))["people"]) < before + 200


async def test_long_work_whose_bank_is_deleted_meanwhile_ends_in_a_conflict(
    one: Process, two: Process, bank: str
) -> None:
    """As with a state directory: it is this process that deletes the bank, and no other one that has taken it."""
    service = one.registry.opened(bank)
    assert service is not None
    asked = one.ask("POST", "generate", {"customers": 5000, "accountsPerCustomer": 1}, bank=bank)
    await eventually(lambda: service.bank.documents.count(CUSTOMER) > 20)
    await two.control("DELETE", f"banks/{bank}", status=204)
    answer = await asked
    assert isinstance(answer, Response)
    assert (answer.status, answer.delivery) == (409, AT_ONCE), answer.body
    assert b"deleted" in answer.body


async def test_long_work_is_begun_again_by_a_process_that_has_lost_the_bank_and_taken_it_again(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would change is no longer the bank. A scenario of this size is read in a thread meanwhile."""
    reading, goes_on, read = Event(), Event(), loader.parsed

    def slowly(text: str, name: str) -> Any:
        reading.set()
        goes_on.wait()
        return read(text, name)

    monkeypatch.setattr(loader, "parsed", slowly)
    scenario = f"scenario: large\nstart: {{settings: {{progression: manual}}}}\n#{'.' * (1 << 16)}"
    headers = (HEADERS[0], ("Content-Type", "application/yaml"))
    asked = one.send(Request("POST", f"/banks/{bank}/_emulator/scenario", headers, scenario.encode()))
    await eventually(reading.is_set)
    one.homes.drop(bank)
    await one.control("GET", "settings", bank=bank)
    goes_on.set()
    assert (await asked).status == 200
    assert (await one.control("GET", "settings", bank=bank))["progression"] == "manual"


async def test_long_work_of_which_nobody_knows_what_is_stored_gets_no_answer(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = one.registry.opened(bank)
    assert service is not None
    steps = iter(range(3))

    async def lost(commit: Any) -> Any:
        rows = await commit
        if next(steps, None) is None:
            await taken(one, two, bank, monkeypatch)
            raise OutcomeUnknown("the connection is lost")
        return rows

    async with commits_of(one, lost):
        answer = await one.ask("POST", "generate", {"customers": 200, "accountsPerCustomer": 1}, bank=bank)
    monkeypatch.undo()
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    assert 0 < len((await one.control("GET", "people", bank=bank))["people"]) < 200


async def test_long_work_whose_lease_is_over_when_it_ends_is_not_done_again(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody has taken the bank, and this process goes on to be its home."""
    lease = one.leases.held[bank]
    steps = Unfinished.step

    def over_at_the_end(work: Unfinished) -> Any:
        answer = steps(work)
        if isinstance(answer, Response):
            lease.until = 0.0
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Unfinished, "step", over_at_the_end)
        answer = await one.ask("POST", "generate", {"customers": 3, "accountsPerCustomer": 1}, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    assert len((await one.control("GET", "people", bank=bank))["people"]) == 3
