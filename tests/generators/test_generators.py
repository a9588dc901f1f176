"""What linters and generators of other languages make of the OpenAPI documents, and one journey with what they made.

They are long: making one client takes as long as a hundred other tests. In every run tests/api/test_openapi.py and
tests/api/test_berlin_group.py validate the same documents and answers.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from emulator.api.description.openapi import published
from emulator.control.operations import document as control_document
from tests.api.berlin_group import OBJECTS, openapi
from tests.e2e.process import Served, served
from tests.generators.tools import JAVA, generator, npm_tool, run
from tests.tools import tool
from tests.warm import Command

HERE = Path(__file__).parent
BASE = "http://127.0.0.1:8080"
DOCUMENTS: dict[str, Any] = {
    "tpp": published,
    "by-proxy": lambda: published(signed="by-proxy"),
    "control": lambda: control_document(BASE),
    # with the two changes that the manual names
    "berlin-group": lambda: openapi(
        "1.3.12",
        transaction=OBJECTS["transaction"].replace("currencyExchange:[rate]", "currencyExchange:rate"),
        transactionDetails="transactionsDetails!:transaction",
    ),
}
LINTED = ("tpp", "control")  # what a proxy is sent is a part of the first


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents as files, and the rules of the linters."""
    folder = tmp_path_factory.mktemp("documents")
    for name, make in DOCUMENTS.items():
        (folder / f"{name}.json").write_text(json.dumps(make()))
    (folder / "redocly.yaml").write_text("extends: [recommended]\n")
    (folder / "spectral.yaml").write_text('extends: ["spectral:oas"]\n')
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", LINTED)
def test_redocly_and_spectral_find_no_error(folder: Path, name: str) -> None:
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    linted = run(npm_tool("redocly"), "lint", f"{name}.json", "--config", "redocly.yaml", cwd=folder, **quiet)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    flags = ("--ruleset", "spectral.yaml", "--fail-severity", "error", "--display-only-failures")
    linted = run(npm_tool("spectral"), "lint", f"{name}.json", *flags, cwd=folder)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", LINTED)
def test_the_types_that_openapi_typescript_makes_are_strict(folder: Path, name: str) -> None:
    generated = run(npm_tool("openapi-typescript"), f"{name}.json", "--output", f"{name}.ts", cwd=folder)
    assert generated.returncode == 0, generated.stderr
    checked = run(npm_tool("tsc"), "--strict", "--noEmit", f"{name}.ts", cwd=folder)
    assert checked.returncode == 0, checked.stdout


def client_of(folder: Path, name: str, language: str) -> Path:
    """The client that OpenAPI Generator makes of a document."""
    target = folder / f"{name}-{language}"
    if not target.exists():
        command = (*JAVA, "-jar", generator(), "generate", "-i", f"{name}.json", "-g", language, "-o", target)
        generated = run(*command, cwd=folder)
        assert generated.returncode == 0, generated.stdout + generated.stderr
        assert "ERROR" not in generated.stdout, generated.stdout
    return target


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "typescript-fetch", "java", "csharp", "go"])
def test_openapi_generator_makes_a_client_of_the_signed_interface(folder: Path, language: str) -> None:
    assert any(client_of(folder, "tpp", language).iterdir())


@contextmanager
def proxy(bank: Served, *more: str) -> Iterator[str]:
    """A running signing proxy; its address."""
    line = ("proxy", "--state", str(bank.state), "--quiet", "--port", "0", "--to", bank.url, *more)
    process = Command(*line, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("READY ").strip()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        reset = run(tool("curl"), "-sf", "-X", "PUT", f"{running.url}/_emulator/clock", "--json", '{"mode": "frozen"}')
        assert reset.returncode == 0, reset.stderr
        yield running


@pytest.mark.long
def test_a_payment_is_made_with_the_generated_python_client(folder: Path, bank: Served) -> None:
    client = client_of(folder, "by-proxy", "python")
    with proxy(bank) as address:
        went = run(sys.executable, HERE / "journey.py", address, bank.url, PYTHONPATH=str(client))
    assert (went.stdout.strip(), went.returncode) == ("ACSC", 0), went.stderr


@pytest.mark.long
def test_a_payment_is_made_with_the_generated_typescript_client(folder: Path, bank: Served) -> None:
    client = client_of(folder, "by-proxy", "typescript-fetch")
    flags = ("--strict", "--target", "es2020", "--lib", "es2020,dom", "--module", "commonjs")
    compiled = run(npm_tool("tsc"), *flags, "--outDir", client / "built", client / "index.ts", cwd=folder)
    assert compiled.returncode == 0, compiled.stdout
    with proxy(bank) as address:
        went = run(tool("node"), HERE / "journey.cjs", client / "built", address, bank.url)
    assert (went.stdout.strip(), went.returncode) == ("ACSC", 0), went.stderr


@pytest.mark.long
def test_a_berlin_group_client_reads_accounts_cards_and_payments(folder: Path, bank: Served) -> None:
    client = client_of(folder, "berlin-group", "python")
    with proxy(bank, "--login", "14888520059") as address:
        went = run(sys.executable, HERE / "journey_berlin_group.py", address, PYTHONPATH=str(client))
    assert went.returncode == 0, went.stderr
    read = json.loads(went.stdout)
    assert (read["accounts"], read["cards"], read["status"]) == (2, 1, "RCVD")
    assert read["transactions"] > 50
    assert read["abroad"] > 0  # with a currency exchange
