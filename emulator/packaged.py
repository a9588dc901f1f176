"""Where fixtures and scenarios with a name are: those that come with the program, and those of a team's own folder.

The folder belongs to the process, as names are read where no bank is known: by the command line, by a file's checks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

Name = Literal["fixtures", "scenarios"]
NAMES: tuple[Name, ...] = ("fixtures", "scenarios")

_own: list[Path] = []  # the folder of --data, if there is one


@cache
def folder(name: Name) -> Path:
    """The folder of ready files: inside the package when installed, at the top of a checkout otherwise."""
    package = Path(__file__).parent
    installed = package / "data" / name
    return installed if installed.is_dir() else package.parent / name


def use(data: Path | None) -> None:
    """Offer the files in `fixtures` and `scenarios` of this folder too; None: the ready ones alone."""
    _own[:] = [] if data is None else [data.absolute()]


def own(name: Name) -> dict[str, Path]:
    """The files of the team's own folder, by name."""
    return {path.stem: path for path in _in(_own[0] / name)} if _own else {}


def same_names(data: Path) -> list[tuple[Path, Path]]:
    """The files of a team's own folder that have the same name, but for how they end."""
    there = [path for name in NAMES for path in _in(data / name) if path.suffix == ".yaml"]
    return [(path, other) for path in there if (other := twin(path)) is not None]


def twin(path: Path) -> Path | None:
    """The other file with the name of this one."""
    other = path.with_suffix(".yaml" if path.suffix == ".yml" else ".yml")
    return other if other.exists() else None


def _in(there: Path) -> list[Path]:
    return sorted(path for path in there.glob("*.y*ml") if path.suffix in (".yaml", ".yml"))


def ready(name: Name, stem: str) -> Path:
    """Where the ready file of this name would be."""
    return folder(name) / f"{stem}.yaml"


def replacing() -> list[Path]:
    """The team's own files that are used in place of ready ones."""
    return [path for name in NAMES for stem, path in own(name).items() if ready(name, stem).is_file()]


def files(name: Name) -> dict[str, Path]:
    """All files by name; of two that have the same name, the team's own."""
    return dict(sorted({**{path.stem: path for path in folder(name).glob("*.yaml")}, **own(name)}.items()))
