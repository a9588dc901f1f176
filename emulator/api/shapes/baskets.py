"""The body of a signing basket (SPEC 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.shapes.parts import Filled, Rule, closed, inner
from emulator.bank.errors import Message

# See `validate.read_usual`.
NO_NUMBERS = True


@closed
class SigningBasket(TypedDict):
    """1 to 10 different payments, by the identifiers that their creation returned."""

    paymentIds: Annotated[list[Filled], Field(min_length=1, max_length=10)]


def _different(body: Any) -> Iterator[Message]:
    ids = inner(body, "paymentIds")
    texts = [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else []
    if len(set(texts)) != len(texts):
        yield Message("FORMAT_ERROR", "Each payment may stand in a basket once.", "paymentIds")


RULES: Mapping[str, tuple[Rule, ...]] = {"SigningBasket": (_different,)}
