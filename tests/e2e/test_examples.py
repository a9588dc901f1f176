"""The examples of the manual, for signing and for Playwright, each run as a program against a live bank."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from emulator.client import Identity, TppClient
from emulator.testing import RunningBank, TestTpp
from tests.e2e.process import served
from tests.generators.tools import JAVA, npm_tool
from tests.known_state import KARI, SEPA
from tests.tools import tool

EXAMPLES = Path(__file__).parents[1] / "examples"
PAYMENT = {
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Café Exemple",  # its bytes, not its letters, are what the digest is over
    "creditorAccount": {"iban": "FR8199999000010123456789A00", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
}
BODY = json.dumps(PAYMENT, ensure_ascii=False)

Run = Callable[..., tuple[int, Any]]


def optional(name: str) -> str:
    """The path of a program of a language that not every machine has."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on this machine")
    return program


def pem_files(tpp: TestTpp, folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(tpp.identity.certificate.public_bytes(Encoding.PEM))
    key.write_bytes(tpp.identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


def answered(done: subprocess.CompletedProcess[str]) -> tuple[int, Any]:
    """The status that the program printed last, and the JSON before it."""
    assert done.returncode == 0, done.stderr
    text, _, status = done.stdout.strip().rpartition("\nHTTP ")
    return int(status), json.loads(text)


def by_environment(command: list[str], tpp: TestTpp, folder: Path) -> Run:
    certificate, key = pem_files(tpp, folder)
    environment = {"CERTIFICATE": str(certificate), "KEY": str(key), "PSU_ID": tpp.psu_id or ""}
    environment["SESSION_ID"] = tpp.session_id

    def run(*arguments: str) -> tuple[int, Any]:
        done = subprocess.run(
            [*command, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=180
        )
        return answered(done)

    return run


def python(tpp: TestTpp, folder: Path) -> Run:
    """A GET with requests and a POST with httpx: the library sends what was signed before."""
    certificate, key = pem_files(tpp, folder)
    command = [sys.executable, str(EXAMPLES / "sign_requests.py"), "--certificate", str(certificate), "--key", str(key)]
    command += ["-H", f"PSU-ID: {tpp.psu_id}", "-H", f"TPP-Session-ID: {tpp.session_id}"]

    def run(method: str, url: str, body: str = "") -> tuple[int, Any]:
        line = [*command, "--with", "httpx" if body else "requests", "--body", body, method, url]
        return answered(subprocess.run(line, capture_output=True, text=True, timeout=60))

    return run


def shell(tpp: TestTpp, folder: Path) -> Run:
    for needed in ("curl", "openssl"):
        tool(needed)
    return by_environment([tool("bash"), str(EXAMPLES / "sign.sh")], tpp, folder)


def node(tpp: TestTpp, folder: Path) -> Run:
    return by_environment([tool("node"), str(EXAMPLES / "sign.mjs")], tpp, folder)


def java(tpp: TestTpp, folder: Path) -> Run:
    classes = folder.parent / "classes"  # compiled once for both requests
    if not classes.exists():
        flags = ("-proc:none", *(f"-J{flag}" for flag in JAVA[1:]))
        subprocess.run([tool("javac"), *flags, "-d", str(classes), str(EXAMPLES / "Sign.java")], check=True)
    return by_environment([tool("java"), *JAVA[1:], "-cp", str(classes), "Sign"], tpp, folder)


def go(tpp: TestTpp, folder: Path) -> Run:
    return by_environment([optional("go"), "run", str(EXAMPLES / "sign.go")], tpp, folder)


def php(tpp: TestTpp, folder: Path) -> Run:
    return by_environment([optional("php"), str(EXAMPLES / "sign.php")], tpp, folder)


def dotnet(tpp: TestTpp, folder: Path) -> Run:
    command = optional("dotnet")
    project = folder / "signer"
    project.mkdir(exist_ok=True)
    (project / "Program.cs").write_bytes((EXAMPLES / "Sign.cs").read_bytes())
    (project / "signer.csproj").write_text(PROJECT)
    return by_environment([command, "run", "--project", str(project), "--"], tpp, folder)


def mono(tpp: TestTpp, folder: Path) -> Run:
    compiler, assembly = tool("mcs"), folder.parent / "Sign.exe"  # compiled once for all tests
    if not assembly.exists():
        built = subprocess.run(
            [compiler, "-r:System.Net.Http.dll", f"-out:{assembly}", str(EXAMPLES / "Sign.cs")],
            capture_output=True,
            text=True,
        )
        assert built.returncode == 0, built.stderr
    return by_environment([tool("mono"), str(assembly)], tpp, folder)


PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><Nullable>enable</Nullable>
<TargetFramework>net8.0</TargetFramework><ImplicitUsings>enable</ImplicitUsings></PropertyGroup></Project>"""


@pytest.mark.parametrize("example", [shell, node, java, go, php, dotnet, mono, python])
def test_an_example_signs_a_get_and_a_post_with_unusual_certificates(
    example: Callable[[TestTpp, Path], Run], bank: RunningBank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer = bank.tpp(flaw="special-characters").log_in()
    status, listed = example(customer, tmp_path)("GET", f"{bank.url}/v1/accounts?withBalance=true")
    assert (status, len(listed["accounts"])) == (200, 2)

    payer = bank.tpp(flaw="leading-zero-serial")
    if example is python:
        payer.log_in()
    else:
        monkeypatch.setenv("PSU_IDENTITY", KARI)
    status, created = example(payer, tmp_path)("POST", f"{bank.url}{SEPA}", BODY)
    assert (status, created["transactionStatus"]) == (201, "RCVD")

    exchanges = bank.requests()
    assert [exchange["status"] for exchange in exchanges] == [201, 200]
    for exchange in exchanges:
        assert_signed_by_the_rules(exchange)
    sent = {name for name, _ in exchanges[0]["request"]["headers"]}
    assert ("PSU-ID" in sent) == (payer.psu_id is not None), "without one the payment names its customer"


def assert_signed_by_the_rules(exchange: dict[str, Any]) -> None:
    """As the rules have it, not merely as the bank lets pass; but RFC 2253 has no word for organizationIdentifier."""
    assert [note for note in exchange["signature"]["notes"] if "organizationIdentifier" not in note] == []
    sent = {name.lower(): value for name, value in exchange["request"]["headers"]}
    assert "(request-target) date" in exchange_headers(exchange)
    assert ("digest" in sent) == (exchange["status"] == 201)


def exchange_headers(exchange: dict[str, Any]) -> str:
    """The signed names as the log keeps them."""
    return " ".join(line.partition(": ")[0] for line in exchange["signature"]["signingString"].splitlines())


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "sign.sh"],
        ["node", "sign.mjs"],
        pytest.param([*JAVA, "Sign.java"], marks=pytest.mark.long),
        ["go", "run", "sign.go"],
        ["php", "sign.php"],
    ],
)
def test_an_example_without_arguments_says_how_it_is_called(command: list[str]) -> None:
    name, *rest = [optional(command[0]), *command[1:-1], str(EXAMPLES / command[-1])]
    environment = {name: value for name, value in os.environ.items() if name not in ("CERTIFICATE", "KEY")}
    done = subprocess.run([name, *rest], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode != 0
    assert done.stderr.startswith("Usage: CERTIFICATE=certificate.pem KEY=key.pem ")


CONFIGURATION = """
export default { use: { launchOptions: { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] } } };
"""


@pytest.mark.long
@pytest.mark.browser
def test_a_customer_shares_accounts_in_playwright(tmp_path: Path) -> None:
    """In the Chromium of this machine."""
    playwright = npm_tool("playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    shutil.copy(EXAMPLES / "approve.spec.mjs", tmp_path)
    (tmp_path / "playwright.config.mjs").write_text(CONFIGURATION)
    (tmp_path / "node_modules").symlink_to(playwright.parents[1])
    with served(tmp_path / "state") as bank:
        TppClient(bank.url, Identity.from_folder(tmp_path / "state" / "tpps" / "demo")).get("/v1/accounts")
        ended = subprocess.run(
            [str(playwright), "test"],
            cwd=tmp_path,
            env={**os.environ, "BANK_URL": bank.url, "CHROMIUM": chromium},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
