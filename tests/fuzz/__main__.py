"""`make fuzz`: every reader for some time, each in a process of its own; what it finds stays in .fuzz."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.fuzz.readers import READERS

FINDINGS = Path(".fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *READERS], help=f"{', '.join(READERS)} (default: all)")
    parser.add_argument("--seconds", type=int, default=600, help="for each")
    asked = parser.parse_args()
    failed = []
    for name in asked.names or READERS:
        corpus = FINDINGS / name
        corpus.mkdir(parents=True, exist_ok=True)
        line = [sys.executable, "-m", "tests.fuzz.one", name, str(corpus), str(asked.seconds)]
        if subprocess.run(line, check=False).returncode != 0:
            failed.append(name)
    print(f"findings in {', '.join(failed)}: see {FINDINGS}" if failed else "no findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
