"""What the README says of the code is what the code says."""

from __future__ import annotations

import base64
import json
import re
import shlex
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import click
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from emulator.api.operations import table
from emulator.bank.settings import SCHEMAS, TAKES
from emulator.cli.main import COMMANDS, group
from emulator.control.operations import table as control_table
from emulator.scenario import loader
from emulator.scenario.effects import effects
from emulator.scenario.steps import step_kinds
from emulator.settings import FLAGS
from emulator.testing import RunningBank
from tests.docs.chart import chart
from tests.docs.sections import BENCH, CHART, README, SECTIONS, renewed

TEXT = README.read_text()
ROOT = README.parent


def test_the_generated_sections_are_up_to_date() -> None:
    assert renewed(TEXT) == TEXT, "python -m tests.docs.sections writes them anew"


@pytest.mark.parametrize("name", SECTIONS)
def test_every_generated_section_stands_in_the_readme(name: str) -> None:
    assert f"<!-- made: {name} -->" in TEXT
    assert f"<!-- end: {name} -->" in TEXT


def names() -> Iterator[str]:
    yield from (f"`{row.id}`" for row in (*table(), *control_table()))
    yield from (f"`--{flag.name}" for flag in FLAGS)
    yield from (f"`{flag.variable}`" for flag in FLAGS)
    for group_of_names in (TAKES, effects(), step_kinds(), loader.library()):
        yield from (f"`{name}`" for name in group_of_names)
    yield from (f"`{name}" for name in COMMANDS)


@pytest.mark.parametrize("name", list(names()))
def test_nothing_that_has_a_name_is_missing(name: str) -> None:
    shown = name in TEXT or (name.startswith("`--") and f"{name} " in TEXT)
    assert shown, name


@pytest.mark.parametrize("name", TAKES)
def test_of_every_setting_there_stands_what_it_decides(name: str) -> None:
    assert f"{SCHEMAS[name]['description']} |" in TEXT


# The headings of SPEC.md that say what the service does; what each is called there.
SPEC = {
    "1": "the service",
    "2.1": "headers",
    "2.2": "signing basket",
    "2.3": "link",
    "2.4": "straks",
    "2.5": "SEPA",
    "2.6": "amount and currency",
    "2.7": "address",
    "2.8": "creation response",
    "2.9": "transaction details",
    "2.10": "sandbox transaction",
    "3": "states",
    "4.1": "create a basket",
    "4.2": "basket details",
    "4.3": "straks payment",
    "4.4": "SEPA payment",
    "4.5": "transaction details",
    "4.6": "sandbox transactions",
    "4.7": "other operations",
    "5.1": "transport",
    "5.2": "signature",
    "5.3": "PSU and SCA",
    "6": "events",
    "7": "errors",
    "8": "limits",
    "9": "versioning",
}


@pytest.mark.parametrize("section", SPEC)
def test_every_section_of_the_specification_appears(section: str) -> None:
    chapter = TEXT[TEXT.index("## Where each rule stands") :]
    assert f"| {section} |" in chapter[: chapter.index("\n## ")]


def shown_files() -> set[str]:
    """Targets of relative links and images."""
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", TEXT)
    return {target for target in found if "://" not in target}


@pytest.mark.parametrize("target", sorted(shown_files()))
def test_a_relative_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_every_code_path_that_is_named_exists() -> None:
    for named in re.findall(r"`((?:emulator|tests|fixtures|scenarios|\.ci|\.docker)/[A-Za-z0-9_./-]+)`", TEXT):
        assert (ROOT / named).exists(), named


def anchors() -> set[str]:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("anchor", sorted(set(re.findall(r"\]\(#([^)]+)\)", TEXT))))
def test_a_link_within_the_readme_leads_to_a_heading(anchor: str) -> None:
    assert anchor in anchors()


def shown_commands() -> list[str]:
    """Every `bank-emulator ...` of the README: in code blocks, where a line may go on, and in the running text."""
    joined = TEXT.replace("\\\n", " ")
    blocks = re.findall(r"^ {4,}(.*bank-emulator .*)$", joined, re.MULTILINE)
    inline = re.findall(r"`(bank-emulator [^`]+)`", joined)
    found = []
    for line in [*blocks, *inline]:
        for part in re.findall(r"(?<![\w./:-])bank-emulator ((?:[^&|;>#)]|\\.)+)", line):
            found.append(part.strip())
    return sorted(set(found))


@pytest.mark.parametrize("line", shown_commands())
def test_a_shown_command_is_one_that_exists(line: str) -> None:
    words = [word for word in shlex.split(line) if word != "..."]
    context = click.Context(group, info_name="bank-emulator")
    command: click.Command = group
    while isinstance(command, click.Group) and words:
        assert words[0] in command.list_commands(context), words
        found = command.get_command(context, words[0])
        assert found is not None
        context, command, words = click.Context(found, parent=context, info_name=words[0]), found, words[1:]
    if any(word.startswith("-") for word in words) or words:
        command.make_context(context.info_name or "", words, resilient_parsing=False)


def test_the_examples_have_commands_to_check() -> None:
    assert len(shown_commands()) > 20


def test_the_chart_is_that_of_the_recorded_run() -> None:
    assert CHART.read_text() == chart(json.loads(BENCH.read_text())["rows"])


def test_pictures_stay_small() -> None:
    for picture in (Path(__file__).parent / "images").glob("*"):
        assert picture.stat().st_size < 150_000, picture.name


def test_the_bars_of_the_chart_are_ratios_with_their_goals() -> None:
    row = {"section": "s", "name": "a & b", "value": 0.5, "unit": "x", "at_least": 0.25, "at_most": None}
    drawn = chart([row, {**row, "name": "seconds", "unit": "s"}])
    assert "a &amp; b" in drawn
    assert "seconds" not in drawn
    assert drawn.count("<line") == 1


def test_a_very_long_bar_of_the_chart_leaves_the_others_their_length() -> None:
    row = {"section": "s", "name": "a", "value": 0.5, "unit": "x", "at_least": None, "at_most": None}
    bar = re.compile(r'<rect x=.* width="([0-9.]+)"')
    alone, beside = bar.findall(chart([row])), bar.findall(chart([row, {**row, "value": 300.0, "at_most": 10.0}]))
    assert beside[0] == alone[0]
    assert float(beside[1]) > float(beside[0])
    assert "300.00 →" in chart([{**row, "value": 300.0}])


def block(start: str) -> str:
    """The indented block of the README that begins with `start`, without its indentation."""
    lines = TEXT.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip().startswith(start))
    depth = len(lines[first]) - len(lines[first].lstrip())
    found = []
    for line in lines[first:]:
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            break
        found.append(line[depth:])
    return "\n".join(found).strip() + "\n"


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
    told = {"PSU-IP-Address": "192.0.2.1", **names["headers"]}
    request = urllib.request.Request(f"{bank.url}/v1/accounts", headers=told)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 401  # signed well; the customer is not known
    exec(block("from emulator.client import Identity").replace("http://127.0.0.1:8080", bank.url), {})
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


def test_the_shown_payment_is_accepted(bank: RunningBank) -> None:
    text = block("$ curl http://127.0.0.1:9090/v1/payments/")
    body = re.search(r"-d '(.*?)'", text, re.DOTALL)
    assert body is not None
    path = re.search(r"9090(/v1/\S+)", text)
    assert path is not None
    assert bank.tpp().log_in().post(path[1], body=body[1]).status == 201
