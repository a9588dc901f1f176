"""The parts of the manual and the README that are generated from the code.

`python -m tests.docs.sections` writes them: every block between `<!-- generated: NAME -->` and `<!-- end: NAME -->`,
the pictures that are drawn from tables, and the schemas of scenarios and fixtures.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import manual
from emulator.bank.fixtures import schema as fixture_schema
from emulator.scenario.model import scenario_schema
from tests.docs.pictures import chart, packages_picture, statuses_picture

if TYPE_CHECKING:
    from emulator.bank.payment.flows import Flow
    from emulator.bank.scheme.transitions import Transition
    from emulator.conformance.check import Check

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
README = ROOT / "README.md"
SOURCE = ROOT / "emulator"
BENCH = HERE / "bench.json"  # the recorded run of `make bench`
EXAMPLES = ROOT / "tests" / "examples"
_LANGUAGES = {
    ".mjs": "js",
    ".java": "java",
    ".cs": "csharp",
    ".go": "go",
    ".php": "php",
    ".sh": "bash",
    ".py": "python",
}


def _table(heading: tuple[str, ...], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def flags() -> str:
    from emulator.settings import FLAGS

    rows = []
    for flag in FLAGS:
        shown = "off" if flag.switch else flag.default or "none"
        takes = f" {flag.takes}" if flag.takes else ""
        rows.append((f"`--{flag.name}{takes}`", f"`{flag.variable}`", shown, flag.help))
    return _table(("Flag", "Variable", "Default", "Meaning"), rows)


def operations() -> str:
    from emulator.api.operations import table

    rows = ((f"`{row.method} {row.path}`", f"[`{row.id}`](/docs/operations/{row.id})", row.summary) for row in table())
    return _table(("Address", "operationId", "What it does"), rows)


def headers() -> str:
    from emulator.api.headers import COLUMNS, MATRIX

    shown = ("Basket POST", "Basket GET", "Straks POST", "Payment POST", "Accounts", "Sandbox")
    rows = ((f"`{name}`", *(marks[column] for column in COLUMNS)) for name, marks in MATRIX.items())
    return _table(("Header", *shown), rows)


def errors() -> str:
    from emulator.bank.errors import STATUS

    when = {}
    for section in manual.pages()["reference/errors"].sections:
        match = re.search(r"\*\*When:\*\* (.+?)(?:\.\s|\.?\n- )", section.text, re.DOTALL)
        if match:
            when[section.title] = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(match[1].split()))
    rows = ((f"[`{code}`](#{code.lower()})", int(status), when.get(code, "")) for code, status in STATUS.items())
    return _table(("Code", "HTTP status", "When"), rows)


def products() -> str:
    from emulator.bank.products import table

    return _table(("Address", "Product"), ((f"`/v1/{row.service}/{row.name}`", row.words) for row in table().values()))


def currencies() -> str:
    from emulator.bank.money import CURRENCIES, MINOR_UNITS

    other = [f"{code} {MINOR_UNITS[code]}" for code in CURRENCIES if MINOR_UNITS[code] != 2]
    return f"{' '.join(CURRENCIES)}\n\nTwo minor units, except: {', '.join(other)}."


def countries() -> str:
    from emulator.bank.reference import COUNTRIES

    return " ".join(COUNTRIES)


def transitions() -> str:
    from emulator.bank.payment.flows import FLOWS

    rows = []
    for step, flows in edges().items():
        missing = [flow.words for flow in FLOWS.values() if flow not in flows]
        has = ", ".join(flow.words for flow in flows)
        products = has if len(missing) >= len(flows) else f"not {', '.join(missing)}" if missing else "all products"
        rows.append((f"`{step.start}`", f"`{step.end}`", step.when, products))
    return _table(("From", "To", "When", "Products"), rows)


def edges() -> dict[Transition, list[Flow]]:
    """Every transition with the flows that have it, in the order of the statuses."""
    from emulator.bank.payment.flows import FLOWS
    from emulator.bank.scheme.transitions import STATUSES

    flows: dict[Transition, list[Flow]] = {}
    for flow in FLOWS.values():
        for step in flow.transitions:
            flows.setdefault(step, []).append(flow)
    return dict(sorted(flows.items(), key=lambda row: (STATUSES.index(row[0].start), STATUSES.index(row[0].end))))


def settings() -> str:
    from emulator.bank.settings import TAKES, Settings, schemas

    blocks = []
    for name, default in Settings().as_document().items():
        shown = default if isinstance(default, str) else json.dumps(default)
        blocks.append(
            f"## {name}\n\n{schemas()[name]['description']}\n\nTakes {TAKES[name].words}. Default: `{shown}`."
        )
    return "\n\n".join(blocks)


def effects() -> str:
    from emulator.scenario.effects import effects as kinds

    rows = ((f"`{kind.name}`", kind.summary, _value(kind.example)) for kind in kinds().values())
    return _table(("`then`", "What happens", "Example"), rows)


def steps() -> str:
    from emulator.scenario.steps import step_kinds

    rows = ((f"`{kind.word}`", kind.summary, _value(kind.example)) for kind in step_kinds().values())
    return _table(("Step", "What happens", "Example"), rows)


def _value(example: object) -> str:
    return f"`{json.dumps(example, ensure_ascii=False)}`"


def control() -> str:
    from emulator.control.operations import table

    rows = ((f"`{row.method} {row.path}`", f"[`{row.id}`](/docs/control/{row.id})", row.summary) for row in table())
    return _table(("Below `/_emulator`", "operationId", "What it does"), rows)


def packages() -> str:
    """The folders of the program, each with the first sentence of its own description."""
    folders = sorted(file.parent for file in SOURCE.glob("**/__init__.py") if file.parent != SOURCE)
    rows = ((f"`emulator/{folder.relative_to(SOURCE).as_posix()}`", about(folder)) for folder in folders)
    return _table(("Package", "What it contains"), rows)


def about(folder: Path) -> str:
    """The first sentence of a package's docstring."""
    text = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").split("\n\n")[0]
    return re.split(r"(?<=[^0-9])\.(?: |$)", " ".join(text.split()))[0].replace("`", "")


def speed() -> str:
    """The recorded run of `make bench`."""
    run = json.loads(BENCH.read_text())
    rows = []
    for row in run["rows"]:
        goal = f"at least {row['at_least']:g}" if row["at_least"] is not None else ""
        goal = f"at most {row['at_most']:g}" if row["at_most"] is not None else goal
        rows.append((row["section"], row["name"], f"{row['value']:,.2f} {row['unit']}", goal))
    machine = run["machine"]
    words = f"Python {machine['python']}, {machine['machine']}, {machine['cores']} cores, one of them for the load."
    picture = "![Rates beside those of a plain server](../images/speed.svg)"
    return f"{words}\n\n{picture}\n\n{_table(('Section', 'What', 'Measured', 'Goal'), rows)}"


def scenarios() -> str:
    from emulator.scenario import loader

    return _table(
        ("Scenario", "What happens"), ((f"`{name}`", loader.named(name).summary) for name in sorted(loader.library()))
    )


def _in_short(value: object) -> str:
    """A value of an effect as YAML, texts and headers of an answer left out."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items() if k not in ("text", "headers")) + "}"
    return str(value)


def weather() -> str:
    from emulator.bank.settings import ROUGH_FEED
    from emulator.scenario.rules import WEATHER

    rows = []
    for rule in WEATHER["rough"]:
        of = "changes (POST, DELETE)" if "method" in rule["when"] else "all requests"
        then = ", ".join(f"`{effect}: {_in_short(value)}`" for effect, value in rule["then"].items())
        rows.append((rule["name"].removeprefix("weather: "), f"{rule['times']['chance']:.0%} of {of}", then))
    for effect in ROUGH_FEED:
        of = "pending transactions"
        rows.append(("new id", f"{effect['chance']:.0%} of {of}", f"`feed: [{{effect: {effect['effect']}}}]`"))
    return _table(("What", "How often", "Effect"), rows)


def checks() -> str:
    from emulator.conformance.check import GROUPS, ready

    blocks = []
    for group in GROUPS:
        blocks.append(f"## {group.capitalize()}")
        for check in ready():
            if check.group != group:
                continue
            for_whom = {"any": "every TPP", "AISP": "an AISP", "PISP": "a PISP"}[check.role]
            rule = f"[the rule](../{check.spec.replace('#', '.md#')})"
            blocks.append(
                f"### {check.check}\n\n{check.about}\n\n"
                f"A {check.level}, for {for_whom}; see {rule}.\n\n"
                f"- What banks do: {check.practice.strip()}\n"
                f"- What a good TPP does: {check.advice.strip()}\n"
                f"- What the plan arms: {_armed(check)}"
            )
    return "\n\n".join(blocks)


def _armed(check: Check) -> str:
    arm = check.arm
    parts = [f"the task `{arm.task}`"]
    if arm.psu != "approve":
        parts.append(f"a customer who does `{arm.psu}`")
    if arm.context != "PRIVATE":
        parts.append("a corporate customer")
    if arm.transactions:
        parts.append(f"{arm.transactions} more transactions")
    parts += [f"the setting `{name}`" for name in arm.settings]
    parts += [f"a rule with `{', '.join(rule['then'])}`" for rule in arm.rules]
    if arm.clock:
        parts.append("bank time and the customer's presence")
    return ", ".join(parts)


def facts() -> str:
    from emulator.conformance.facts import EVENT_FACTS, FACTS

    rows = [*((f"`{name}`", fact.about) for name, fact in FACTS.items())]
    rows += [(f"`{name}`", about) for name, about in EVENT_FACTS.items()]
    rows.append(("`header.X`, `query.X`", "a header, a parameter of the query"))
    return _table(("Fact", "What it is"), rows)


def commands() -> str:
    from emulator.cli.main import group

    rows = []
    for name, command in group.commands.items():
        nested = "|".join(sorted(getattr(command, "commands", {})))
        rows.append((f"`{name} {nested}`".replace(" `", "`"), (command.help or "").strip().splitlines()[0]))
    return _table(("Command", "What it does"), rows)


def example(name: str) -> str:
    """A program of tests/examples, whole."""
    file = EXAMPLES / name
    return f"```{_LANGUAGES[file.suffix]}\n{file.read_text().rstrip()}\n```"


def faults() -> str:
    """The kinds of fault of `conformance explore`."""
    from emulator.explore.faults import kinds

    rows = ((f"`{kind.name}`", kind.summary, _value(kind.example)) for kind in kinds().values())
    return _table(("Fault", "What happens", "Its members, for example"), rows)


def metrics() -> str:
    from emulator.metrics.page import METRICS

    rows = (
        (f"`{one.full_name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.about) for one in METRICS
    )
    return _table(("Metric", "Kind", "Labels", "What it is"), rows)


def agent_tools() -> str:
    """The tools of `bank-emulator mcp`."""
    from emulator.agents.tools import TABLE, Tools

    rows = []
    for name, effect in TABLE.items():
        about = (getattr(Tools, name).__doc__ or "").split("\n\n")[0]
        rows.append((f"`{name}`", " ".join(about.split()), effect))
    return _table(("Tool", "What it is for", "To the bank"), rows)


def agent_journey() -> str:
    """What an agent asks and is told, from no bank to the fault of a client."""
    from tests.agents.journey import markdown

    return markdown()


SECTIONS: dict[str, Callable[[], str]] = {
    "flags": flags,
    "operations": operations,
    "headers": headers,
    "errors": errors,
    "products": products,
    "currencies": currencies,
    "countries": countries,
    "transitions": transitions,
    "settings": settings,
    "effects": effects,
    "steps": steps,
    "control": control,
    "packages": packages,
    "speed": speed,
    "scenarios": scenarios,
    "commands": commands,
    "checks": checks,
    "weather": weather,
    "facts": facts,
    "faults": faults,
    "metrics": metrics,
    "agent tools": agent_tools,
    "agent journey": agent_journey,
    **{f"example {file.name}": (lambda name=file.name: example(name)) for file in sorted(EXAMPLES.glob("[!c]*.*"))},
}
PICTURES: dict[str, Callable[[], str]] = {
    "speed.svg": lambda: chart(json.loads(BENCH.read_text())["rows"]),
    "packages.svg": lambda: packages_picture(ROOT / "pyproject.toml", lambda package: about(SOURCE / package)),
    "statuses.svg": statuses_picture,
}
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[^>]+?) -->\n).*?(<!-- end: (?P=name) -->)", re.DOTALL)


def texts() -> list[Path]:
    """The README and every page of the manual."""
    return [README, *sorted(manual.FOLDER.rglob("*.md"))]


def renewed(text: str) -> str:
    """`text` with every generated block replaced."""
    return _BLOCK.sub(lambda block: f"{block[1]}{SECTIONS[block['name']]()}\n{block[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, metavar="FILE", help="record this run, such as .bench/results.json")
    asked = parser.parse_args()
    if asked.bench is not None:
        BENCH.write_text(asked.bench.read_text())
    for name, draw in PICTURES.items():
        (manual.IMAGES / name).write_text(draw())
    for file in texts():
        before = file.read_text()
        after = renewed(before)
        if after != before:
            file.write_text(after)
    for file, schema in {"scenarios/scenario": scenario_schema(), "fixtures/fixture": fixture_schema()}.items():
        (ROOT / f"{file}.schema.json").write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
