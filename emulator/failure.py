"""What cannot be done, in one line, with which a command ends on stderr (command-line.md#exit-status)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class Failed(Exception):
    """Wrong usage, configuration, fixture or scenario; a port or state directory in use; a bank that does not answer.

    `page` names the page of the manual about it, as in `bank-emulator docs PAGE`; empty for none.
    """

    status = 2

    def __init__(self, text: str, *, page: str = "") -> None:
        super().__init__(text)
        self.page = page


class Refused(Failed):
    """The bank answered a request with 400; `messages` are the tppMessages of its answer."""

    def __init__(self, text: str, messages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(text)
        self.messages = messages


class CheckFailed(Failed):
    """A check or a story failed; the text is empty if the command has already printed the failure."""

    status = 1


class Damaged(Failed):
    """The stored state is damaged; the text names file and offset."""

    status = 3

    def __init__(self, text: str) -> None:
        super().__init__(text, page="recover-data")


@contextmanager
def working_with(what: str, *, page: str = "") -> Iterator[None]:
    """The block that works with a file, a folder or an address; raises Failed, which names it, for an OSError."""
    try:
        yield
    except OSError as error:
        raise Failed(f"{what}: {error.strerror or error}", page=page) from error


@contextmanager
def needs_extra(name: str, what: str, *, page: str = "") -> Iterator[None]:
    """The block that imports what an extra of the package brings; raises Failed if it is not installed."""
    try:
        yield
    except ImportError as error:  # also one of its libraries that the system does not have
        if (error.name or "").startswith("emulator"):
            raise
        raise Failed(f"{what} requires an extra: pip install 'bank-emulator[{name}]'", page=page) from error
