"""A request of the log as a curl command that can be pasted into a shell."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

# curl makes these itself; sent twice they would change the request.
_OWN = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding", "expect"})


def command(method: str, url: str, headers: Iterable[Iterable[str]], body: str) -> str:
    """The command, one header a line; the signature in it holds for as long as its Date does."""
    # -g and --path-as-is: the address stands as it is, {id}, [1] and /../ too;
    # --data-raw: a body that begins with @ names no file
    lines = [f"curl -g --path-as-is -X {quote(method)} {quote(url)}"]
    for name, value in headers:
        if name.lower() not in _OWN:
            # `Name;` is how curl sends a header without a value.
            lines.append(f"-H {quote(f'{name}: {value}' if value else f'{name};')}")
    if body:
        lines.append(f"--data-raw {quote(body)}")
    return " \\\n  ".join(lines)
