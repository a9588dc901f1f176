"""Pages to read, check, apply and play scenarios."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.api.messages import Response, Steps
from emulator.bank.threads import in_thread
from emulator.scenario import loader, target
from emulator.scenario.loader import ScenarioRefused
from emulator.web.console.screen import ControlRefused, Screen

PARAMETER = "set-"  # before the name of a parameter in a form
EXAMPLE = """scenario: my-scenario
summary: What this shows, in a sentence.
start:
  from: current
rules:
  - name: the first answer comes late
    when: {operation: getAccounts}
    times: {first: 1}
    then: {delay: 2s}
"""


def active_rules(screen: Screen) -> list[dict[str, Any]]:
    """The active scripted rules, each with `count`: its name and how often it has matched and acted."""
    answer = screen.ask("GET", "rules?limit=1000")
    return [{**rule, "count": count} for rule, count in zip(answer["rules"], answer["counts"], strict=True)]


def listing(screen: Screen) -> Response:
    return screen.page(
        "scenarios", scenarios=screen.every("scenarios"), active=target.applied(screen.bank), rules=active_rules(screen)
    )


def one(screen: Screen) -> Response:
    name = screen.params["name"]
    path = loader.library().get(name)
    if path is None:
        return screen.missing("scenario")
    return _editor(screen, path.read_text(encoding="utf-8"), name=name)


def own(screen: Screen, *, checked: bool = False) -> Response:
    """Show the editor with the text of the form, at first a small example."""
    return _editor(screen, screen.form.typed("text") if "text" in screen.form else EXAMPLE, checked=checked)


def _editor(screen: Screen, text: str, *, name: str = "", checked: bool = False) -> Response:
    ready = next((line for line in screen.every("scenarios") if line["name"] == name), None) if name else None
    return screen.page("scenario", text=text, name=name, ready=ready, checked=checked, lines=text.count("\n") + 2)


def check(screen: Screen) -> Steps:
    """Check the text of the form without applying it; shows every problem with its line."""
    text = screen.form.typed("text")
    try:
        yield from in_thread(partial(loader.from_text, text, "scenario.yaml"))  # a long one takes half a second
    except ScenarioRefused as refused:
        raise ControlRefused(400, refused.lines()) from refused
    return own(screen, checked=True)


def apply(screen: Screen) -> Steps:
    """Apply a ready scenario by its name, or the text of the form; asks first if data would be lost."""
    name = screen.form.get("name")
    fields = {key.removeprefix(PARAMETER): value for key, value in screen.form.pairs() if key.startswith(PARAMETER)}
    # an empty field means the default
    body = {"name": name, "parameters": {key: value for key, value in fields.items() if value.strip()}}
    sent: dict[str, Any] = {"body": body} if name else {"yaml": screen.form.typed("text")}
    try:
        if not screen.confirmed:
            preview = yield from screen.ask_in_steps("POST", "scenario/preview", **sent)
            if preview["lost"]:
                title, back = f"Apply {preview['scenario']}?", ["scenarios", name] if name else ["scenarios"]
                lost, clock = preview["lost"], preview["clock"]
                return screen.confirmation(title, "Apply it", lost=lost, back=back, clock=clock)
        applied = yield from screen.ask_in_steps("POST", "scenario", **sent)
    except ControlRefused as refused:
        if name and name not in loader.library():
            raise
        screen.refused, screen.params = refused, {"name": name}
        return one(screen) if name else own(screen)
    return screen.page("applied", applied=applied)


def play(screen: Screen) -> Response:
    name = screen.params["name"]
    if name not in loader.library():
        return screen.missing("scenario")
    played = screen.ask("POST", f"scenarios/{name}/play", {})
    return screen.page("played", name=name, played=played)
