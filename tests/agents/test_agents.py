"""The tools for agents, used by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given
from hypothesis import strategies as st

from emulator.cli.main import run
from emulator.terminal import one_line
from emulator.testing import banks
from tests import warm
from tests.agents.journey import NOBODY, Call, agent, journey
from tests.e2e.process import ALONE
from tests.known_state import KARI


@pytest.fixture(scope="module")
def serve() -> list[str]:
    """The command of the server."""
    return [f"{warm.folder()}/bank-emulator", "mcp"]


def test_a_journey_from_no_bank_to_the_line_that_is_wrong() -> None:
    calls = {call.tool: call for call in journey()}
    nobody = journey()[0]
    assert nobody.refused
    assert "open_bank with start: true starts a bank" in nobody.text
    assert not any(call.refused for call in journey()[1:])
    assert calls["ledger"].text.count("ACSC 10.00 NOK") == 2
    audit = calls["audit"].text
    assert "fail repeats-a-lost-answer (must)" in audit
    assert re.search(r"occasion: 1 .*X-Request-ID order-1001-a\n +after it: 2 .*X-Request-ID order-1001-b\n", audit)
    assert "right: Sends the same bytes with the same X-Request-ID again" in audit


async def test_what_cannot_be_done_is_one_line_that_helps() -> None:
    refused = [
        ("open_banks", {}, "There is no tool 'open_banks'; did you mean open_bank? There are: open_bank, people,"),
        (
            "clock",
            {"advanced": "1d"},
            "clock has no argument 'advanced'; did you mean advance? It takes: advance, mode",
        ),
        ("clock", {"mode": "slow"}, "clock: mode: Input should be 'live' or 'frozen'."),
        ("send_request", {"method": "GET"}, "send_request: path: Field required."),
        ("people", {}, "does not answer: Connection refused"),
        ("open_bank", {"seed": 1}, "seed goes with start: true"),
        ("open_bank", {"start": True, "url": NOBODY}, "not both"),
        (
            "open_bank",
            {"start": True, "fixtures": "none"},
            "There is no fixture 'none'; expected one of empty",
        ),
        ("open_bank", {"url": "bank"}, "http://127.0.0.1:8080"),
        ("open_bank", {"start": True, "now": "9999-12-31T23:59:59Z"}, "a moment of the years 1990 to 2200"),
        ("open_bank", {"start": True, "tpp": "a/b"}, "A TPP name has 1 to 63 letters"),
        ("customer", {"action": "approve", "target": "http://["}, "http://[ is no address: Invalid IPv6 URL"),
        ("customer", {"action": "approve", "target": "/"}, "/ names no SCA"),
        ("explain", {"request": ""}, "explain: request: String should have at least 1 character"),
        ("scenarios", {"name": ""}, "scenarios: name: String should have at least 1 character"),
        ("manual", {"topic": "xyzzy"}, "the manual has nothing about xyzzy"),
        ("run_checks", {}, "name either the command that runs your client or its hook"),
        ("run_checks", {"command": "no-such-program"}, "there is no program that can be run"),
        ("run_checks", {"hook": "x"}, "hook takes an http or https address"),
        ("run_checks", {"command": "true", "checks": ["repeat"]}, "There is no check 'repeat'"),
        ("apply_scenario", {"scenario": "scenario: x\nrule: []\n"}, "scenario:2:1: There is no member 'rule'"),
    ]
    async with agent("--url", NOBODY) as ask:
        for tool, arguments, expected in refused:
            text = await ask(tool, **arguments)
            assert expected in text
            assert "\n" not in text
        assert all(call.refused for call in ask.calls)


AWKWARD = [
    *("", " ", "/", "?", "#", "..", "a/b", "../../etc/passwd", "http://[", "http://127.0.0.1:9/sca/x", "latest"),
    *("\0", "a\nb", "x" * 5000, "[" * 5000, "{" * 5000, "'", "%", "{0}", "&a [*a]", "a: *b", "NaN", "1e999"),
    *("-1h", "P100Y", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "2026-03-02T09:00:00+01:00", "slow-bank"),
]
TEXTS = st.sampled_from(AWKWARD) | st.text(max_size=20)


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values for an argument of a tool, of the form that its schema asks for or nearly so."""
    if "anyOf" in schema:
        return st.one_of(map(values_of, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | TEXTS
    forms: dict[str, st.SearchStrategy[Any]] = {
        "string": TEXTS,
        "integer": st.integers(-1, 60) | st.just(10**30) | TEXTS,
        "boolean": st.booleans(),
        "array": st.lists(TEXTS, max_size=2),
        "object": st.dictionaries(TEXTS, TEXTS | st.floats(), max_size=2),
        "null": st.none(),
    }
    return forms[schema["type"]]


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[dict[str, Any], Callable[..., Call]]]:
    """The form of the arguments of each tool, and what calls one at a bank."""
    with (
        banks() as begin,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(agent("--url", begin(seed=1).url)) as ask,
    ):

        async def call(tool: str, arguments: dict[str, Any]) -> Call:
            await ask(tool, **arguments)
            return ask.calls[-1]

        listed = portal.call(ask.client.list_tools).tools
        yield {tool.name: tool.input_schema for tool in listed}, partial(portal.call, call)


@given(st.data())
def test_whatever_an_argument_is_a_tool_answers_or_refuses_in_one_line(
    tools: tuple[dict[str, Any], Callable[..., Call]], data: st.DataObject
) -> None:
    forms, ask = tools
    name = data.draw(st.sampled_from(sorted(forms)))
    members = forms[name]["properties"]
    needed = forms[name].get("required", [])
    chosen = data.draw(st.sets(st.sampled_from(sorted(members)), max_size=3)) | {*needed}
    arguments = {member: data.draw(values_of(members[member])) for member in sorted(chosen)}
    if name == "run_checks":
        arguments |= {"checks": ["none"]}  # else it would start a program
    call = ask(name, arguments)
    assert not call.refused or call.text == one_line(call.text)
    assert "Error executing" not in call.text
    assert "fault of the emulator" not in call.text
    assert "another program" not in call.text


async def test_the_tools_act_on_the_bank_that_was_opened_last_not_on_one_that_could_not_be() -> None:
    async with agent("--url", NOBODY) as ask:
        await ask("open_bank", start=True, now="2026-03-02T09:00:00+01:00")
        assert "does not answer" in await ask("open_bank", url=NOBODY)
        assert "2026-03-02T08:00:00+00:00, frozen" in await ask("clock")


async def test_the_tools_at_a_running_bank_lose_nothing_unasked(tmp_path: Path) -> None:
    """Requests, explanations, scenarios, and what only `confirm` does."""
    with banks() as begin:
        bank = begin(seed=1)
        url = bank.url
        bank.tpp(name="shop").files(tmp_path / "tpps" / "shop")
        async with agent("--url", url, "--state", str(tmp_path)) as ask:
            assert "agent/certificate.pem" in await ask("open_bank")
            assert f"sign with {tmp_path}/tpps/shop/certificate.pem" in await ask("open_bank", tpp="shop")
            assert "--state DIR" in await ask("open_bank", tpp="demo")
            assert "HTTP 401" in await ask("send_request", method="GET", path="/v1/accounts")
            link = re.search(r'"href":"(http[^"]+/sca/[^"]+)"', ask.calls[-1].text)
            assert link is not None
            assert "psu-id=" in await ask("customer", action="approve", target=link[1], national_id=KARI)
            assert "NO8599901000014" in await ask("send_request", method="GET", path="/v1/accounts")
            accounts = {"method": "GET", "path": "/v1/accounts"}
            assert "HTTP 400" in await ask("send_request", **accounts, customer=KARI, headers={"Signature": "x"})
            explained = await ask("explain")
            assert "Signature" in explained
            assert f"more: {url}/console/requests/3" in explained
            assert "400 GET /v1/accounts" in await ask("requests", status=400)
            reset = "scenario: anew\nstart: {from: empty}\n"
            assert "It would replace 4 customers" in await ask("apply_scenario", scenario=reset, check_only=True)
            assert "confirm: true applies it" in await ask("apply_scenario", scenario=reset)
            assert "confirm: true does it" in await ask("clear", what="bank")
            assert "Kari Kladd" in await ask("people")
            shown = (await ask("scenarios", name="slow-bank")).rpartition("\nmore: ")[0]
            assert "slow-bank is applied" in await ask("apply_scenario", scenario=shown)
            assert "Deleted" in await ask("clear", what="rules", confirm=True)
            assert "Deleted" in await ask("clear", what="bank", confirm=True)
            assert "HTTP 200" in await ask("send_request", **accounts, customer=KARI)
            again = reset.replace("empty", "known-state")
            assert "anew is applied" in await ask("apply_scenario", scenario=again, confirm=True)
            assert "HTTP 200" in await ask("send_request", **accounts, customer=KARI)
            assert "anew is applied" in await ask("apply_scenario", scenario=reset, confirm=True)
            assert "The bank has nobody." in await ask("people")
            planned = await ask("run_checks", command="false", checks=["fresh-request-id"])
            assert "the TPP sent no request in any check: " in planned
            assert "the command ended with status 1" in planned
            assert ask.progress == ["1 of 1 fresh-request-id"]


async def test_an_agent_starts_the_server_and_its_bank_ends_with_it(serve: list[str]) -> None:
    from mcp import Client, StdioServerParameters

    from emulator.agents.tools import TABLE

    server = StdioServerParameters(command=serve[0], args=serve[1:], env={**ALONE})
    async with Client(server) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == [*TABLE]
        assert all(tool.annotations is not None and tool.description for tool in tools.tools)
        opened = await client.call_tool("open_bank", {"start": True})
        address = urlsplit(opened.content[0].text.partition(": ")[0])
        socket.create_connection((address.hostname, address.port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_client_that_is_run_ends_with_the_server(serve: list[str], tmp_path: Path, number: int) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    client = f"sh -c 'exec 3> {begun}; echo begun >&3; exec sleep 600'"
    arguments = {"command": client, "checks": ["fresh-request-id"]}
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with banks() as begin:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        at = ("--url", begin(seed=1).url)
        with subprocess.Popen([*serve, *at], env={**ALONE, "TMPDIR": str(tmp_path)}, **pipes) as server:

            def say(method: str, parameters: dict[str, Any], **call: int) -> None:
                print(json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters, **call}), file=server.stdin)
                server.stdin.flush()

            say("initialize", about, id=1)
            server.stdout.readline()
            say("notifications/initialized", {})
            say("tools/call", {"name": "run_checks", "arguments": arguments}, id=2)
            with begun.open() as pipe:
                assert pipe.readline() == "begun\n"
                server.send_signal(number)
                assert server.wait(60) == 0
                assert select.select([pipe], [], [], 60)[0], "the client is still there"
                assert pipe.read() == ""
    assert [*tmp_path.iterdir()] == [begun]


async def test_over_http_the_token_is_needed_and_no_command_is_run(serve: list[str]) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    environment = {**ALONE, "BANK_EMULATOR_CONTROL_TOKEN": "secret"}
    with subprocess.Popen([*serve, "--http", "0"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            ready = process.stdout.readline()
            url = ready.removeprefix("READY ").strip()
            with pytest.raises(HTTPError, match="401"):
                urlopen(Request(url, b"{}", {"Content-Type": "application/json"}))
            sent = create_mcp_http_client(headers={"Authorization": "Bearer secret"})
            async with sent, Client(streamable_http_client(url, http_client=sent)) as client:
                refused = await client.call_tool("run_checks", {"command": "true"})
                assert "mcp --command CMD" in refused.content[0].text
        finally:
            process.terminate()
        assert process.wait(10) == 0


async def test_over_http_a_client_that_is_run_ends_with_the_server_too(serve: list[str], tmp_path: Path) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    begun = tmp_path / "begun"
    os.mkfifo(begun)
    client = f"sh -c 'exec 3> {begun}; echo begun >&3; exec sleep 600'"

    def ended() -> str:
        with begun.open() as pipe:
            assert pipe.readline() == "begun\n"
            server.terminate()
            assert select.select([pipe], [], [], 20)[0], "the client is still there"
            return pipe.read()

    with banks() as begin:
        at = ("--http", "0", "--url", begin(seed=1).url, "--command", client)
        with subprocess.Popen([*serve, *at], env=ALONE, stdout=subprocess.PIPE, text=True) as server:
            url = server.stdout.readline().removeprefix("READY ").strip()
            async with Client(streamable_http_client(url)) as ask:
                asked = asyncio.create_task(ask.call_tool("run_checks", {"checks": ["fresh-request-id"]}))
                assert await asyncio.to_thread(ended) == ""
                assert (await asked).content[0].text == "the server ends"
            assert server.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--http", "much"], "--http much: takes PORT or HOST:PORT"),
        (["--http", "0.0.0.0:0"], "requires BANK_EMULATOR_CONTROL_TOKEN"),
        (["--url", "bank"], "--url"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert expected in line


def test_without_the_sdk_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "emulator.agents.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert run(["mcp"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "bank-emulator: mcp requires an extra: pip install 'bank-emulator[mcp]' (see bank-emulator docs agents)"
    ]
