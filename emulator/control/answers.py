"""What the forms of answers share; each form is beside its operation, in `operations/`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

closed = with_config(ConfigDict(extra="forbid"))


@closed
class Message(TypedDict):
    """A problem, and the member, header or parameter that has it (`path`)."""

    category: Literal["ERROR", "WARNING"]
    code: str
    path: NotRequired[str]
    text: NotRequired[str]


@closed
class Error(TypedDict):
    """A refused request: every problem is listed, and nothing was changed."""

    tppMessages: list[Message]
    _links: NotRequired[dict[str, Any]]


# The documents of the bank by kind, settings by name, a scenario, or a document about the interface.
AnyObject = dict[str, Any]
