"""The parts of the README that are made from the code: `python -m tests.docs.sections` writes them anew."""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.docs.chart import chart

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
SOURCE = HERE.parents[1] / "emulator"
BENCH = HERE / "bench.json"  # the recorded run of `make bench`
CHART = HERE / "images" / "speed.svg"


def _table(heading: tuple[str, ...], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def flags() -> str:
    from emulator.settings import FLAGS, ServeSettings

    rows = []
    for flag in FLAGS:
        default = getattr(ServeSettings(), flag.member)
        shown = "off" if flag.switch else "none" if default in (None, ()) else default
        takes = f" {flag.takes}" if flag.takes else ""
        rows.append((f"`--{flag.name}{takes}`", f"`{flag.variable}`", shown, flag.help))
    return _table(("Flag", "Variable", "Default", ""), rows)


def operations() -> str:
    from emulator.api.operations import table

    rows = ((f"`{row.method} {row.path}`", f"`{row.id}`", row.spec, row.summary) for row in table())
    return _table(("Address", "operationId", "SPEC", ""), rows)


def transitions() -> str:
    from emulator.bank.scheme.transitions import diagram

    return f"```mermaid\n{diagram().strip()}\n```"


def settings() -> str:
    from emulator.bank.settings import DECIDES, TAKES, Settings

    rows = []
    for name, default in Settings().as_document().items():
        shown = default if isinstance(default, str) else json.dumps(default)
        rows.append((f"`{name}`", f"`{shown}`", TAKES[name].words, DECIDES[name]))
    return _table(("Setting", "Default", "Takes", "Decides"), rows)


def effects() -> str:
    from emulator.scenario.effects import effects as found

    return _table(("`then`", "", "Example"), ((f"`{e.name}`", e.summary, _value(e.example)) for e in found().values()))


def steps() -> str:
    from emulator.scenario.steps import step_kinds as found

    return _table(("Step", "", "Example"), ((f"`{s.name}`", s.summary, _value(s.example)) for s in found().values()))


def _value(example: object) -> str:
    return f"`{json.dumps(example, ensure_ascii=False)}`"


def control() -> str:
    from emulator.control.operations import table

    rows = ((f"`{row.method} {row.path}`", f"`{row.id}`", row.summary) for row in table())
    return _table(("Below `/_emulator`", "operationId", ""), rows)


def rooms() -> str:
    """The folders of the program, each with the first sentence of its own description."""
    folders = sorted(file.parent for file in SOURCE.glob("**/__init__.py") if file.parent != SOURCE)
    lines = [f"{'emulator/':<22}settings.py reads the flags and the environment, and nothing else does"]
    for folder in folders:
        depth = len(folder.relative_to(SOURCE).parts)
        text = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").split("\n\n")[0]
        sentence = re.split(r"(?<=[^0-9])\.(?: |$)", " ".join(text.split()))[0]
        lines.append(f"{'  ' * depth + folder.name + '/':<22}{sentence.replace('`', '')}")
    return "```text\n" + "\n".join(lines) + "\n```"


def speed() -> str:
    """The ratios of the recorded run of `make bench`."""
    run = json.loads(BENCH.read_text())
    rows = []
    for row in run["rows"]:
        goal = f"at least {row['at_least']:g}" if row["at_least"] is not None else ""
        goal = f"at most {row['at_most']:g}" if row["at_most"] is not None else goal
        rows.append((row["section"], row["name"], f"{row['value']:,.2f} {row['unit']}", goal))
    machine = run["machine"]
    about = f"Python {machine['python']}, {machine['machine']}, {machine['cores']} cores, one of them for the load."
    chart = "![Rates beside those of a plain server](tests/docs/images/speed.svg)"
    return f"{about}\n\n{chart}\n\n{_table(('Section', '', 'Measured', 'Goal'), rows)}"


def scenarios() -> str:
    from emulator.scenario import loader

    return _table(("Scenario", ""), ((f"`{name}`", loader.named(name).summary) for name in sorted(loader.library())))


def commands() -> str:
    from emulator.cli.main import group

    rows = []
    for name, command in group.commands.items():
        nested = "|".join(sorted(getattr(command, "commands", {})))
        rows.append((f"`{name} {nested}`".replace(" `", "`"), (command.help or "").strip().splitlines()[0]))
    return _table(("Command", ""), rows)


SECTIONS: dict[str, Callable[[], str]] = {
    "flags": flags,
    "operations": operations,
    "transitions": transitions,
    "settings": settings,
    "effects": effects,
    "steps": steps,
    "control": control,
    "rooms": rooms,
    "speed": speed,
    "scenarios": scenarios,
    "commands": commands,
}


def renewed(text: str) -> str:
    """`text` with every generated section made anew."""
    for name, make in SECTIONS.items():
        pattern = re.compile(rf"(<!-- made: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        made = make()
        text = pattern.sub(lambda found, made=made: f"{found[1]}{made}\n{found[2]}", text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, metavar="FILE", help="record this run, such as .bench/results.json")
    asked = parser.parse_args()
    if asked.bench is not None:
        BENCH.write_text(asked.bench.read_text())
    CHART.write_text(chart(json.loads(BENCH.read_text())["rows"]))
    README.write_text(renewed(README.read_text()))


if __name__ == "__main__":
    main()
