"""What the README and the manual show is what the program does: commands, scenarios, requests, Python."""

from __future__ import annotations

import base64
import re
import shlex
import urllib.error
import urllib.request
from email.utils import formatdate
from pathlib import Path
from typing import Any

import click
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from emulator import manual
from emulator.cli.main import group
from emulator.scenario import loader
from emulator.testing import RunningBank
from tests.docs.sections import README, texts

TEXT = README.read_text()


def shown_commands() -> list[str]:
    """Every `bank-emulator ...` that is shown: in code blocks, where a line may go on, and in the running text."""
    commands = []
    for file in texts():
        joined = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.MULTILINE | re.DOTALL).replace("\\\n", " ")
        blocks = re.findall(r"^ {4,}(.*bank-emulator .*)$", joined, re.MULTILINE)
        inline = [" ".join(text.split()) for text in re.findall(r"`(bank-emulator\s[^`]+)`", joined)]
        for line in [*blocks, *inline]:
            for part in re.findall(r"(?<![\w./:-])bank-emulator ((?:[^&|;>#)]|\\.)+)", line):
                commands.append(part.strip())
    return sorted({part for part in commands if not part.startswith("COMMAND")})


def test_a_shown_command_is_one_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team-data" / "fixtures").mkdir(parents=True)
    assert len(shown_commands()) > 20
    wrong = {}
    for line in shown_commands():
        try:
            parse([word for word in shlex.split(line) if word != "..."])
        except click.ClickException as error:
            wrong[line] = error.message
    assert wrong == {}


def parse(words: list[str]) -> None:
    """Read the words of a command; a click.ClickException if there is none such."""
    context = click.Context(group, info_name="bank-emulator")
    command: click.Command = group
    while isinstance(command, click.Group) and words:
        name, subcommand, words = command.resolve_command(context, words)
        assert subcommand is not None
        context, command = click.Context(subcommand, parent=context, info_name=name), subcommand
    if words:
        command.make_context(context.info_name or "", words, resilient_parsing=False)


def block(start: str, text: str = TEXT) -> str:
    """The indented block of a text that begins with `start`, without its indentation."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip().startswith(start))
    depth = len(lines[first]) - len(lines[first].lstrip())
    blocks = []
    for line in lines[first:]:
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            break
        blocks.append(line[depth:])
    return "\n".join(blocks).strip() + "\n"


def test_the_shown_scenario_is_one_that_the_loader_reads() -> None:
    scenario = loader.from_text(block("scenario: my-failure"), "README.md")
    assert (scenario.name, len(scenario.rules)) == ("my-failure", 1)


def test_a_request_that_is_repeated_is_safe_under_the_shown_scenario(bank: RunningBank) -> None:
    bank.apply(dict(loader.from_text(block("scenario: my-failure"), "README.md").source))
    payment = re.search(r"9090(/v1/payments\S+).*?-d '(.*?)'", TEXT, re.DOTALL)
    assert payment is not None
    tpp = bank.tpp().log_in()
    assert tpp.post(payment[1], body=payment[2]).status == 201
    second = tpp.prepare("POST", payment[1], body=payment[2])
    with pytest.raises(ConnectionError):
        tpp.send(second)
    assert tpp.send(second).status == 201
    assert len(bank.payments()) == 2


def test_the_shown_python_signs_what_the_bank_accepts(
    bank: RunningBank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tpp = bank.tpp(name="demo")
    folder = tmp_path / ".bank-emulator" / "tpps" / "demo"  # where a start has put them
    folder.mkdir(parents=True)
    (folder / "certificate.pem").write_bytes(tpp.identity.certificate.public_bytes(Encoding.PEM))
    key = tpp.identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block("from emulator.client import sign"), names)
    sent = {"PSU-IP-Address": "192.0.2.1", **names["headers"]}
    request = urllib.request.Request(f"{bank.url}/v1/accounts", headers=sent)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 401  # signed well; the customer is not known
    guide = (manual.FOLDER / "how-to" / "sign-python.md").read_text()
    exec(block("from emulator.client import Identity", guide).replace("http://127.0.0.1:8080", bank.url), {})
    assert capsys.readouterr().out.startswith(f"{bank.url}/sca/")


def test_the_shown_request_is_accepted_when_its_lines_are_signed(bank: RunningBank) -> None:
    """With a date and a certificate of today, and the long values that the README cuts."""
    demo = bank.tpp(name="demo").identity
    der = base64.b64encode(demo.certificate.public_bytes(Encoding.DER)).decode()
    today = formatdate(usegmt=True)
    lines = re.sub(r"(?<=date: ).*", today, block("(request-target): get /v1/accounts").strip())
    value = base64.b64encode(demo.key.sign(lines.encode(), PKCS1v15(), SHA256())).decode()
    head = block("GET /v1/accounts HTTP/1.1").splitlines()
    sent = dict(line.split(": ", 1) for line in head[2:])  # Host is the test's own
    sent |= {"Date": today, "TPP-Signature-Certificate": der}
    sent["Signature"] = re.sub(r"SN=\w+\.\.\.", f"SN={demo.certificate.serial_number:X}", sent["Signature"])
    sent["Signature"] = re.sub(r'signature="[^"]*"', f'signature="{value}"', sent["Signature"])
    method, path, _ = head[0].split()
    request = urllib.request.Request(bank.url + path, headers=sent, method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 401, refused.value.read()  # signed well; the customer is not known
