"""The tools as a server of the Model Context Protocol, on stdin and stdout or over HTTP."""

from __future__ import annotations

import hmac
import signal
import socket
from collections.abc import Callable, Collection
from functools import wraps
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from emulator import __version__
from emulator.agents.desk import Desk
from emulator.agents.tools import TABLE, Tool, Tools
from emulator.bank.problems import guess
from emulator.failure import Failed
from emulator.terminal import one_line, printable

INSTRUCTIONS = (
    "A sandbox bank for clients (TPPs) of the PSD2 interface of Norwegian banks. Begin with open_bank. Send requests "
    "to its address from your client, or with send_request; explain tells why one failed; customer approves in place "
    "of the person; clock moves bank time; apply_scenario makes the bank fail; audit judges your client; manual has "
    "the rules."
)
PATH = "/mcp"


class BankServer(MCPServer[None]):
    """The server; a call that cannot be done is answered with one line that helps."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(
            "bank-emulator", title="Bank emulator", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR"
        )
        tools = Tools(desk)
        for name, effect in TABLE.items():
            tool: Tool = getattr(tools, name)
            annotations = ToolAnnotations(
                read_only_hint=effect == "reads", destructive_hint=effect == "deletes", open_world_hint=effect == "runs"
            )
            self.add_tool(_working(tool), name=name, annotations=annotations, structured_output=False)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; raises ToolError with one line."""
        takes = {tool.name: list(tool.input_schema["properties"]) for tool in await self.list_tools()}
        if name not in takes:
            raise ToolError(_unknown(f"There is no tool {name[:100]!r}", name, takes, "there are"))
        for argument in arguments:
            if argument not in takes[name]:
                text = f"{name} has no argument {argument[:100]!r}"
                raise ToolError(_unknown(text, argument, takes[name], "it takes"))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            cause = error.__cause__
            text = f"{name}: {type(cause).__name__}: {cause}. This is a fault of the emulator; its stderr shows where."
            raise UnexpectedToolError(one_line(text)) from cause
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                wrong = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cause.errors())
                raise ToolError(f"{name}: {one_line('; '.join(wrong))}.") from None
            raise (cause if isinstance(cause, ToolError) else error) from None


def _working(tool: Tool) -> Tool:
    """The tool with an answer that is safe for a terminal; what cannot be done is a ToolError."""

    @wraps(tool)
    def work(**arguments: Any) -> str:
        try:
            return printable(tool(**arguments))
        except Failed as failed:
            raise ToolError(one_line(str(failed))) from failed

    return work


def _unknown(text: str, name: str, known: Collection[str], lead: str) -> str:
    return f"{text}{guess(name, known) or '.'} {lead.capitalize()}: {', '.join(known)}."


def _with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The application without the requests that lack the control token, with which the tools act."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        sent = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(sent, f"Bearer {token}".encode()):
            text = "Authorization: Bearer with the control token is needed (BANK_EMULATOR_CONTROL_TOKEN).\n"
            await PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        await app(scope, receive, send)

    return checked


class _HttpServer(uvicorn.Server):
    """Calls `ending` at a signal, before it waits for the answers that are under way."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending()
        super().handle_exit(sig, frame)


def serve_http(
    server: BankServer,
    host: str,
    port: int,
    *,
    token: str | None,
    listening: Callable[[str], None],
    ending: Callable[[], None],
) -> None:
    """Serve streamable HTTP until SIGTERM or SIGINT, which call `ending`; `listening` is called with the address.

    Raises OSError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as bound:
        app: ASGIApp = server.streamable_http_app(host=host, streamable_http_path=PATH)
        if token is not None:
            app = _with_token(app, token)
        name = f"[{host}]" if family == socket.AF_INET6 else host
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn raises what ended it once more: the end is orderly
        listening(f"http://{name}:{bound.getsockname()[1]}{PATH}")
        config = uvicorn.Config(app, log_level="error", lifespan="on")
        _HttpServer(config, ending).run(sockets=[bound])
