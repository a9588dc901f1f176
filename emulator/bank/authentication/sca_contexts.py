"""As whom the person of an SCA acts: privately, or under an agreement (CONTRACT 4)."""

from __future__ import annotations

from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.store import Document


def needs_choice(bank: Bank, sca: Document) -> bool:
    """Whether the person has to choose between contexts or agreements."""
    return "chosen" not in sca and len(options(bank, sca)) > 1


def options(bank: Bank, sca: Document) -> list[tuple[str, Document | None]]:
    """The contexts (with agreement) that the person may choose, narrowed to what the request asked for."""
    return [
        (context, agreement)
        for context, agreement in people.contexts_of(bank, sca["person"])
        if sca.get("context") in (None, context)
        and (sca.get("agreement") is None or (agreement is not None and agreement["id"] == sca["agreement"]))
    ]


def acting_as(bank: Bank, sca: Document) -> tuple[str, str | None]:
    """Context and agreement of the identified person, where there is no `sca.obstacle`: chosen, or the first."""
    return possible(bank, sca)[0]


def possible(bank: Bank, sca: Document) -> list[tuple[str, str | None]]:
    """What the person may act as now: what it chose, or else all that it may choose."""
    allowed = [(context, agreement["id"] if agreement else None) for context, agreement in options(bank, sca)]
    chosen = sca.get("chosen")
    return [one for one in allowed if chosen is None or one == (chosen["context"], chosen["agreement"])]
