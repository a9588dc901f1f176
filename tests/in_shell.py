"""The `bank-emulator` of a shell: asks the origin of `tests.warm` for a command, and is to the shell what that does.

A script of its own, which imports little: a guide runs dozens of commands.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

NUMBER = 8  # bytes of a process id and of a status


def asked(
    origin: str, line: tuple[str, ...], environment: dict[str, str], streams: tuple[int, ...], folder: str
) -> socket.socket:
    """The connection to the keeper of a new command."""
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(origin)
    socket.send_fds(asking, [b"+"], streams)
    asking.sendall(json.dumps([line, environment, folder]).encode() + b"\n")
    return asking


def number(keeper: socket.socket) -> int:
    content = keeper.recv(NUMBER)
    if len(content) != NUMBER:
        raise ChildProcessError("the command has lost its keeper")
    return int.from_bytes(content, "big", signed=True)


def as_bytes(number: int) -> bytes:
    return number.to_bytes(NUMBER, "big", signed=True)


def run(origin: str, *arguments: str) -> int:
    """The status of the command; signals are passed on."""
    keeper = asked(origin, ("bank-emulator", *arguments), dict(os.environ), (0, 1, 2), os.getcwd())
    pid = number(keeper)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, lambda received, _frame: os.kill(pid, received))
    status = number(keeper)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
