"""As whom the person of an SCA acts: privately, or under an agreement (CONTRACT 4)."""

from __future__ import annotations

from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import Agreement, Sca


def needs_choice(bank: Bank, sca: Sca) -> bool:
    """Whether the person has to choose between contexts or agreements."""
    return "chosen" not in sca and len(options(bank, sca)) > 1


def options(bank: Bank, sca: Sca) -> list[tuple[str, Agreement | None]]:
    """The contexts (with agreement) that the person may choose, narrowed to what the request asked for."""
    return options_of(bank, sca["person"], sca)


def options_of(bank: Bank, national_id: str, sca: Sca | None) -> list[tuple[str, Agreement | None]]:
    """`options` of a person who has not identified; without an SCA all contexts."""
    wanted = (None, None) if sca is None else (sca.get("context"), sca.get("agreement"))
    return [
        (context, agreement)
        for context, agreement in people.contexts_of(bank, national_id)
        if wanted[0] in (None, context)
        and (wanted[1] is None or (agreement is not None and agreement["id"] == wanted[1]))
    ]


def acting_as(bank: Bank, sca: Sca) -> tuple[str, str | None]:
    """Context and agreement of the identified person, where there is no `sca.obstacle`: chosen, or the first."""
    return possible(bank, sca)[0]


def possible(bank: Bank, sca: Sca) -> list[tuple[str, str | None]]:
    """What the person may act as now: what it chose, or else all that it may choose."""
    allowed = [(context, agreement["id"] if agreement else None) for context, agreement in options(bank, sca)]
    chosen = sca.get("chosen")
    return [one for one in allowed if chosen is None or one == (chosen["context"], chosen["agreement"])]
