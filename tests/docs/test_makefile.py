"""What `make run` would do with the environment it finds, and what it passes on; nothing is run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout, in a folder with a blank, whose environment is complete."""
    place = tmp_path / "a checkout"
    scripts = place / ".venv" / "bin"
    scripts.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copyfile(ROOT / name, place / name)
    (scripts / "python").symlink_to("/bin/sh")
    (scripts / "activate").write_text(f"VIRTUAL_ENV='{place}/.venv'\n")
    (place / ".venv" / "installed").touch()
    return place


def planned(checkout: Path, *variables: str) -> list[str]:
    dry_run = subprocess.run(
        ["make", "-n", "run", *variables], cwd=checkout, capture_output=True, text=True, check=True
    )
    return [step for step in ("-m venv", "-m pip", "serve") if step in dry_run.stdout]


def test_a_complete_environment_is_used_as_it_is(checkout: Path) -> None:
    assert planned(checkout) == ["serve"]


def test_a_complete_environment_elsewhere_is_used_too(checkout: Path, tmp_path: Path) -> None:
    elsewhere = (checkout / ".venv").rename(tmp_path / "elsewhere")
    (elsewhere / "bin" / "activate").write_text(f"VIRTUAL_ENV='{elsewhere}'\n")
    (elsewhere / "installed").touch()
    assert planned(checkout, f"VENV={elsewhere}") == ["serve"]


def test_an_environment_that_is_missing_moved_or_broken_is_made_anew(checkout: Path) -> None:
    scripts = checkout / ".venv" / "bin"
    (scripts / "python").rename(scripts / "gone")
    (scripts / "python").symlink_to(checkout / "nowhere")
    assert planned(checkout) == ["-m venv", "-m pip", "serve"]
    (scripts / "gone").replace(scripts / "python")
    checkout = checkout.rename(checkout.with_name("moved"))
    assert planned(checkout) == ["-m venv", "-m pip", "serve"]
    shutil.rmtree(checkout / ".venv")
    assert planned(checkout) == ["-m venv", "-m pip", "serve"]


def test_compiled_modules_are_stored_whatever_the_shell_says(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    show = ["make", "--silent", "--eval", 'show: ; @echo "[$$PYTHONDONTWRITEBYTECODE]"', "show"]
    assert subprocess.run(show, cwd=checkout, capture_output=True, text=True, check=True).stdout == "[]\n"
