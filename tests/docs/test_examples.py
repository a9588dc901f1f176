"""The examples of the README and the manual run as they stand, each from an empty folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from emulator import manual
from tests import warm
from tests.docs.sections import README, texts
from tests.e2e.process import ALONE, pytest_in, served
from tests.ports import free_port

INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
HOW_TO, TUTORIALS = manual.FOLDER / "how-to", manual.FOLDER / "tutorials"

# Commands that take another machine, or the program of the reader.
ELSEWHERE = re.compile(r"make run|^\. \.venv|npx |bank-emulator serve|curl -v \.\.\.|conformance run |^pytest ")


def blocks(text: str) -> list[str]:
    """The indented blocks, without their indentation; those of fenced programs left out."""
    shown = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    unindented = []
    for block in INDENTED.findall(shown):
        lines = block.strip("\n").splitlines()
        depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        unindented.append("\n".join(line[depth:] for line in lines))
    return [block for block in unindented if block]


def test_every_test_that_is_shown_passes(tmp_path: Path) -> None:
    shown = [block for file in texts() for block in blocks(file.read_text()) if re.search(r"^def test_", block, re.M)]
    assert len(shown) > 5
    for number, block in enumerate(shown):
        (tmp_path / f"test_{number}.py").write_text(block)
    ended = pytest_in(tmp_path, "--bank-audit", "audit.json")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def environment(**more: str) -> dict[str, str]:
    """That of a shell in which the emulator is installed."""
    path = (warm.folder(), str(Path(sys.executable).parent), os.environ["PATH"])
    return {**os.environ, **ALONE, "PATH": ":".join(path), **more}


def commands(text: str) -> Iterator[str]:
    """The commands after a `$ `, each to the end of its last line."""
    for block in blocks(text):
        lines = iter(block.splitlines())
        for line in lines:
            if not line.startswith("$ "):
                continue
            command = line.removeprefix("$ ")
            while command.endswith("\\") or not _is_whole(command):
                command += "\n" + next(lines)
            if not ELSEWHERE.search(command):
                yield command


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def walked(folder: Path, *files: Path) -> str:
    """What the commands of these texts print, run by one shell in a folder where a bank has been started."""
    proxy = free_port()
    (folder / "my-failure.yaml").write_text(next(b for b in blocks(README.read_text()) if b.startswith("scenario: ")))
    with served(folder / ".bank-emulator", "--allow-notify", "127.0.0.1:9000") as bank:
        lines = ["set -eo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
        for file in files:
            for command in commands(file.read_text()):
                there = command.replace("127.0.0.1:8080", bank.url.removeprefix("http://"))
                there = there.replace("127.0.0.1:9090", f"127.0.0.1:{proxy}").replace("9090", str(proxy))
                there = there.replace("-per-account 500", "-per-account 5")  # the same, sooner
                lines += [f"echo; echo {shlex.quote('$ ' + command.splitlines()[0])}", there]
                if there.endswith("&"):
                    lines.append(
                        f"curl -s --retry 50 --retry-connrefused --retry-delay 0 http://127.0.0.1:{proxy}/ready"
                    )
        ended = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=folder,
            env=environment(BANK_EMULATOR_URL=bank.url),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
    printed = ended.stdout + ended.stderr
    assert ended.returncode == 0, printed
    return printed


def errors(printed: str) -> list[str]:
    """The codes of the errors in what was printed."""
    return re.findall(r'"category": ?"ERROR",\s*"code": ?"(\w+)"', printed)


def test_the_commands_of_the_readme_are_those_of_the_first_tutorial() -> None:
    tutorial = list(commands((TUTORIALS / "first-payment.md").read_text()))
    assert list(commands(README.read_text())) == tutorial[:6]


def test_the_commands_of_the_tutorials_lead_to_a_repeated_payment(tmp_path: Path) -> None:
    printed = walked(tmp_path, TUTORIALS / "first-payment.md", TUTORIALS / "first-failure.md")
    assert errors(printed) == ["SCA_NOT_FOUND", "SCA_NOT_FOUND", "SYSTEM_ERROR"]
    by_command = dict(zip(*[iter(re.split(r"^\$ (.*)$", printed, flags=re.MULTILINE)[1:])] * 2, strict=True))
    approved = by_command['curl "$(bank-emulator sca approve latest --national-id 14888520059)"']
    assert "The proxy now sends the customer" in approved
    assert by_command["curl 'http://127.0.0.1:9090/v1/accounts?withBalance=true'"].count('"resourceId"') == 2
    assert "psu-id=" in by_command["bank-emulator sca approve latest"]
    assert "NO8599901000014" in by_command["bank-emulator ledger"]
    assert by_command["bank-emulator payments list"].count("12.50 EUR") == 2


def test_the_commands_of_the_guides_can_be_given_one_after_another(tmp_path: Path) -> None:
    names = ("rest-clients", "prepare-data", "judge-your-client", "several-banks", "receive-notifications", "metrics")
    more = ("find-signature-errors", "script-failures", "make-a-feed-drift", "rough-weather")
    printed = walked(tmp_path, *(HOW_TO / f"{name}.md" for name in (*names, *more)))
    assert set(errors(printed)) == {"SCA_NOT_FOUND"}
    assert "ASPSP-Notification-Support: true" in printed
    assert 'bank_emulator_requests_total{bank="default",operation="createPayment",status="201"}' in printed
    assert json.loads((tmp_path / "dashboard.json").read_text())["panels"]


def test_the_script_that_reads_the_environment_finds_the_bank(tmp_path: Path) -> None:
    text = (HOW_TO / "start-from-scripts.md").read_text()
    (script,) = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    run = ["sh", "-ec", script]
    ended = subprocess.run(
        run, cwd=tmp_path, env=environment(), check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert '"status":"READY"' in ended.stdout
    assert errors(ended.stdout) == ["SCA_NOT_FOUND"]


def test_the_script_for_ci_approves_a_payment(tmp_path: Path) -> None:
    (script,) = [block for block in blocks(README.read_text()) if block.startswith("bank-emulator serve --port 8080")]
    port = str(free_port())
    run = ["bash", "-c", f"set -eo pipefail; trap 'kill $(jobs -p)' EXIT\n{script.replace('8080', port)}"]
    shell = environment(BANK_EMULATOR_URL=f"http://127.0.0.1:{port}")
    ended = subprocess.run(run, cwd=tmp_path, env=shell, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert errors(ended.stdout) == []
    assert '"redirect":"https://' in ended.stdout
