"""No answer leaves before the commit of what it shows; what becomes of a commit that fails, is late or unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, cast

import pytest

from emulator.api.messages import HANG_UP, Answered, Request, Response
from emulator.assemble.stored_authority import KEEP
from emulator.bank.documents import Customer
from emulator.bank.kinds import CUSTOMER, META
from emulator.bank.payment import progression
from emulator.store import StoreUnwritable
from emulator.store.postgres import leases, log
from emulator.store.postgres.connection import OutcomeUnknown
from tests.postgres.leased import MONDAY, Sent, commits_of, has, now, over, refused, taken
from tests.postgres.process import HEADERS, Process, eventually, execute, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_answer_that_was_computed_within_a_lease_and_leaves_after_it_is_thrown_away(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Request] = []
    answers = one.application._turns.answers

    def slowly(asked: Request) -> Answered:
        answer = answers(asked)
        computed.append(asked)
        if len(computed) == 1:
            one.leases.held[bank].until = 0.0
        return answer

    monkeypatch.setattr(one.application._turns, "answers", slowly)
    await one.control("GET", "clock", bank=bank)
    assert len(computed) == 2


async def test_a_change_of_a_home_that_is_none_any_more_is_stored_by_the_next_one_only(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await now(one, bank)
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        await two.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
        assert one.log(bank).owned, "it does not know yet"
        await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert (has(one, bank), has(two, bank)) == (False, True)
    assert await now(one, bank) == before + timedelta(hours=2)


async def test_a_change_whose_bank_is_lost_before_the_end_of_its_turn_is_made_by_the_next_home(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, answers, handled = await now(one, bank), one.application._turns.answers, list[str]()

    def losing(asked: Request) -> Answered:
        if handled == ["POST"]:
            one.homes.drop(bank)
        handled.append(asked.method)
        return answers(asked)

    await over(one, bank)
    with monkeypatch.context() as once:
        once.setattr(one.application._turns, "answers", losing)
        asked = [one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank), one.ask("GET", "clock", bank=bank)]
        assert [(await answer).status for answer in asked] == [200, 200]
    assert handled[:2] == ["POST", "GET"]
    assert await now(one, bank) == before + timedelta(hours=1)


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/my", "text/html"),
        ("/sca/x", "text/html"),
        ("/console", "text/html"),
        ("/_emulator/clock", "application/json"),
    ],
)
async def test_a_browser_gets_a_page_where_a_commit_fails_or_the_bank_cannot_be_loaded(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    service, handle = one.registry.opened(bank), one.application._turns.answers
    assert service is not None

    def changing(asked: Request) -> Answered:
        service.bank.documents.put(META, {"id": "seen", "path": path})
        return handle(asked)

    async with commits_of(one, refused):
        with monkeypatch.context() as once:
            once.setattr(one.application._turns, "answers", changing)
            answers = [await one.send(Request("GET", f"/banks/{bank}{path}", HEADERS))]
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    async with commits_of(one, refused, (log.CHANGES,)):
        answers += [await one.send(Request("GET", f"/banks/{bank}{path}", HEADERS))]
    for answer in answers:
        assert (answer.status, dict(answer.headers)["Content-Type"].partition(";")[0]) == (503, kind)


async def test_no_answer_leaves_before_the_commit_of_what_it_shows(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next turn is computed meanwhile: its changes are in the next commit."""
    await one.control("PUT", f"banks/{bank}-calm", {"fixtures": "empty", "now": MONDAY, "clock": "frozen"}, status=201)
    commits, goes_on, batches = one.homes.commits, asyncio.Event(), list[Any]()
    store = commits._store

    async def slowly(batch: Any) -> None:
        batches.append(batch)
        await goes_on.wait()
        await store(batch)

    monkeypatch.setattr(commits, "_store", slowly)
    service = one.registry.opened(bank)
    assert service is not None

    def changed(each: Process, progression: str) -> Any:
        return each.ask("PUT", "settings", {"progression": progression}, bank=bank)

    try:
        asked = [changed(one, "manual")]
        await eventually(lambda: batches)
        asked += [changed(one, "immediate"), changed(two, "immediate")]
        asked += [each.ask("GET", "settings", bank=bank) for each in (one, two)]
        await eventually(lambda: service.bank.settings.progression == "immediate")
        await two.control("GET", "settings", bank=f"{bank}-calm")  # of which nothing is to be stored: it does not wait
        assert not any(answer.done() for answer in asked)
    finally:
        goes_on.set()
    assert [(await answer).status for answer in asked] == [200] * 5
    assert len(batches) == 2


async def test_a_slow_line_has_the_time_for_a_bank_that_is_made(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The known state is a change of a quarter of a megabyte, which a line of 50 kB/s carries in five seconds."""
    rows, commits = one.homes.server.rows, []

    async def seen(statement: str, *values: Any, **options: Any) -> Any:
        if statement == log._COMMIT_ONE:
            commits.append((len(values[-1]), options["within"]))
        return await rows(statement, *values, **options)

    monkeypatch.setattr(one.homes.server, "rows", seen)
    await one.control("POST", "reset", {"fixtures": "known-state"}, bank=bank)
    size, seconds = max(commits)
    assert size > 100_000
    assert seconds > size / 50_000


@pytest.mark.parametrize(
    ("executed", "status", "hours"),
    [((True,), 200, 1), ((False,), 200, 1), ((False, True), 200, 1), ((False, False, False), 503, 0)],
)
async def test_a_commit_without_an_answer_is_looked_up(
    one: Process, two: Process, bank: str, executed: tuple[bool, ...], status: int, hours: int
) -> None:
    before = await now(one, bank)
    async with commits_of(one, Sent(*executed)):
        answer = await two.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert isinstance(answer, Response)
    assert (answer.status, answer.delivery.disconnect) == (status, None)
    assert await now(two, bank) == before + timedelta(hours=hours)
    assert has(one, bank)


@pytest.mark.parametrize("executed", [False, True])
async def test_where_nobody_knows_the_outcome_the_client_gets_no_answer(
    one: Process, two: Process, bank: str, executed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has taken the bank when the commit is looked up, and may have changed it."""
    before = await now(one, bank)
    sent = Sent(executed)

    async def lost(commit: Any) -> Any:
        try:
            return await sent(commit)
        finally:
            await taken(one, two, bank, monkeypatch)

    async with commits_of(one, lost):
        answer = await one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    monkeypatch.undo()
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == "after"
    assert await now(one, bank) == before + timedelta(hours=executed)
    assert (has(one, bank), has(two, bank)) == (False, True)


@pytest.mark.parametrize("again", [False, True])
async def test_a_bank_may_be_lost_and_taken_again_while_a_commit_is_looked_up(
    one: Process, two: Process, bank: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change with the number of the one that is looked up may be that of the home in between."""
    before = await now(one, bank)

    async def nothing(_: int) -> list[str]:
        return []

    monkeypatch.setattr(one.leases, "orphans", nothing)  # else it may take the bank before the other one does

    async def overtaken(look_up: Any) -> Any:
        rows = None if again else await look_up
        one.homes.drop(bank)
        await over(one, bank)
        await two.control("POST", "clock/advance", {"by": "PT1S"}, bank=bank)
        await two.homes._give_back([bank])
        two.homes.drop(bank)
        if rows is not None:
            return rows
        assert await one.homes.locate(bank) is None
        return await look_up

    async with commits_of(one, Sent(False)), commits_of(one, overtaken, (leases._RETAKE,)):
        answer = await one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    await one.control("POST", "clock/advance", {"by": "PT1S"}, bank=bank)
    assert await now(two, bank) == before + timedelta(seconds=2)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("answered", [False, True])
async def test_a_change_is_made_once_although_its_home_hears_of_the_next_one_during_the_commit(
    one: Process, two: Process, bank: str, stored: bool, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await now(one, bank)

    async def overtaken(commit: Any) -> Any:
        rows = await commit if stored else None
        with monkeypatch.context() as stopped:
            await taken(one, two, bank, stopped)
        await one.homes.renew()
        assert (has(one, bank), has(two, bank)) == (False, True)
        rows = await commit if rows is None else rows
        if not answered:
            raise OutcomeUnknown("the connection is lost")
        return rows

    async with commits_of(one, overtaken):
        answer = await one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == (None if answered else "after")
    assert await now(one, bank) == before + timedelta(hours=answered or stored)


@pytest.mark.parametrize("executed", [False, True])
@pytest.mark.parametrize(
    ("statement", "method", "path"),
    [
        (log.DELETE, "DELETE", "banks/{bank}"),
        (KEEP, "POST", "tpps"),
    ],
)
async def test_where_nobody_knows_whether_anything_else_was_stored_the_client_gets_no_answer(
    one: Process, two: Process, bank: str, statement: str, method: str, path: str, executed: bool
) -> None:
    await one.control("PUT", "snapshots/present", bank=bank, status=201)
    name = f"tpp-{executed}".lower()
    async with commits_of(one, Sent(executed), (statement,)):
        answer = await two.ask(method, path.format(bank=bank), {"name": name} if path == "tpps" else {}, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == "after"


async def test_a_commit_that_arrives_after_it_was_looked_up_stores_nothing(
    one: Process, two: Process, bank: str
) -> None:
    """As where the connection was lost while the statement was still under way."""
    before = await now(one, bank)
    late: list[Any] = []

    async def delayed(commit: Any) -> Any:
        if late:
            return await commit
        late.append(commit)
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, delayed):
        await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    await late[0]
    assert await now(two, bank) == before + timedelta(hours=1)
    assert (await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)) is not None


async def test_a_commit_that_is_refused_takes_its_changes_back(one: Process, two: Process, bank: str) -> None:
    before = await now(one, bank)
    async with commits_of(one, refused):
        for each in (one, two):
            answer = await each.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank, status=503)
            assert "no room" in str(answer)
    assert await now(two, bank) == before
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)


async def test_what_is_in_memory_stays_where_a_commit_is_refused(one: Process, two: Process, bank: str) -> None:
    """The request log, the counters of rules, and the seed of a bank that is not replaced."""
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty", "clock": "frozen", "seed": 1})
    rule = {"when": {"operation": "getAccounts"}, "unsigned": True, "then": {"answer": {"status": 503}}}
    await one.control("POST", "rules", rule, bank=bank, status=201)
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    assert (await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))).status == 503

    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)

    async def remembered() -> list[Any]:
        opened = one.registry.opened(bank)
        assert opened is not None
        views = [await two.control("GET", view, bank=bank) for view in ("requests", "rules")]
        return [*views, opened.bank.ids.seed]

    before = await remembered()
    known_state = {"scenario": "s", "start": {"from": "known-state"}}
    async with commits_of(one, refused):
        for method, path, body in (
            ("POST", "reset", {}),
            ("POST", "snapshots/kept/restore", {}),
            ("POST", "scenario", known_state),
            ("PUT", f"banks/{bank}", {"seed": 2}),
        ):
            await two.control(method, path, body, bank=bank, status=503)
            assert await remembered() == before, path


async def test_due_steps_that_could_not_be_stored_are_due_for_the_next_request(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that waits for them is answered as if they were not due yet."""
    customers = one.registry.opened(bank).bank.documents  # type: ignore[union-attr]

    def step(_: object, __: str) -> bool:
        customers.put(CUSTOMER, cast(Customer, {"id": str(customers.count(CUSTOMER)), "customerNumber": "1"}))
        return customers.count(CUSTOMER) < 2

    monkeypatch.setattr(progression, "is_behind", lambda _: customers.count(CUSTOMER) < 2)
    monkeypatch.setattr(progression, "run_piece", step)
    async with commits_of(one, refused):
        await one.control("GET", "settings", bank=bank)
    assert customers.count(CUSTOMER) == 0
    await one.control("GET", "settings", bank=bank)
    assert customers.count(CUSTOMER) == 2


async def test_what_is_in_memory_is_as_it_was_where_a_change_is_taken_back(one: Process, bank: str) -> None:
    """The request log, the counters of rules, and the seed of the ids, which the bank's document names, too."""
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty", "seed": 5})
    await one.control("POST", "rules", {"unsigned": True, "then": {"delay": "1ms"}}, bank=bank, status=201)
    await one.control("PUT", "snapshots/s", bank=bank, status=201)
    await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS, b""))

    async def seen() -> list[Any]:
        return [await one.control("GET", path, bank=bank) for path in ("requests", "rules", "state")]

    before = await seen()
    assert (len(before[0]["requests"]), before[1]["counts"][0]["matched"]) == (1, 1)
    reset_to = {"scenario": "a", "start": {"from": "empty"}}
    for method, path, body in (
        ("PUT", f"banks/{bank}", {"fixtures": "empty", "seed": 9}),
        ("POST", "reset", {}),
        ("POST", "scenario", reset_to),
        ("POST", "snapshots/s/restore", {}),
        ("DELETE", "requests", None),
    ):
        async with commits_of(one, refused):
            asked = [
                request("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
                request(method, path, body, bank=bank),
            ]
            if path.startswith("banks"):
                asked[1] = request(method, path, body)
            answers = [one.handler.in_turn(each) for each in asked]
            assert [(await answer).status for answer in answers] == [503, 503]
        assert await seen() == before
        service = one.registry.opened(bank)
        assert service is not None
        assert service.bank.ids.seed == 5


async def test_a_change_that_is_taken_back_is_not_taken_for_the_next_one_with_its_number(
    one: Process, bank: str
) -> None:
    """It is taken back before anybody has begun to wait for it."""
    turns, changes = one.application.turn(), one.log(bank)
    before = await now(one, bank)

    def advanced() -> tuple[Answered, Awaitable[Exception | None]]:
        answer = turns.handle(request("POST", "clock/advance", {"by": "PT1H"}, bank=bank))
        ended = turns.end()
        assert isinstance(ended, Awaitable)
        return answer, ended

    first, first_ended = advanced()
    number = changes.pending[-1].sequence
    due = changes.compaction(lambda: None)  # of the content that is taken back
    changes.refused(StoreUnwritable("the store is away"))
    second, second_ended = advanced()
    assert changes.pending[-1].sequence == number
    await asyncio.gather(first_ended, second_ended, due)
    assert isinstance(first, Response)
    assert isinstance(second, Response)
    assert (first.status, second.status) == (503, 200)
    assert await now(one, bank) == before + timedelta(hours=1)
    sequence, checkpoint = (
        await execute(one.url, "SELECT sequence, checkpoint FROM {schema}.bank WHERE name = %s", bank)
    )[0]
    assert checkpoint < sequence


async def test_a_bank_whose_change_cannot_be_undone_is_taken_again_and_loaded(one: Process, bank: str) -> None:
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    before, documents = await now(one, bank), one.registry.documents(bank)
    assert documents is not None
    customers = documents.tables[CUSTOMER.name]

    def change() -> None:
        with documents.transaction():
            documents.put(CUSTOMER, cast(Any, {"id": "never"}))
            setattr(customers, "place", lambda *_: 1 / 0)  # noqa: B010
            raise MemoryError

    with pytest.raises(StoreUnwritable, match="could not be undone"):
        change()
    assert await now(one, bank) == before
    again = one.registry.documents(bank)
    assert again is not None
    assert again is not documents
    assert not again.exists(CUSTOMER, "never")
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert await now(one, bank) == before + timedelta(hours=1)
