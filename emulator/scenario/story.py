"""The story of a scenario: its steps, and who acts in each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from emulator.bank.problems import Problem, guess
from emulator.bank.validation import Reads, Unfit
from emulator.scenario.persona import As, Declared, Persona, acting
from emulator.scenario.step import Scene, Step
from emulator.scenario.steps import step_kinds
from emulator.scenario.variables import is_day, names_in

MOST_STEPS = 1000


def _no_step(value: Any) -> Any:
    kinds = step_kinds()
    if not isinstance(value, dict):
        raise Unfit("a mapping")
    named = [name for name in value if name in kinds]
    if named:
        raise Unfit(text=f"One step is one of {', '.join(named)}; write two steps.")
    first = next(iter(value), "")
    raise Unfit(text=f"A step is one of {', '.join(kinds)}; there is no", known=tuple(kinds), value=first)


def _kind(value: Any) -> str:
    if isinstance(value, Step):
        return f"({value.word})"
    named = [name for name in step_kinds() if isinstance(value, dict) and name in value]
    return f"({named[0]})" if len(named) == 1 else "(none)"


if TYPE_CHECKING:
    AnyStep = Step
else:
    _ARMS = [Annotated[kind, Tag(f"({word})")] for word, kind in step_kinds().items()]
    _NONE = Annotated[Any, Reads(_no_step, {"not": {}}), Tag("(none)")]
    AnyStep = Annotated[Union[(*_ARMS, _NONE)], Discriminator(_kind)]


def scenes(steps: Sequence[Step], stated: Sequence[Mapping[str, Any]], everybody: As | None) -> tuple[Scene, ...]:
    """The steps ready to play; `stated`: as the file has them; `everybody`: `as` of the story."""
    declared = Declared()
    base = Persona() if everybody is None else acting(everybody, Persona(), declared)
    ready = []
    for step, source in zip(steps, stated, strict=True):
        persona = base if step.as_ is None else acting(step.as_, base, declared)
        ready.append(Scene(step, f"{step.word} {source[step.word]}", persona, source.get("expect")))
    return tuple(ready)


def unsaved_names(story: Any, known: Collection[str]) -> Iterator[Problem]:
    """Each name in a step that no earlier step saves, and that is none of `known`."""
    saved = set(known)
    for index, step in enumerate(story if isinstance(story, list) else ()):
        for name, path in names_in(step):
            if name not in saved and not is_day(name):
                similar = guess(name, saved) or "."
                yield Problem(("story", index, *path), f"No earlier step saves {name!r}{similar}")
        # What a step with problems saves is known to the steps after it.
        save = step.get("save") if isinstance(step, dict) else None
        saved |= save.keys() if isinstance(save, dict) else set()
