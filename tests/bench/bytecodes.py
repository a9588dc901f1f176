"""What one request makes the interpreter do: bytecodes by function, the same on every run and on a busy machine.

    python -m tests.bench.bytecodes [create|status|page] [--rows N] [--judging]

`--judging` counts what an idle process does with it later instead: its judgement for the conformance report.

Times vary by half from minute to minute on a shared machine; a change of a few per cent shows here at once. On CPython
3.11 a bytecode of such straight-line code costs 25 to 50 ns. What is done in C is not seen: decoding, hashing, RSA.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import uvloop

from emulator import assemble
from emulator.settings import ServeSettings
from emulator.web.connection import Connection, Connections
from emulator.web.handler import Handler
from emulator.web.wire import Base, Limits
from tests.bench.customers import Customer
from tests.bench.harness import bank
from tests.known_state import SEPA

WARM_UP = 1200  # requests: the request log is full then, and the interpreter has settled on its fast forms
COUNTED = 20
PAGE = 100  # transactions


class Sink(asyncio.Transport):
    """Counts answers and keeps none."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if bytes(data[9:10]) != b"2":
            raise RuntimeError(bytes(data).decode())
        self.answers += 1

    def is_closing(self) -> bool:
        return False


async def counted(
    send: Callable[[bytes], Awaitable[None]], requests: Sequence[bytes]
) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """Bytecodes of all `requests`: by the function that ran them, and by all the functions on the stack."""
    own: Counter[CodeType] = Counter()
    whole: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            own[frame.f_code] += 1
            above: FrameType | None = frame
            stack = set()
            while above is not None:
                stack.add(above.f_code)
                above = above.f_back
            whole.update(stack)
        return trace

    sys.settrace(trace)
    try:
        for request in requests:
            await send(request)
    finally:
        sys.settrace(None)
    return own, whole


def prepared(folder: Path, kind: str) -> list[bytes]:
    """Signed requests for the bank in `folder`, made by a client of a bank that runs on it for a moment."""
    with bank(folder) as running:
        customer = Customer(running.port, folder)
        if kind == "create":
            return customer.creates(WARM_UP + COUNTED)
        if kind == "status":
            return customer.gets(f"{SEPA}/{customer.a_payment()}/status", WARM_UP + COUNTED)
        plan = {"customers": 1, "accountsPerCustomer": 1, "transactionsPerAccount": PAGE, "days": 60, "seed": 1}
        person = customer.control("POST", "generate", plan)["customers"][0]
        reader = Customer(running.port, folder, national_id=person["nationalId"])
        return reader.gets(f"/v1/accounts/{reader.account['id']}/transactions?limit={PAGE}", WARM_UP + COUNTED)


def show(own: Counter[CodeType], whole: Counter[CodeType], rows: int) -> None:
    print(f"{own.total() / COUNTED:,.0f} bytecodes a request\n\n   whole     own  function")
    for code, number in [(code, number) for code, number in whole.most_common() if own[code]][:rows]:
        place = "/".join(Path(code.co_filename).parts[-2:])
        print(f"{number / COUNTED:>8,.0f}{own[code] / COUNTED:>8,.0f}  {code.co_qualname}  {place}")


async def measure(kind: str, rows: int, *, judging: bool) -> None:
    with TemporaryDirectory() as folder:
        requests = prepared(Path(folder), kind)
        application = assemble.assemble(ServeSettings(state=Path(folder), port=8080))
        base = Base("http", 8080, ServeSettings())
        handler = Handler(application)
        sink = Sink()
        connection = Connection(Connections(handler, Limits()), base)
        connection.connection_made(sink)

        async def send(request: bytes) -> None:
            owed = sink.answers + 1
            connection.data_received(request)
            while sink.answers < owed:
                await asyncio.sleep(0)
            await asyncio.sleep(0)

        async def judge(_: bytes) -> None:
            observer.judge_some(1)

        for request in requests[:WARM_UP]:
            await send(request)
        observer = application.default.observer
        observer.judge_some(WARM_UP)
        if judging:
            for request in requests[WARM_UP:]:
                await send(request)
        show(*await counted(judge if judging else send, requests[WARM_UP:]), rows)
        application.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=("create", "status", "page"), default="create")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--judging", action="store_true")
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(asked.kind, asked.rows, judging=asked.judging))


if __name__ == "__main__":
    main()
