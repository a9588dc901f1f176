"""The report on TPPs is one for all processes: it judges what each of them has been asked."""

from __future__ import annotations

import pytest

from emulator.api.messages import Request
from emulator.client import Identity
from emulator.client.clients import Tpp
from tests.known_state import KARI
from tests.postgres.process import Process

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def verdicts(process: Process, bank: str) -> dict[str, tuple[str, int]]:
    """By check: its verdict and how many requests it names."""
    report = await process.control("GET", "conformance", bank=bank)
    return {row["check"]: (row["verdict"], len(row["requests"])) for row in report["checks"]}


async def test_several_processes_judge_as_one_does(one: Process, two: Process, bank: str) -> None:
    name = f"{bank}-judged"
    await one.control("PUT", f"banks/{name}", status=201)
    tpps = one.application.homes.authority._place / "tpps" / "demo"
    tpp = Tpp(f"http://127.0.0.1:8080/banks/{name}", Identity.from_folder(tpps))
    tpp.use_session(await one.control("POST", "sessions", {"tpp": "demo", "nationalId": KARI}, bank=name))
    for process, path in ((one, "accounts"), (two, "card-accounts"), (one, "accounts?withBalance=true")):
        sent = tpp.prepare("GET", f"/v1/{path}", headers={"X-Request-ID": "5f2a1c8e-0000-4000-8000-000000000001"})
        await process.send(Request("GET", f"/banks/{name}/v1/{path}", tuple(sent.headers.items())))
    seen = await verdicts(one, name)
    assert seen["fresh-request-id"] == ("fail", 3)
    assert "pass" in {verdict for verdict, _ in seen.values()}
    assert await verdicts(two, name) == seen
    await two.control("DELETE", "conformance", bank=name)
    for process in (one, two):
        assert {verdict for verdict, _ in (await verdicts(process, name)).values()} == {"not-seen"}
