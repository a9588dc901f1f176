"""The collections in the runners that people use: newman and Bruno's, through the signing proxy, against a new bank."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.api.description import collection
from tests.e2e.process import served
from tests.tools import tool
from tests.warm import Command

INSTALL_SECONDS, RUN_SECONDS = 300, 120


def npx(package: str) -> list[str]:
    """The command of an npm package, which is installed at its first use; skips the test where that is not possible."""
    command = [tool("npx"), "--yes", "--prefer-offline", package]
    try:
        tried = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm does not bring {package}")
    if tried.returncode != 0:
        pytest.skip(f"npm does not bring {package}: {tried.stderr[-200:]}")
    return command


@contextmanager
def proxied(folder: Path) -> Iterator[str]:
    """The address of a signing proxy before a new bank."""
    state = folder / "state"
    with served(state, "--ephemeral") as bank:
        line = ("proxy", "--quiet", "--url", bank.url, "--state", str(state))
        process = Command(*line, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("READY ").strip()
        finally:
            process.kill()
            process.communicate()


@pytest.mark.long
def test_every_request_is_green_in_newman(tmp_path: Path) -> None:
    command = npx("newman")
    file, report = tmp_path / "bank.json", tmp_path / "report.json"
    with proxied(tmp_path) as address:
        file.write_text(json.dumps(collection.postman(address)))
        done = subprocess.run(
            [*command, "run", str(file), "--reporters", "json", "--reporter-json-export", str(report)],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
    run = json.loads(report.read_text())["run"]
    assert [failure["source"]["name"] for failure in run["failures"]] == []
    assert run["stats"]["assertions"]["total"] == len(collection.requests())
    assert done.returncode == 0


@pytest.mark.long
def test_every_request_is_green_in_brunos_own_runner(tmp_path: Path) -> None:
    command = npx("@usebruno/cli")
    folder, report = tmp_path / "collection", tmp_path / "report.json"
    with proxied(tmp_path) as address:
        for name, text in collection.bruno(address).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        done = subprocess.run(
            [*command, "run", "--env", "proxy", "--reporter-json", str(report)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
    [run] = json.loads(report.read_text())
    red = [result["name"] for result in run["results"] for one in result["assertionResults"] if one["status"] != "pass"]
    assert red == []
    assert run["summary"]["passedAssertions"] == len(collection.requests())
    assert done.returncode == 0
