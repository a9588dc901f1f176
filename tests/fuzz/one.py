"""Fuzz one reader in this process: `one.py NAME FOLDER SECONDS`. Ends with another status than 0 on a finding."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["emulator"]):
    from tests.fuzz.readers import READERS
    from tests.fuzz.seeds import seeds


def main() -> None:
    name, corpus, seconds = sys.argv[1:]
    for number, seed in enumerate(seeds(name)):
        (Path(corpus) / f"seed-{number}").write_bytes(seed)
    prefix = f"-artifact_prefix={Path(corpus).parent / name}-"
    atheris.Setup([sys.argv[0], corpus, f"-max_total_time={seconds}", "-timeout=60", prefix], READERS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
