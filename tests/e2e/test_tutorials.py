"""The tutorials, typed as a reader would type them: every command of theirs in bash, against a real bank."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator import manual
from tests.e2e.process import served
from tests.tools import tool

BESIDE = ("make run", ". .venv/bin/activate", "bank-emulator proxy")  # what the test has started in another way


@dataclass
class Reader:
    """Somebody with a running bank and proxy who types what a page says."""

    bank: str
    proxy: str
    folder: Path

    def types(self, command: str) -> str:
        """What bash prints for a command."""
        command = command.replace("http://127.0.0.1:8080", self.bank).replace("http://127.0.0.1:9090", self.proxy)
        environment = {**os.environ, "BANK_EMULATOR_URL": self.bank, "BANK_EMULATOR_STATE": str(self.folder / "state")}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60
        )
        return done.stdout + done.stderr

    def follows(self, text: str) -> list[str]:
        """Type every command of a text in order; what was printed for each."""
        return [self.types(command) for command in commands(text) if not command.startswith(BESIDE)]


def commands(text: str) -> Iterator[str]:
    """Every line that begins with `$`, with those that it goes on in: after a backslash, or inside quotes."""
    whole = ""
    for line in text.splitlines():
        if not whole and not line.strip().startswith("$ "):
            continue
        whole = f"{whole}\n{line.strip()}" if whole else line.strip().removeprefix("$ ")
        if whole.count("'") % 2 == 0 and not whole.endswith("\\"):
            yield whole
            whole = ""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    tool("curl")
    state = tmp_path / "state"
    with served(state, "--ephemeral") as bank:
        command = [sys.executable, "-m", "emulator", "proxy", "--quiet", "--url", bank.url, "--state", str(state)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield Reader(bank.url, process.stdout.readline().removeprefix("READY ").strip(), tmp_path)
        finally:
            process.kill()
            process.communicate()


def chapter(text: str, heading: str) -> str:
    """The text below a heading up to the next one of the same kind."""
    return text[text.index(f"## {heading}") :].split("\n## ")[0]


def test_the_first_payment_of_the_tutorial_is_paid(reader: Reader) -> None:
    printed = reader.follows(manual.pages()["tutorials/first-payment"].text)
    assert "SCA_NOT_FOUND" in printed[0]
    assert "scaRedirect" in printed[1]
    assert "The proxy now sends the customer" in printed[2]
    assert printed[3].count('"resourceId"') == 2
    assert '"transactionStatus":"RCVD"' in printed[4]
    assert "psu-id=" in printed[5]
    assert "NO8599901000014" in printed[6]


def test_the_first_payment_of_the_readme_is_paid(reader: Reader) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    printed = reader.follows(chapter(readme, "First signed request") + chapter(readme, "First payment"))
    assert "SCA_NOT_FOUND" in printed[0]
    assert "The proxy now sends the customer" in printed[2]
    assert printed[3].count('"resourceId"') == 2
    assert '"transactionStatus":"RCVD"' in printed[4]


def test_the_first_failure_is_lost_and_repeated(reader: Reader) -> None:
    page = manual.pages()["tutorials/first-failure"].text
    reader.follows(manual.pages()["tutorials/first-payment"].text)
    scenario = chapter(page, "1. ").split("\n\n")[2]
    (reader.folder / "my-failure.yaml").write_text("\n".join(line[4:] for line in scenario.splitlines()) + "\n")
    applied = reader.follows(chapter(page, "2. "))
    assert "my-failure" in applied[1]
    [first] = reader.follows(chapter(page, "3. ").replace("order-2", "order-1"))
    assert '"transactionStatus":"RCVD"' in first
    [lost] = reader.follows(chapter(page, "3. "))
    assert "paymentId" not in lost
    [repeated] = reader.follows(chapter(page, "3. "))
    assert '"transactionStatus":"RCVD"' in repeated
    [listed] = reader.follows(chapter(page, "4. "))
    assert listed.count("12.50") == 2
    reader.follows(chapter(page, "5. "))
    [answered] = reader.follows(chapter(page, "3. ").replace("order-2", "order-4"))
    assert '"transactionStatus":"RCVD"' in answered
