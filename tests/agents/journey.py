"""A whole journey of an agent through the tools, from no bank to the fault of a client; the manual shows it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import cache
from http.client import RemoteDisconnected
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.agents.command import command
from emulator.agents.desk import Desk
from emulator.client import Identity, TppClient
from tests.known_state import KARI, PAYMENT, STRAKS

if TYPE_CHECKING:
    from mcp import Client

ORDER = {**PAYMENT, "creditorAddress": {"country": "NO"}}
NOBODY = "http://127.0.0.1:9"  # where no bank runs


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool and its answer; without a tool, what happened beside it."""

    tool: str
    arguments: dict[str, Any]
    text: str
    refused: bool = False


class Agent:
    """An agent, by the SDK's own client; `calls` has what it has asked."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls: list[Call] = []
        self.progress: list[str] = []

    async def __call__(self, tool: str, **arguments: Any) -> str:
        answer = await self.client.call_tool(tool, arguments, progress_callback=self._follow)
        [content] = answer.content
        self.calls.append(Call(tool, arguments, content.text, bool(answer.is_error)))  # type: ignore[union-attr]
        return self.calls[-1].text

    async def _follow(self, done: float, of: float | None, what: str | None) -> None:
        self.progress.append(f"{done:.0f} of {of:.0f} {what}")


@asynccontextmanager
async def agent(*options: str) -> AsyncIterator[Agent]:
    """An agent with a server in this process, started with `options`."""
    from mcp import Client  # nearly a second, which processes without these tests need not spend

    from emulator.agents.server import BankServer

    with closing(Desk(command.make_context("mcp", list(options)))) as desk:
        async with Client(BankServer(desk)) as client:
            yield Agent(client)


def pay_carelessly(url: str, folder: str) -> None:
    """The client under test: it pays, and after a lost answer pays again, with a new X-Request-ID."""
    with TppClient(url, Identity.from_folder(folder), defaults={"X-PSU-IDENTITY": KARI}) as tpp:
        for request_id in ("order-1001-a", "order-1001-b"):
            try:
                back = f"https://shop.example/back?state={request_id}"
                tpp.post(STRAKS, json=ORDER, headers={"X-Request-ID": request_id, "TPP-Redirect-URI": back})
            except RemoteDisconnected:
                continue


async def travel() -> list[Call]:
    async with agent("--url", NOBODY) as ask:
        await ask("open_bank")
        opened = await ask("open_bank", start=True, seed=1, now="2026-03-02T09:00:00+01:00")
        url = opened.partition(": ")[0]
        folder = str(Path(re.search(r"sign with (\S+)", opened)[1]).parent)  # type: ignore[index]
        await ask("people", limit=2)
        await ask("scenarios", about="lost")
        await ask("apply_scenario", scenario="lost-answer")
        pay_carelessly(url, folder)
        ask.calls.append(Call("", {}, "Your client runs here: it pays 10.00 NOK, and the answer is lost."))
        await ask("requests")
        await ask("customer", action="list")
        for sca in re.findall(r"id (\S+)$", ask.calls[-1].text, re.MULTILINE):
            await ask("customer", action="approve", target=sca)
        await ask("clock", advance="10s")
        await ask("ledger", limit=2)
        await ask("audit")
        await ask("manual", topic="repeating a request")
    return [_same_everywhere(call, url, folder) for call in ask.calls]


def _same_everywhere(call: Call, url: str, folder: str) -> Call:
    """The call with the addresses, paths and random ids of every run."""
    text = call.text.replace(folder, "/tmp/bank-emulator/agent").replace(url, "http://127.0.0.1:8080")
    text = text.replace(NOBODY, "http://127.0.0.1:8080")
    text = re.sub(r"(TPP-Session-ID: |tpp-session-id=)[0-9a-f-]{36}", r"\g<1>3f2b...", text)
    return Call(call.tool, call.arguments, text, call.refused)


@cache
def journey() -> Sequence[Call]:
    """The calls of one journey."""
    return asyncio.run(travel())


def markdown() -> str:
    """The journey as the manual shows it."""
    blocks = []
    for call in journey():
        arguments = ", ".join(f"{name}={json.dumps(value)}" for name, value in call.arguments.items())
        head = f"{call.tool}({arguments})" if call.tool else ""
        answer = "\n".join(f"    {line}" for line in call.text.splitlines())
        blocks.append(f"    > {head}\n{answer}" if head else call.text)
    return "\n\n".join(blocks)
