"""`make bench`: every section, a table on stdout, and the same as JSON.

A section is a module in tests/bench/sections with `measure(rounds, requests) -> Iterator[Row]`; found by its folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tests.bench.harness import CORES, Row

RESULTS = Path(".bench") / "results.json"


def sections() -> list[str]:
    """The names of all sections, in the order of their files."""
    return [module.name for module in iter_modules([str(Path(__file__).parent / "sections")])]


def show(rows: Iterable[Row]) -> None:
    for row in rows:
        goal = f"at least {row.at_least:g}" if row.at_least is not None else ""
        goal = f"at most {row.at_most:g}" if row.at_most is not None else goal
        verdict = {True: "ok", False: "MISSED", None: ""}[row.good]
        print(f"{row.section:<12} {row.name:<56} {row.value:>11,.2f} {row.unit:<6} {goal:<14} {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"sections to run: {', '.join(sections())} (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=3000, help="per round")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(sections()):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    if len(CORES) < 2:
        print("One core only: server and load share it, the ratios say little.", file=sys.stderr)
    rows: list[Row] = []
    for name in asked.names or sections():
        measured = list(import_module(f"tests.bench.sections.{name}").measure(asked.rounds, asked.requests))
        show(measured)
        rows += measured
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": len(CORES)}
    asked.output.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    print(f"Written to {asked.output}.")
    return 1 if any(row.good is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
