"""Each bank has one home: who it is, what becomes of its answers when it is late, and who comes after it."""

from __future__ import annotations

import asyncio
import shutil
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, cast

import psycopg
import pytest

from emulator.api.messages import AT_ONCE, HANG_UP, Answered, Request, Response, Unfinished
from emulator.assemble import forwarding, home_storage, homes, registry
from emulator.assemble.joining import assembled
from emulator.assemble.registry import DEFAULT
from emulator.assemble.stored_authority import KEEP
from emulator.bank import fixtures, snapshots
from emulator.bank.clock import LIVE
from emulator.bank.documents import Customer, Notification
from emulator.bank.kinds import CUSTOMER, NOTIFICATION
from emulator.bank.payment import progression
from emulator.scenario import loader
from emulator.settings import ServeSettings
from emulator.store import StoreUnwritable
from emulator.store.postgres import leases, log
from emulator.store.postgres.connection import OutcomeUnknown, Server, StoreUnreachable, StoreUnusable
from tests.known_state import KARI
from tests.ports import free_port
from tests.postgres.process import HEADERS, Process, eventually, execute, process, request
from tests.postgres.server import PASSWORD, ROLE, PostgreSQL

MONDAY = "2026-03-02T09:00:00+01:00"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def has(one: Process, bank: str) -> bool:
    return one.registry.opened(bank) is not None


async def now(one: Process, bank: str) -> datetime:
    """The time of the bank, which stands still."""
    return datetime.fromisoformat((await one.control("GET", "clock", bank=bank))["now"])


async def over(one: Process, bank: str) -> None:
    """The lease of this process is over by the clock of the database; the process does not know it."""
    await execute(one.url, "UPDATE {schema}.bank SET until = now() - interval '1 s' WHERE name = %s", bank)


async def taken(one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process takes the bank of the first, whose renewals do not arrive until `undo`."""

    async def lost() -> list[str]:
        return []

    monkeypatch.setattr(one.leases, "renew", lost)
    await over(one, bank)
    assert await two.homes.locate(bank) is None
    assert has(two, bank)


async def test_every_process_answers_for_every_bank_and_says_where_it_is(one: Process, two: Process, bank: str) -> None:
    before = await now(one, bank)
    for each in (two, one, two):
        await each.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert [await now(each, bank) for each in (one, two)] == [before + timedelta(hours=3)] * 2
    assert (has(one, bank), has(two, bank)) == (True, False)
    for each in (one, two):
        banks = {entry["name"]: entry for entry in (await each.control("GET", "banks"))["banks"]}
        assert banks[bank]["home"] == one.leases.address
        assert bank in (await ready(one))["banks"]
        assert bank not in (await ready(two))["banks"]


async def ready(one: Process) -> Any:
    import orjson

    answer = await one.send(Request("GET", "/ready", HEADERS))
    assert isinstance(answer, Response)
    assert answer.status == 200
    return orjson.loads(answer.body)


async def test_a_home_that_was_stopped_longer_than_its_lease_does_not_answer(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await now(one, bank)
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        await two.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
        real = leases.elapsed
        later = one.leases.held[bank].until + 0.1
        stopped.setattr(leases, "elapsed", lambda: max(real(), later))
        two.leases.held[bank].until = later + 60  # it has renewed
        assert await now(one, bank) == before + timedelta(hours=1)
    assert (has(one, bank), has(two, bank)) == (False, True)


async def test_a_home_that_was_stopped_does_not_call_itself_the_home_of_what_another_has_taken(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        one.leases.held[bank].until = 0.0
        await one.homes.refresh()
        assert one.registry.home(bank) == two.leases.address


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


async def test_a_checkpoint_and_a_snapshot_of_a_former_home_are_not_stored(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = one.registry.documents(bank)
    assert documents is not None
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        await documents.log.compaction(lambda: None)
    await one.control("PUT", "snapshots/late", bank=bank, status=201)  # passed on
    stored = "SELECT count(*) FROM {schema}.checkpoint WHERE bank = %s"
    assert await execute(one.url, stored, bank) == [(0,)]
    assert [each["name"] for each in (await two.control("GET", "snapshots", bank=bank))["snapshots"]] == ["late"]


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


@asynccontextmanager
async def commits_of(
    one: Process,
    outcome: Callable[[Awaitable[Any]], Awaitable[Any]],
    statements: Collection[str] = (log._COMMIT, log._COMMIT_ONE),
) -> Any:
    """What becomes of each commit of this process for the time of the block, or of other statements."""
    rows = one.homes.server.rows

    async def changed(statement: str, *values: Any, **options: Any) -> Any:
        sent = rows(statement, *values, **options)
        return await (outcome(sent) if statement in statements else sent)

    one.homes.server.rows = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        one.homes.server.rows = rows  # type: ignore[method-assign]


class Sent:
    """Commits that get no answer: each is executed or not, as often as it says."""

    def __init__(self, *executed: bool) -> None:
        self.executed = list(executed)

    async def __call__(self, commit: Any) -> Any:
        if not self.executed:
            return await commit
        if self.executed.pop(0):
            await commit
        else:
            commit.close()
        raise OutcomeUnknown("the connection is lost")


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
        (home_storage._SAVE_SNAPSHOT, "PUT", "snapshots/kept"),
        (home_storage._TAKE_SNAPSHOT_BACK, "PUT", "snapshots/kept"),
        (home_storage._DROP_SNAPSHOTS, "DELETE", "snapshots/present"),
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


@pytest.mark.parametrize("executed", ["at once", "late", "never"])
async def test_a_snapshot_that_was_saved_without_an_answer_is_from_then_on_what_is_stored(
    one: Process, two: Process, bank: str, executed: str
) -> None:
    """Not one thing at this home, and another one at the next."""
    before = await now(one, bank)
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    late: list[Any] = []

    async def lost(statement: Any) -> Any:
        if executed == "at once":
            await statement
        else:
            late.append(statement)
        raise OutcomeUnknown("the connection is lost")

    for path in ("snapshots/kept", "snapshots/other"):
        async with commits_of(one, lost, (home_storage._SAVE_SNAPSHOT,)):
            answer = await one.ask("PUT", path, bank=bank)
            assert isinstance(answer, Response)
            assert answer.delivery.disconnect == "after"

    async def shown(each: Process) -> Any:
        await each.control("POST", "clock/advance", {"by": "PT5H"}, bank=bank)
        restored = await each.ask("POST", "snapshots/kept/restore", bank=bank)
        listed = (await each.control("GET", "snapshots", bank=bank))["snapshots"]
        return restored.status, await now(each, bank), [one["name"] for one in listed]

    saved = executed == "at once"
    expected = (200, before + timedelta(hours=saved), ["other", "kept"] if saved else ["kept"])
    assert await shown(one) == expected
    for statement in late:
        if executed == "late":
            await statement
        statement.close()
    assert await shown(one) == expected
    one.homes.drop(bank)
    await over(one, bank)
    assert await shown(two) == expected


@pytest.mark.parametrize("executed", [False, True])
async def test_a_snapshot_that_was_deleted_without_an_answer_is_there_if_it_is_stored(
    one: Process, two: Process, bank: str, executed: bool
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    async with commits_of(one, Sent(executed), (home_storage._DROP_SNAPSHOTS,)):
        await one.ask("DELETE", "snapshots/kept", bank=bank)
    for each in (one, two):
        listed = (await each.control("GET", "snapshots", bank=bank))["snapshots"]
        assert [one["name"] for one in listed] == ([] if executed else ["kept"])
        await each.control("POST", "snapshots/kept/restore", bank=bank, status=404 if executed else 200)


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


async def refused(commit: Any) -> Any:
    commit.close()
    raise StoreUnreachable("PostgreSQL: no room")


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


async def test_a_tpp_that_could_not_be_replaced_is_what_it_was_without_a_request(one: Process, bank: str) -> None:
    """Its folder beside the process is not taken for a new one."""
    issued = await one.control("POST", "tpps", {"name": "to-be-replaced"}, bank=bank, status=201)
    async with commits_of(one, refused, (KEEP,)):
        await one.control("POST", "tpps", {"name": "to-be-replaced", "replace": True}, bank=bank, status=503)
    await one.homes._look_around()
    known = one.homes.authority.find("to-be-replaced")
    assert known is not None
    assert known.certificate_pem == issued["certificate"]


async def test_a_tpp_is_issued_whatever_becomes_of_the_changes_of_its_turn(
    one: Process, two: Process, bank: str
) -> None:
    """Or its key would be lost, and its name taken."""
    async with commits_of(one, refused):
        together = [
            request("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
            request("POST", "tpps", {"name": "beside-a-refused-change"}, bank=bank),
        ]
        asked = [one.handler.in_turn(each) for each in together]
        assert [(await answer).status for answer in asked] == [503, 201]
    names = [tpp["name"] for tpp in (await two.control("GET", "tpps", bank=bank))["tpps"]]
    assert "beside-a-refused-change" in names


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_bank_that_is_not_stored_has_issued_no_tpp(one: Process, two: Process, bank: str, is_new: bool) -> None:
    """Nor replaced the key of the one there was."""
    before = await one.control("POST", "tpps", {"name": "not-replaced", "replace": True}, bank=bank, status=201)
    path, tpps = f"banks/{bank}" + "-new" * is_new, [{"name": "not-replaced"}, {"name": "not-issued"}]
    async with commits_of(one, refused):
        for tpp in tpps:
            await one.control("PUT", path, {"fixtures": "empty", "tpp": tpp}, bank=bank, status=503)
    for each in (one, two):
        known = {tpp["name"]: tpp for tpp in (await each.control("GET", "tpps", bank=bank))["tpps"]}
        assert known["not-replaced"]["certificate"] == before["certificate"]
        assert "not-issued" not in known


async def test_snapshots_stay_as_they_are_where_a_change_of_the_same_turn_is_taken_back(
    one: Process, two: Process, bank: str
) -> None:
    """One that is saved may have it in it. A bank that is replaced loses its snapshots after that."""
    for name in ("first", "second"):
        await one.control("PUT", f"snapshots/{name}", bank=bank, status=201)

    async def snapshots(each: Process) -> list[str]:
        return [one["name"] for one in (await each.control("GET", "snapshots", bank=bank))["snapshots"]]

    async with commits_of(one, refused):
        together = [
            request("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
            request("PUT", "snapshots/third", bank=bank),
            request("DELETE", "snapshots/first", bank=bank),
            request("PUT", f"banks/{bank}", {"fixtures": "empty"}),
        ]
        asked = [one.handler.in_turn(each) for each in together]
        answers = [await answer for answer in asked]
        assert [(answer.status, answer.delivery.disconnect) for answer in answers] == [(503, None)] * 4
    async with commits_of(one, refused, (home_storage._DROP_SNAPSHOTS,)):
        await two.control("DELETE", "snapshots/first", bank=bank, status=503)
        replaced = await two.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        assert (replaced.status, replaced.delivery.disconnect) == (503, "after"), "the bank is, but has snapshots"
    assert await snapshots(two) == ["second", "first"]
    one.homes.drop(bank)
    assert await snapshots(one) == ["second", "first"]


async def test_a_snapshot_stays_where_the_bank_has_another_home_by_now(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored in place of an earlier one."""
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)

    async def late(statement: Any) -> Any:
        with monkeypatch.context() as stopped:
            await taken(one, two, bank, stopped)
        await statement
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, late, (home_storage._TAKE_SNAPSHOT_BACK,)):
        await one.ask("PUT", "snapshots/kept", bank=bank)
    await two.control("POST", "snapshots/kept/restore", bank=bank)


async def test_a_snapshot_of_the_next_home_is_not_deleted_by_a_request_to_the_last_one(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)

    async def late(deletion: Any) -> Any:
        with monkeypatch.context() as stopped:
            await taken(one, two, bank, stopped)
        await two.control("PUT", "snapshots/kept", bank=bank, status=200)
        return await deletion

    async with commits_of(one, late, (home_storage._DROP_SNAPSHOTS,)):
        await one.control("DELETE", "snapshots/kept", bank=bank, status=204)  # at the next home, after it was saved
    assert (await two.control("GET", "snapshots", bank=bank))["snapshots"] == []


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


async def test_a_bank_whose_creation_could_not_be_stored_was_never_there(one: Process, two: Process) -> None:
    async def refused(commit: Any) -> Any:
        commit.close()
        raise StoreUnreachable("PostgreSQL: no room")

    async with commits_of(one, refused):
        await one.control("PUT", "banks/green", {"fixtures": "empty"}, status=503)
    for each in (one, two):
        assert "green" not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
        await each.control("GET", "clock", bank="green", status=404)
    await two.control("PUT", "banks/green", {"fixtures": "empty"}, status=201)
    assert [has(each, "green") for each in (one, two)] == [False, True]


@pytest.mark.parametrize("how", ["not-looked", "not-stored", "lost", "given-up"])
async def test_a_bank_that_could_not_be_created_does_not_exist(one: Process, two: Process, bank: str, how: str) -> None:
    """Nobody goes on to have its lease, and be asked for it."""
    name, asked = f"{bank}-new", list[asyncio.Task[Any]]()
    lost = Sent(*[False] * log.TRIES)

    async def fails(sent: Any) -> Any:
        if how == "given-up":
            asked[0].cancel()
        await (lost(sent) if how == "lost" else refused(sent))

    async with commits_of(one, fails, (log._COMMIT_ONE if how in ("not-stored", "lost") else homes._LOOK,)):
        asked.append(one.ask("PUT", f"banks/{name}", {"fixtures": "empty"}))
        await asyncio.wait(asked)
        await eventually(lambda: name not in one.leases.held)
    for each in (one, two):
        await each.control("GET", "clock", bank=name, status=404)
        await each.control("DELETE", f"banks/{name}", status=404)


async def test_banks_whose_home_is_gone_are_taken_over_without_a_request(
    one: Process, two: Process, tmp_path: Path
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/orphan", {"fixtures": "empty"}, status=201)
        assert has(three, "orphan")
        await three.kill()
        await over(three, "orphan")
        await eventually(lambda: has(one, "orphan") or has(two, "orphan"))
        await one.control("GET", "clock", bank="orphan")


async def test_however_many_banks_a_home_had_they_are_taken_over_at_the_next_look(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["default", *(f"orphan{number}" for number in range(4))]

    async def once(_: homes.Homes, work: Callable[[], Awaitable[None]], **_logs: bool) -> None:
        await work()

    async with process(store_url, tmp_path / "one") as one:
        for name in names[1:]:
            await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)
    for name in names:
        await over(one, name)
    monkeypatch.setattr(homes, "AT_ONCE", 1)
    monkeypatch.setattr(homes.Homes, "_each_second", once)
    async with process(store_url, tmp_path / "two") as two:
        await eventually(lambda: all(has(two, name) for name in names))


async def test_a_home_that_ends_leaves_request_log_and_counters(one: Process, two: Process, tmp_path: Path) -> None:
    rule = {
        "name": "twice",
        "unsigned": True,
        "when": {"operation": "getAccounts"},
        "times": {"first": 2},
        "then": {"answer": {"status": 500, "code": "SYSTEM_ERROR"}},
    }

    async def accounts(each: Process) -> int:
        answer = await each.send(Request("GET", "/banks/left/v1/accounts", HEADERS))
        assert isinstance(answer, Response)
        return answer.status

    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/left", {"fixtures": "empty"}, status=201)
        await three.control("POST", "rules", {"rules": [rule]}, bank="left")
        assert [await accounts(three), await accounts(one)] == [500, 500]
        before = await three.control("GET", "requests", bank="left")
        began = monotonic()
        await three.end()
        assert await one.control("GET", "requests", bank="left") == before
        assert monotonic() - began < leases.LASTS, "it waited for the lease"
        assert await accounts(two) == 400
        (count,) = (await one.control("GET", "rules", bank="left"))["counts"]
        assert (count["matched"], count["acted"]) == (3, 2)
        entries = (await one.control("GET", "requests", bank="left"))["requests"]
        assert [entry["id"] for entry in entries] == ["3", "2", "1"]


async def test_a_process_ends_although_the_store_does_not_answer(
    one: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = asyncio.Event()

    async def unheard(sent: Any) -> Any:
        sent.close()
        silent.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(homes, "LEAVING", 0.05)
    monkeypatch.setattr(forwarding, "ENDING", 0.05)
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/stuck", {"fixtures": "empty"}, status=201)
        async with commits_of(three, unheard, (log._COMMIT_ONE, leases._GIVE_BACK)):
            stuck = three.ask("PUT", "settings", {"progression": "manual"}, bank="stuck")
            await silent.wait()
            await asyncio.wait_for(three.homes.leave(), 10)
            stuck.cancel()


async def test_what_a_home_has_left_waits_for_one_that_can_load_the_bank(
    one: Process, two: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/heirloom", {"fixtures": "empty"}, status=201)
        await three.send(Request("GET", "/banks/heirloom/v1/accounts", HEADERS))
        await three.end()
    async with commits_of(one, refused, (log.CHANGES,)):
        await one.control("GET", "requests", bank="heirloom", status=503)
    await eventually(lambda: "heirloom" not in one.leases.held)
    for each in (two, one):
        assert len((await each.control("GET", "requests", bank="heirloom"))["requests"]) == 1


async def test_what_a_home_has_left_is_for_the_next_one_only(one: Process, two: Process, tmp_path: Path) -> None:
    """A home that is killed loses what it had in memory; what was left before it does not come back."""
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/heir", {"fixtures": "empty"}, status=201)
        await three.send(Request("GET", "/banks/heir/v1/accounts", HEADERS))
        await three.end()
    assert len((await one.control("GET", "requests", bank="heir"))["requests"]) == 1
    one.homes.drop("heir")  # as if it was killed
    await over(one, "heir")
    assert (await two.control("GET", "requests", bank="heir"))["requests"] == []


async def test_of_two_processes_that_take_a_bank_at_once_the_later_one_hears_who_has_it(
    one: Process, two: Process, bank: str
) -> None:
    """Not that there is no such bank: the statement has read the row before the other one was first."""
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    one.homes.drop(bank)
    await over(one, bank)
    two.homes.known.pop(bank, None)
    async with await psycopg.AsyncConnection.connect(one.url) as holder:
        await holder.execute("SELECT 1 FROM bank_emulator.bank WHERE name = %s FOR UPDATE", [bank])
        asked = [each.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS)) for each in (one, two)]
        while (await execute(one.url, waits))[0][0] < 2:
            await asyncio.sleep(0.005)
        await holder.commit()
    assert [(await answer).status for answer in asked] == [400, 400], "not signed, but known"


async def test_a_process_that_loads_a_bank_does_not_say_that_there_is_none(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it has never heard of it before, and another process sends it a request meanwhile."""
    load, loading, goes_on = two.homes._load, asyncio.Event(), asyncio.Event()

    async def slowly(lease: leases.Lease) -> None:
        loading.set()
        await goes_on.wait()
        await load(lease)

    async def none(_most: int) -> list[str]:
        return []

    monkeypatch.setattr(two.homes, "_load", slowly)
    monkeypatch.setattr(one.leases, "orphans", none)  # it would take the bank back before anybody asks
    one.homes.drop(bank)
    await over(one, bank)
    two.homes.known.pop(bank, None)
    asked = [two.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))]
    await loading.wait()
    two.homes.known.pop(bank, None)
    asked.append(one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS)))
    await eventually(lambda: one.homes.known[bank].address == two.leases.address)
    await asyncio.wait(asked[1:], timeout=0.05)
    goes_on.set()
    assert [(await answer).status for answer in asked] == [400, 400], "not signed, but known"


async def test_a_process_that_loses_a_bank_while_it_loads_it_does_not_say_that_there_is_none(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it has not heard of that bank before."""
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    read = homes.content_of

    async def lost(*asked: Any) -> Any:
        one.homes.drop(bank)
        one.homes.known.pop(bank, None)
        return await read(*asked)

    with monkeypatch.context() as losing:
        losing.setattr(homes, "content_of", lost)
        answer = await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
    assert answer.status == 503
    assert (await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))).status == 400  # it is not signed


@pytest.mark.parametrize("same", [False, True], ids=["another-address", "the-same-address"])
async def test_a_start_waits_for_the_lease_of_a_process_that_was_killed(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, same: bool
) -> None:
    """Its banks are there when it is ready, and its scenario is applied."""
    advertise = f"127.0.0.1:{free_port()}" if same else None
    async with process(store_url, tmp_path / "killed", advertise=advertise) as killed:
        killed.homes._bound.close()
    starting = asyncio.ensure_future(_started(store_url, tmp_path / "new", advertise))
    await asyncio.wait([starting], timeout=0.2)
    assert not starting.done(), "the lease is not over"
    await over(killed, DEFAULT)
    async with await starting as new:
        assert has(new, DEFAULT)
    assert "is not applied" not in caplog.text


async def _started(store_url: str, state: Path, advertise: str | None) -> Any:
    settings = ServeSettings(state=state, store=store_url, scenario=("slow-bank",), advertise=advertise)
    application = await asyncio.to_thread(assembled, settings, LIVE)
    return _running(application, store_url)


@asynccontextmanager
async def _running(application: Any, store_url: str) -> Any:
    one = Process(application, store_url)
    try:
        yield one
    finally:
        await one.kill()


async def test_a_bank_in_which_nothing_happens_rests_after_the_end_of_its_home(one: Process, tmp_path: Path) -> None:
    """A thousand banks would else be loaded by those that are left. One with something to do is taken over."""
    async with process(one.url, tmp_path / "three") as three:
        for name in ("resting", "busy"):
            await three.control("PUT", f"banks/{name}", {"fixtures": "empty"})
        busy = three.registry.opened("busy")
        assert busy is not None
        busy.bank.change_settings({"notifications": True})
        busy.bank.documents.put(NOTIFICATION, cast(Notification, {"id": "n", "state": "waiting", "due": "9999"}))
        await three.end()
    homes = "SELECT name, home IS NOT NULL FROM {schema}.bank WHERE name IN ('resting', 'busy')"
    assert dict(await execute(one.url, homes)) == {"resting": False, "busy": True}
    await execute(one.url, "DELETE FROM {schema}.bank WHERE name = 'busy'")  # it is no real notification


async def test_what_one_process_makes_the_others_show_at_once(one: Process, two: Process) -> None:
    await two.control("PUT", "banks/red", {"fixtures": "empty", "seed": 5}, status=201)
    assert "red" in [entry["name"] for entry in (await one.control("GET", "banks"))["banks"]]
    await one.control("PUT", "banks/red", {"fixtures": "empty", "seed": 6})
    assert (has(one, "red"), has(two, "red")) == (False, True)
    await one.control("DELETE", "banks/red", status=204)
    for each in (two, one):
        assert "red" not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
        await each.control("GET", "clock", bank="red", status=404)
    await one.control("POST", "tpps", {"name": "shop"}, bank="")
    for each in (two, one):
        assert "shop" in [entry["name"] for entry in (await each.control("GET", "tpps"))["tpps"]]
    await two.control("POST", "tpps", {"name": "shop"}, status=409)
    shop = (await two.control("POST", "tpps", {"name": "shop-of-two"}))["tppId"]
    await one.control("POST", "sessions", {"tpp": "shop-of-two", "nationalId": KARI})
    assert [consent["tpp"] for consent in (await one.control("GET", "consents"))["consents"]] == [shop]


async def test_requests_that_come_together_look_together_for_what_others_have_made(one: Process, bank: str) -> None:
    looks, first = list[float](), asyncio.Event()

    async def slowly(look: Awaitable[Any]) -> Any:
        looks.append(monotonic())
        await first.wait()
        return await look

    async with commits_of(one, slowly, (homes._LOOK,)):
        asked = [one.ask("GET", "banks", bank=bank) for _ in range(50)]
        await eventually(lambda: looks)
        asked += [one.ask("GET", "tpps", bank=bank) for _ in range(50)]
        first.set()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    assert len(looks) < 20, "they look again where the lease was over, and so does the task that looks around"


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "away"])
async def test_requests_for_a_bank_whose_home_is_not_known_look_for_it_once(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    """Over a slow line, or where the server says nothing, they would wait for one another."""
    looks, first, take = list[str](), asyncio.Event(), two.leases.take

    async def slowly(name: str, **options: Any) -> Any:
        looks.append(name)
        await first.wait()
        if not answers and name == bank:
            raise StoreUnreachable("PostgreSQL does not answer")
        return await take(name, **options)

    two.homes.known.pop(bank, None)
    with monkeypatch.context() as slow:
        slow.setattr(two.leases, "take", slowly)
        asked = [two.ask("GET", "clock", bank=bank) for _ in range(50)]
        await eventually(lambda: bank in looks)
        first.set()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200 if answers else 503}
    assert looks.count(bank) < 10, "they look again, together, where the home has renewed late or was not reached"
    await two.control("GET", "clock", bank=bank)


async def test_requests_that_wait_for_one_home_ask_together_whether_it_still_is(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.control("GET", "clock", bank=bank)
    goes_on, asked, statements = asyncio.Event(), list[str](), list[float]()
    is_home = two.homes._ways._is_home

    async def counted(name: str, home: str) -> bool:
        asked.append(name)
        return await is_home(name, home)

    async def stuck(commit: Awaitable[Any]) -> Any:
        await goes_on.wait()
        return await commit

    async def noted(look: Awaitable[Any]) -> Any:
        statements.append(monotonic())
        await goes_on.wait()
        return await look

    monkeypatch.setattr(two.homes._ways, "_is_home", counted)
    monkeypatch.setattr(forwarding, "LATE", 0.01)
    async with commits_of(one, stuck), commits_of(two, noted, (leases._IS_HOME,)):
        waiting = [two.ask("POST", "clock/advance", {"by": "PT1S"}, bank=bank) for _ in range(20)]
        await eventually(lambda: len(asked) == 20)
        assert len(statements) == 1
        goes_on.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}


async def test_a_bank_that_is_deleted_at_one_process_and_created_at_another_is_found_by_a_third(
    one: Process, two: Process, tmp_path: Path
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        for made_by in (one, three, one):
            await made_by.control("PUT", "banks/again", {"fixtures": "empty"}, status=201)
            answer = await two.send(Request("GET", "/banks/again/v1/accounts", HEADERS))
            assert answer.status == 400  # of the bank: it is not signed
            await two.control("DELETE", "banks/again", status=204)


async def test_a_bank_is_deleted_through_its_own_interface(one: Process, two: Process) -> None:
    for each in (one, two):
        await one.control("PUT", "banks/leaving", {"fixtures": "empty"}, status=201)
        await each.control("DELETE", "banks/leaving", bank="leaving", status=204)
        await two.control("GET", "clock", bank="leaving", status=404)


async def test_any_bank_is_made_and_deleted_through_the_interface_of_any_other(
    one: Process, two: Process, bank: str
) -> None:
    """Whichever processes are their homes."""
    new, other = {"fixtures": "empty"}, f"{bank}-other"
    await two.control("PUT", f"banks/{other}", new, status=201)
    for each in (one, two):
        await each.control("PUT", f"banks/{other}", new, bank=bank, status=200)
        await each.control("PUT", f"banks/{bank}-new", new, bank="missing", status=404)
        await each.control("PUT", f"banks/{bank}-new", new, bank=bank, status=201)
        await each.control("DELETE", f"banks/{bank}-new", bank=other, status=204)


async def test_a_bank_that_could_not_be_deleted_goes_on(one: Process, bank: str) -> None:
    await one.control("GET", "clock", bank=bank)
    before = await one.control("GET", "requests", bank=bank)
    async with commits_of(one, refused, (log.DELETE,)):
        await one.control("DELETE", f"banks/{bank}", status=503)
    assert await one.control("GET", "requests", bank=bank) == before


async def test_who_asks_for_a_bank_that_is_being_created_does_not_disturb_that(one: Process, two: Process) -> None:
    """It does not exist before that is done, whichever process is asked."""
    name = "unborn"
    assert isinstance(await one.leases.take(name, new=True), leases.Lease)  # as `PUT` does at first
    for each in (one, two):
        await each.control("GET", "clock", bank=name, status=404)
    assert not one.registry.exists(name)
    await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)


async def test_who_deletes_a_bank_that_is_being_created_does_not_disturb_that(
    one: Process, two: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none to delete yet; no other process may create it meanwhile."""
    begun, goes_on, build = Event(), Event(), fixtures.build

    def slowly(*arguments: Any, **options: Any) -> Any:
        begun.set()
        goes_on.wait()
        return build(*arguments, **options)

    monkeypatch.setattr(fixtures, "_IMAGES", OrderedDict())
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(fixtures, "build", slowly)
    created = one.ask("PUT", "banks/growing", {"fixtures": "household"})
    await eventually(begun.is_set)
    lease = one.leases.held["growing"]
    for each in (one, two):
        await each.control("DELETE", "banks/growing", status=404)
    assert one.leases.held.get("growing") is lease
    goes_on.set()
    assert [answer.status for answer in [await created] if isinstance(answer, Response)] == [201]
    await two.control("DELETE", "banks/growing", status=204)
    assert "growing" not in one.leases.held


async def test_who_asks_for_a_damaged_bank_that_is_being_replaced_does_not_disturb_that(
    one: Process, two: Process, bank: str
) -> None:
    await damage(one, bank)
    assert await one.homes.locate(bank, new=True, about_bank=True) is None  # as `PUT` does at first
    lease = one.leases.held[bank]
    for each in (one, two):
        await each.control("GET", "clock", bank=bank, status=503)
    assert one.leases.held.get(bank) is lease
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=200)


async def test_a_bank_whose_creation_is_being_stored_is_deleted_after_that(one: Process, two: Process) -> None:
    """Else the creation would not be stored, and be carried out again after the deletion that has seen its bank."""
    goes_on = asyncio.Event()

    async def held(commit: Awaitable[Any]) -> Any:
        await goes_on.wait()
        return await commit

    async with commits_of(one, held):
        created = one.ask("PUT", "banks/brief", {"fixtures": "empty"})
        await eventually(lambda: has(one, "brief"))
        deleted = one.ask("DELETE", "banks/brief")
        for _ in range(20):  # the deletion has begun, and has had the time to be carried out
            await execute(one.url, "SELECT 1")
        goes_on.set()
        statuses = [answer.status for answer in (await created, await deleted) if isinstance(answer, Response)]
    assert statuses == [201, 204]
    for each in (one, two):
        await each.control("GET", "clock", bank="brief", status=404)


@pytest.mark.parametrize("first", ["load", "deletion"])
async def test_a_bank_that_is_being_loaded_is_deleted_after_that(one: Process, bank: str, first: str) -> None:
    """Whoever loads it would take what is gone by then for damage; also where the deletion has come before."""
    loading, goes_on, looking, looked = [asyncio.Event() for _ in range(4)]

    async def late(statement: Awaitable[Any]) -> Any:
        loading.set()
        await goes_on.wait()
        return await statement

    async def look(statement: Awaitable[Any]) -> Any:
        looking.set()
        await looked.wait()
        return await statement

    async with commits_of(one, late, (log.CHANGES,)), commits_of(one, look, (homes._LOOK,)):
        if first == "deletion":
            deleted = one.ask("DELETE", f"banks/{bank}")
            await looking.wait()
        one.homes.drop(bank)
        read = one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
        await loading.wait()
        looked.set()
        if first == "load":
            deleted = one.ask("DELETE", f"banks/{bank}")
        for _ in range(20):  # the deletion has begun, and has had the time to be carried out
            await execute(one.url, "SELECT 1")
        goes_on.set()
        statuses = [answer.status for answer in (await read, await deleted) if isinstance(answer, Response)]
    assert statuses in ([400, 204], [404, 204]), "not signed, or not there any more"


@pytest.mark.parametrize("later", [0, 1])
async def test_a_checkpoint_whose_placing_is_carried_out_twice_is_there(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """As where the connection ends before the answer: at once, or after the next checkpoint."""
    documents, rows = one.registry.documents(bank), one.homes.server.rows
    assert documents is not None
    placings = list[Any]()

    async def noted(statement: str, *values: Any, **options: Any) -> Any:
        if statement == log._PLACE:
            placings.append((statement, *values))
        return await rows(statement, *values, **options)

    monkeypatch.setattr(one.homes.server, "rows", noted)
    for _ in range(1 + later):
        await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
        await documents.log.compaction(lambda: None)
    before = await now(one, bank)
    await rows(*placings[0])
    one.homes.drop(bank)
    assert await now(one, bank) == before


async def test_what_a_former_home_has_left_is_deleted_and_nothing_else_however_late(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over a slow line: the bank has been in use since, and the content of a reset was stored beside that."""
    staged = "SELECT sequence FROM {schema}.checkpoint WHERE bank = %s AND sequence < 0"
    await execute(one.url, "INSERT INTO {schema}.checkpoint VALUES (%s, -5, 0, '')", bank)
    in_use = asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        await in_use.wait()
        return await deletion

    monkeypatch.setattr(snapshots, "LARGE", 0)
    async with commits_of(one, late, (log.SWEEP,)):
        one.homes.drop(bank)
        await one.control("POST", "reset", {"fixtures": "known-state"}, bank=bank)
        assert len(await execute(one.url, staged, bank)) == 2
        in_use.set()
        await asyncio.wait(one.homes.commits._tasks)
    assert (-5,) not in await execute(one.url, staged, bank)
    one.homes.drop(bank)
    assert (await one.control("GET", "people", bank=bank))["people"]


async def test_what_fails_meanwhile_does_not_disturb_who_loads_a_bank(one: Process, bank: str) -> None:
    looked, loaded, held = asyncio.Event(), asyncio.Event(), list[Any]()

    async def late(statement: Awaitable[Any], until: asyncio.Event) -> Any:
        held.append(statement)
        await until.wait()
        return await statement

    async with (
        commits_of(one, lambda look: late(look, looked), (homes._LOOK,)),
        commits_of(one, lambda changes: late(changes, loaded), (log.CHANGES,)),
    ):
        replaced = one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        await eventually(lambda: held)
        one.homes.drop(bank)
        read = one.ask("GET", "clock", bank=bank)
        await eventually(lambda: bank in one.leases.held)  # the reader has taken it, and loads it
        looked.set()
        for _ in range(20):  # it has found that the bank is lost
            await execute(one.url, "SELECT 1")
        loaded.set()
        assert [(await answer).status for answer in (read, replaced)] == [200, 200]


async def test_a_bank_that_was_made_again_is_not_closed_by_the_deletion_before(one: Process, bank: str) -> None:
    deleted = asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        rows = await deletion
        await deleted.wait()
        return rows

    async with commits_of(one, late, (log.DELETE,)):
        asked = one.ask("DELETE", f"banks/{bank}")
        await eventually(lambda: bank not in one.leases.held or one.leases.held[bank].deleting)
        one.homes.drop(bank)  # as the next renewal does, or has done
        created = one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        await eventually(lambda: has(one, bank))
        again = one.registry.opened(bank)
        deleted.set()
        assert (await asked).status == 204
    await created
    assert one.registry.opened(bank) is again


@pytest.mark.parametrize("own", [False, True], ids=["from-outside", "through-its-own-interface"])
async def test_a_deletion_that_was_carried_out_is_answered_so_whatever_happens_meanwhile(
    one: Process, own: bool
) -> None:
    """The changes of its turn are refused, and the next renewal finds that this process has no such bank."""
    name = "leaving-late"
    await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)
    carried_out, goes_on = asyncio.Event(), asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        rows = await deletion
        carried_out.set()
        await goes_on.wait()
        return rows

    async def refused_then(commit: Any) -> Any:
        await carried_out.wait()
        await refused(commit)

    async with commits_of(one, late, (log.DELETE,)), commits_of(one, refused_then):
        asked = [
            one.ask("PUT", "settings", {"progression": "manual"}, bank=name),
            one.ask("DELETE", f"banks/{name}", bank=name if own else ""),
        ]
        await carried_out.wait()
        assert (await asked[0]).status == 503
        await one.homes.renew()
        goes_on.set()
        assert (await asked[1]).status == 204
    await one.control("GET", "clock", bank=name, status=404)


@pytest.mark.parametrize("kinds", [("DELETE", "DELETE"), ("PUT", "DELETE"), ("DELETE", "PUT")])
async def test_a_snapshot_is_saved_and_deleted_one_after_the_other(
    one: Process, bank: str, kinds: tuple[str, str]
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank)
    asked = [one.ask(kind, "snapshots/kept", bank=bank) for kind in kinds]
    assert sorted([(await answer).status for answer in asked])[1] == 409
    stored = await execute(one.url, "SELECT name FROM {schema}.snapshot WHERE bank = %s", bank)
    shown = (await one.control("GET", "snapshots", bank=bank))["snapshots"]
    assert [snapshot["name"] for snapshot in shown] == [name for (name,) in stored]


async def test_a_snapshot_has_no_change_that_was_taken_back(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is saved once the commit of what it shows has ended."""
    saving, step = asyncio.Event(), Unfinished.step
    service = one.registry.opened(bank)
    assert service is not None

    def stepped(work: Unfinished) -> Answered:
        answer = step(work)
        if answer is work:
            saving.set()
        return answer

    monkeypatch.setattr(Unfinished, "step", stepped)

    async def refused_then(commit: Any) -> Any:
        await saving.wait()
        await refused(commit)

    async with commits_of(one, refused_then):
        changed = one.ask("PUT", "settings", {"progression": "manual"}, bank=bank)
        await eventually(lambda: service.bank.settings.progression == "manual")
        saved = one.ask("PUT", "snapshots/kept", bank=bank)
        assert [(await changed).status, (await saved).status] == [503, 503]
    assert await one.control("GET", "snapshots", bank=bank) == {"snapshots": []}
    assert await execute(one.url, "SELECT name FROM {schema}.snapshot WHERE bank = %s", bank) == []


@pytest.mark.parametrize("answered", [False, True])
async def test_a_process_does_not_answer_for_a_bank_of_which_others_know_that_it_is_deleted(
    one: Process, two: Process, bank: str, answered: bool
) -> None:
    """Before it hears of that, or where it never does."""

    async def gone(deletion: Any) -> Any:
        rows = await deletion
        for each in (two, one):
            await each.control("GET", "clock", bank=bank, status=404)
        if not answered:
            raise OutcomeUnknown("the connection is lost")
        return rows

    async with commits_of(one, gone, (log.DELETE,)):
        answer = await one.ask("DELETE", f"banks/{bank}")
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == (None if answered else "after")
    for each in (two, one):
        await each.control("GET", "clock", bank=bank, status=404)


async def test_a_deletion_that_arrives_when_nobody_waits_for_it_any_more_deletes_nothing(
    one: Process, two: Process, bank: str
) -> None:
    late: list[Any] = []

    async def delayed(deletion: Any) -> Any:
        late.append(deletion)
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, delayed, (log.DELETE,)):
        answer = await one.ask("DELETE", f"banks/{bank}")
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    await two.control("GET", "clock", bank=bank)
    assert await late[0] == []
    for each in (one, two):
        await each.control("GET", "clock", bank=bank)


async def test_a_deleted_bank_leaves_nothing_to_the_next_one_of_its_name(
    one: Process, two: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a change whose commit was under way, nor a snapshot that was being written."""
    first = {"fixtures": "empty", "now": MONDAY, "clock": "frozen"}
    await one.control("PUT", "banks/reborn", first, status=201)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    async def waiting(number: int) -> None:
        while (await execute(one.url, waits))[0][0] < number:
            await asyncio.sleep(0.005)

    async with await psycopg.AsyncConnection.connect(one.url) as holder:
        await holder.execute("SELECT 1 FROM bank_emulator.bank WHERE name = 'reborn' FOR UPDATE")
        changing = one.ask("POST", "clock/advance", {"by": "PT1S"}, bank="reborn")
        await waiting(1)
        deleting = one.ask("DELETE", "banks/reborn")
        await waiting(2)
        await holder.commit()
    assert isinstance(deleted := await deleting, Response)
    assert deleted.status == 204
    await changing
    await two.control("PUT", "banks/reborn", first, status=201)
    for _ in range(2):
        await two.control("POST", "clock/advance", {"by": "PT1S"}, bank="reborn")
    await over(two, "reborn")
    assert (await one.control("GET", "snapshots", bank="reborn"))["snapshots"] == []

    server = one.homes.server
    # as it reads the bank before it is deleted
    unaware = home_storage._SAVE_SNAPSHOT.replace("epoch = %s", "epoch > %s - 9")
    monkeypatch.setattr(home_storage, "_SAVE_SNAPSHOT", unaware)
    rows = server.rows_in_thread

    def deleted_before(statement: str, *values: Any, **options: Any) -> list[Any]:
        if statement is unaware:
            rows(log.DELETE, "reborn", one.leases.held["reborn"].epoch)
        return rows(statement, *values, **options)

    monkeypatch.setattr(server, "rows_in_thread", deleted_before)
    await one.control("PUT", "snapshots/old", bank="reborn", status=404)
    assert await execute(one.url, "SELECT 1 FROM {schema}.snapshot WHERE bank = 'reborn'") == []


async def test_a_tpp_that_two_processes_make_at_once_is_one(one: Process, two: Process, bank: str) -> None:
    await two.control("PUT", "banks/other", {"fixtures": "empty"}, status=201)
    asked = [
        one.ask("POST", "tpps", {"name": "both"}, bank=bank),
        two.ask("POST", "tpps", {"name": "both"}, bank="other"),
    ]
    assert sorted([(await answer).status for answer in asked]) == [201, 409]


async def test_a_tpp_is_stored_by_the_request_that_issued_it(one: Process, two: Process, bank: str) -> None:
    """Not by what goes on beside it, of which nobody would hear that another process was first."""

    async def late(commit: Any) -> Any:
        await two.control("POST", "tpps", {"name": "first"}, bank=other, status=201)
        await one.homes._look_around()
        return await commit

    other = f"{bank}-other"
    await two.control("PUT", f"banks/{other}", {"fixtures": "empty"}, status=201)
    async with commits_of(one, late):
        asked = [
            one.handler.in_turn(request("PUT", "settings", {"progression": "manual"}, bank=bank)),
            one.handler.in_turn(request("POST", "tpps", {"name": "first"}, bank=bank)),
        ]
        assert [(await answer).status for answer in asked] == [200, 409]


async def test_only_the_request_that_issued_a_tpp_fails_with_it(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its turn are answered: what they have changed is stored."""
    before = await now(one, bank)
    rows = one.homes.server.rows

    async def away(statement: str, *values: Any, **options: Any) -> Any:
        if statement == KEEP:
            raise StoreUnreachable("PostgreSQL: no room")
        return await rows(statement, *values, **options)

    monkeypatch.setattr(one.homes.server, "rows", away)
    asked = [
        one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
        one.ask("POST", "tpps", {"name": "homeless"}, bank=bank),
        one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
    ]
    assert [(await answer).status for answer in asked] == [200, 503, 200]
    turns = one.application.turn()
    answer, ended = turns.handle(request("POST", "tpps", {"name": "homeless"}, bank=bank)), turns.end()
    assert isinstance(ended, Awaitable)
    with suppress(StoreUnreachable):
        await one.homes._look_around()  # which stores what has been issued beside the process
    await ended
    assert isinstance(answer, Response)
    assert answer.status == 503
    monkeypatch.undo()
    assert await now(one, bank) == before + timedelta(hours=2)
    assert "homeless" not in [tpp["name"] for tpp in (await one.control("GET", "tpps", bank=bank))["tpps"]]


async def test_a_tpp_that_could_not_be_stored_is_taken_later_and_a_broken_folder_is_logged_once(
    one: Process, tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with process(store_url, tmp_path / "own") as own:
        tpps = tmp_path / "own" / "tpps"
        shutil.copytree(tpps / "demo", tpps / "market")
        (tpps / "broken").mkdir()

        async def names() -> list[str]:
            return [tpp["name"] for tpp in (await own.control("GET", "tpps"))["tpps"]]

        while "market" not in await names():
            await asyncio.sleep(0.01)
        assert len([record for record in caplog.records if "broken" in record.getMessage()]) == 1


async def test_a_bank_without_requests_leaves_memory_and_comes_back(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    with monkeypatch.context() as later:
        in_a_day = monotonic() + 25 * 3600
        later.setattr(registry, "monotonic", lambda: in_a_day)
        while has(one, bank):
            one.registry.close_idle()
    await eventually(lambda: bank not in one.leases.held)
    assert (await two.control("GET", "settings", bank=bank))["progression"] == "manual"
    assert (has(one, bank), has(two, bank)) == (False, True)


@pytest.mark.parametrize(
    ("damage", "repair", "what"),
    [
        (
            "UPDATE {schema}.change SET body = '{' || body WHERE bank = %s AND sequence = 1",
            "UPDATE {schema}.change SET body = substring(body FROM 2) WHERE bank = %s AND sequence = 1",
            "change 1 of bank BANK is damaged: ",
        ),
        (
            "UPDATE {schema}.bank SET sequence = sequence + 1 WHERE name = %s",
            "UPDATE {schema}.bank SET sequence = sequence - 1 WHERE name = %s",
            "bank BANK is damaged: changes after ",
        ),
        (
            "INSERT INTO {schema}.snapshot VALUES (%s, 'odd', 'infinity', '')",
            "DELETE FROM {schema}.snapshot WHERE bank = %s",
            "a time in schema bank_emulator is damaged: restore it",
        ),
    ],
)
async def test_a_damaged_row_is_named_until_it_is_restored(
    one: Process, two: Process, bank: str, damage: str, repair: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    await execute(one.url, damage, bank)
    for each in (one, two):
        answer = await each.control("GET", "settings", bank=bank, status=503)
        assert what.replace("BANK", bank) in str(answer)
        assert (await each.send(Request("GET", "/health", HEADERS))).status == 200
    await execute(one.url, repair, bank)
    assert await two.control("GET", "settings", bank=bank) == before
    assert not [record for record in caplog.records if record.exc_info]


async def damage(home: Process, bank: str) -> None:
    """The bank is damaged, and has no home any more."""
    await home.homes._give_back([bank])
    home.homes.drop(bank)
    await execute(home.url, "UPDATE {schema}.change SET body = '{' WHERE bank = %s", bank)


@pytest.mark.parametrize("outcome", ["refused", "lost", "executed and lost"])
async def test_a_damaged_bank_stays_until_the_changes_of_the_new_one_are_stored(
    one: Process, bank: str, outcome: str
) -> None:
    """Its rows may be repaired from a backup."""
    await damage(one, bank)
    rows = "SELECT sequence, body FROM {schema}.change WHERE bank = %s"
    before = await execute(one.url, rows, bank)
    how = refused if outcome == "refused" else Sent(outcome == "executed and lost")
    async with commits_of(one, how, (log._REPLACE,)):
        answer = await one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == (None if outcome == "refused" else "after")
    if outcome == "executed and lost":
        await one.control("GET", "clock", bank=bank, status=200)
    else:
        assert await execute(one.url, rows, bank) == before
        assert "is damaged" in str(await one.control("GET", "clock", bank=bank, status=503))
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=200)


async def test_a_damaged_bank_is_replaced_or_deleted(one: Process, two: Process, bank: str) -> None:
    """What cannot be put in its place leaves it as it is."""
    await damage(one, bank)
    for each in (one, two):
        answer = await each.control("PUT", f"banks/{bank}", {"fixtures": "none.yaml"}, status=400)
        assert "none.yaml" in str(answer)
        answer = await each.control("GET", "clock", bank=bank, status=503)
        assert f"change 1 of bank {bank} is damaged: " in str(answer)
        assert f"or replace or delete the bank (/_emulator/banks/{bank})" in str(answer)
    await two.control("PUT", f"banks/{bank}", {"fixtures": "household", "clock": "frozen"}, status=200)
    assert (has(one, bank), has(two, bank)) == (False, True)
    people = (await one.control("GET", "people", bank=bank))["people"]
    assert people
    await two.homes._give_back([bank])
    two.homes.drop(bank)
    assert (await one.control("GET", "people", bank=bank))["people"] == people
    await damage(one, bank)
    await two.control("DELETE", f"banks/{bank}", status=204)
    for each in (one, two):
        await each.control("GET", "clock", bank=bank, status=404)
        assert bank not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
    assert await execute(one.url, "SELECT FROM {schema}.change WHERE bank = %s", bank) == []


@pytest.mark.parametrize("memory", ["", "x", "5", "[]", '{"requests": [[1, "{}"]]}', '{"requests": 5}'])
async def test_what_a_home_has_left_is_left_out_where_it_cannot_be_read(
    one: Process, bank: str, memory: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    await execute(
        one.url,
        "UPDATE {schema}.bank SET memory = %s WHERE name = %s",
        zlib.compress(memory.encode()) if memory else b"not compressed",
        bank,
    )
    assert await one.control("GET", "settings", bank=bank) == before
    assert f"bank {bank}: what its last home had in memory cannot be read: " in caplog.text


async def test_a_damaged_tpp_is_logged_once_and_left_out(
    one: Process, two: Process, caplog: pytest.LogCaptureFixture
) -> None:
    await execute(one.url, "INSERT INTO {schema}.secret VALUES ('tpp', 'odd', 1000000, '[]')")
    for each in (one, two, one):
        await each.homes.refresh()
        assert "odd" not in [tpp["name"] for tpp in (await each.control("GET", "tpps"))["tpps"]]
    logged = [record for record in caplog.records if "the secret tpp odd is damaged: " in record.getMessage()]
    assert len(logged) == 2, "by each process"
    await execute(one.url, "DELETE FROM {schema}.secret WHERE name = 'odd'")
    for each in (one, two):
        each.homes.authority.version = 0


async def test_any_address_that_leads_here_can_be_told_to_the_others(
    one: Process, two: Process, bank: str, tmp_path: Path
) -> None:
    """As that of the machine around a container: it is none of the container's own."""
    name = "machine.invalid"
    async with process(one.url, tmp_path / "three", advertise=name) as three:
        host, _, port = three.leases.address.rpartition(":")
        assert host == name
        await three.control("PUT", "banks/around", {"fixtures": "empty"}, status=201)
        answer = await two.control("GET", "clock", bank="around", status=503)
        assert f"the process at {three.leases.address} cannot be reached" in str(answer)
        own = {**two.homes.known, "around": leases.Whereabouts(f"127.0.0.1:{port}", three.leases.home)}
        two.homes.known = own  # as if the machine passed it on
        await two.control("GET", "clock", bank="around")
        await three.control("DELETE", "banks/around", status=204)


async def test_an_address_that_another_process_has_is_refused(one: Process, tmp_path: Path) -> None:
    address = one.leases.address
    settings = ServeSettings(state=tmp_path, store=one.url, advertise=address)
    with pytest.raises(StoreUnusable, match=f"--advertise {address}: this process cannot listen there: "):
        await asyncio.to_thread(assembled, settings, LIVE)


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


async def test_a_bank_that_is_replaced_and_deleted_before_its_snapshots_ends_in_a_conflict(
    one: Process, bank: str
) -> None:
    deleted, waits = asyncio.Event(), asyncio.Event()

    async def late(statement: Awaitable[Any]) -> Any:
        waits.set()
        await deleted.wait()
        return await statement

    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    async with commits_of(one, late, (home_storage._DROP_SNAPSHOTS,)):
        replaced = one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        await waits.wait()
        await one.control("DELETE", f"banks/{bank}", status=204)
        deleted.set()
        answer = await replaced
    assert isinstance(answer, Response)
    assert (answer.status, answer.delivery) == (409, AT_ONCE), answer.body


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


@pytest.mark.parametrize(
    ("method", "path", "done"),
    [
        ("POST", "generate", [3, "old"]),
        ("PUT", "snapshots/new", [0, "new", "old"]),
        ("DELETE", "snapshots/old", [0]),
    ],
)
async def test_long_work_whose_lease_is_over_when_it_ends_is_not_done_again(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch, method: str, path: str, done: list[object]
) -> None:
    """Also where nobody has taken the bank, and this process goes on to be its home."""
    await one.control("PUT", "snapshots/old", bank=bank, status=201)
    lease = one.leases.held[bank]
    steps = Unfinished.step

    def over_at_the_end(work: Unfinished) -> Any:
        answer = steps(work)
        if isinstance(answer, Response):
            lease.until = 0.0
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Unfinished, "step", over_at_the_end)
        body = {"customers": 3, "accountsPerCustomer": 1} if path == "generate" else None
        answer = await one.ask(method, path, body, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    people, snapshots = [await one.control("GET", name, bank=bank) for name in ("people", "snapshots")]
    assert [len(people["people"]), *sorted(each["name"] for each in snapshots["snapshots"])] == done


async def test_eight_banks_at_once_share_three_connections(postgresql: PostgreSQL, tmp_path: Path) -> None:
    """Waiting for a free one is no error, though the server has no fourth."""
    url = postgresql.database()
    with postgresql.admin(url.rpartition("/")[2]) as admin:
        admin.execute(f"CREATE ROLE narrow LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 3")
        admin.execute("GRANT ALL ON DATABASE " + url.rpartition("/")[2] + " TO narrow")
    try:
        own = url.replace(f"//{ROLE}:", "//narrow:")
        async with process(own, tmp_path / "own", store_connections=3) as narrow:
            names = [f"n{number}" for number in range(8)]
            for name in names:
                await narrow.control("PUT", f"banks/{name}", {"fixtures": "empty"})
            asked = [
                narrow.ask("PUT", "settings", {"progression": ("manual", "time")[number % 2]}, bank=names[number % 8])
                for number in range(320)
            ]
            snapshots = [narrow.ask("PUT", "snapshots/s", bank=name) for name in names]
            assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
            # 200: on a machine that is too busy to renew leases in time, one is saved again
            assert {answer.status for answer in await asyncio.gather(*snapshots)} <= {200, 201}
    finally:
        postgresql.drop(url)
        with postgresql.admin() as admin:
            admin.execute("DROP ROLE narrow")


async def test_whoever_waits_for_a_connection_to_a_silent_server_fails_with_the_first(one: Process) -> None:
    server = Server(one.url, "bank_emulator", connections=1)
    server.open()
    asked = [server.rows("SELECT pg_sleep(60)", within=0.1) for _ in range(20)]
    failures = [type(failed) for failed in await asyncio.gather(*asked, return_exceptions=True)]
    assert failures == [OutcomeUnknown, *[StoreUnreachable] * 19]
    assert await server.rows("SELECT 1") == [(1,)]
    await server.close()


async def test_statements_wait_for_a_connection_in_the_loop_that_serves_as_in_that_of_the_start(one: Process) -> None:
    server = Server(one.url, "bank_emulator", connections=1)

    async def two() -> list[list[Any]]:
        server.open()
        try:
            return await asyncio.gather(server.rows("SELECT 1"), server.rows("SELECT 2"))
        finally:
            await server.close()

    for _ in range(2):
        assert await asyncio.to_thread(asyncio.run, two()) == [[(1,)], [(2,)]]


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
