"""The commands beside the bank: certificates, signed requests, the proxy, explanations, documents, damaged state."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from emulator.cli import main
from emulator.cli import state as state_commands
from emulator.cli.main import COMMANDS, group
from emulator.client import sign
from emulator.failure import Damaged
from emulator.store import StoreDamaged
from emulator.store.check import CheckReport
from tests.e2e.process import Served, command, control, served
from tests.known_state import KARI
from tests.tools import tool
from tests.warm import Command


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One bank for the module, with TLS beside the plain port."""
    with served(tmp_path_factory.mktemp("bank"), "--tls-port", "0", "--seed", "1") as running:
        yield running


def run(
    bank: Served, *arguments: str, given: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command as a user types it, at this bank and its state directory."""
    standing = {"BANK_EMULATOR_URL": bank.url, "BANK_EMULATOR_STATE": str(bank.state)}
    return command(*arguments, environment=standing | (environment or {}), given=given)


# tpp


def test_a_new_tpp_is_listed_and_its_key_is_for_its_owner(bank: Served) -> None:
    issued = run(bank, "tpp", "new", "shop", "--role", "PISP")
    assert issued.returncode == 0, issued.stderr
    folder = bank.state / "tpps" / "shop"
    files = [folder / "certificate.pem", folder / "key.pem", folder / "keystore.p12"]
    assert issued.stdout.splitlines() == [str(file) for file in files]
    assert stat.S_IMODE(files[1].stat().st_mode) == 0o600
    assert load_pkcs12(files[2].read_bytes(), b"bank-emulator").key is not None
    listed = json.loads(run(bank, "tpp", "list", "--output", "json").stdout)
    assert {tpp["name"]: tpp["roles"] for tpp in listed} == {"demo": ["AISP", "PISP"], "shop": ["PISP"]}
    again = run(bank, "tpp", "new", "shop")
    assert (again.returncode, again.stdout) == (2, "")
    assert "the TPP shop already exists" in again.stderr


@pytest.mark.parametrize(
    "name, flaw, message", [("x", "crooked", "is not one of 'expired'"), ("../out", "expired", "")]
)
def test_a_tpp_that_cannot_be_is_wrong_use(bank: Served, name: str, flaw: str, message: str) -> None:
    refused = run(bank, "tpp", "new", name, "--flaw", flaw)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


# request


def test_a_request_is_signed_and_its_answer_printed(bank: Served) -> None:
    answered = run(bank, "request", "get", "/v1/accounts", "-i")
    assert (answered.returncode, answered.stderr.splitlines()[0]) == (0, "HTTP 401")
    assert "X-Request-ID: " in answered.stderr
    assert json.loads(answered.stdout)["tppMessages"][0]["code"] == "SCA_NOT_FOUND"


def test_a_body_comes_from_a_file_or_stdin_and_headers_are_given_or_left_out(bank: Served, tmp_path: Path) -> None:
    body = {"customerNumber": "55555555", "name": "Ny Kunde", "type": "private"}
    file = tmp_path / "body.json"
    file.write_text(json.dumps(body))
    created = run(bank, "request", "POST", "/v1/sandbox/customers", "--json", f"@{file}")
    assert json.loads(created.stdout)["customerName"] == "Ny Kunde"
    twice = run(bank, "request", "POST", "/v1/sandbox/customers", "--json", "@-", "--fail", given=json.dumps(body))
    assert (twice.returncode, twice.stderr) == (1, "HTTP 409\n")
    without = run(bank, "request", "GET", "/v1/accounts", "-H", "TPP-Redirect-URI;")
    assert json.loads(without.stdout)["tppMessages"][0]["path"] == "TPP-Redirect-URI"


def test_a_body_goes_out_byte_for_byte_whatever_its_encoding(bank: Served) -> None:
    refused = run(bank, "request", "POST", "/v1/sandbox/customers", "--json", '{"name": "\udce6"}')
    assert refused.stderr == "HTTP 400\n"
    assert "byte 11 is not UTF-8" in refused.stdout


@pytest.mark.parametrize(
    "asking",
    [
        ["request", "GET", "/v1/accounts"],
        ["clock", "show"],
        ["requests", "tail", "--last", "0", "--follow"],
        ["scenario", "play", "late-booking"],
    ],
    ids=" ".join,
)
def test_over_tls_every_kind_of_command_trusts_the_ca_that_is_named(bank: Served, asking: list[str]) -> None:
    at = [*asking, "--url", bank.urls[1]]
    ca = str(bank.state / "ca.pem")
    refused = run(bank, *at)
    assert refused.returncode > 0
    shown = refused.stdout + refused.stderr
    assert f"{bank.urls[1]} is not trusted: self" in shown
    assert "; --ca names the CA of its certificate." in shown
    none = run(bank, *at, "--ca", str(bank.state / "tpps"))
    assert "cannot be read as a CA" in none.stdout + none.stderr
    if "--follow" not in asking:
        assert run(bank, *at, "--ca", ca).returncode == 0
        assert run(bank, *at, environment={"BANK_EMULATOR_CA": ca}).returncode == 0


def on_a_terminal(bank: Served, *arguments: str) -> tuple[int, str, str]:
    """A command whose stderr is a terminal: its exit status, its stdout, and what the terminal was sent."""
    ours, terminal = os.openpty()
    with Command(*arguments, "--url", bank.url, stdout=subprocess.PIPE, stderr=terminal) as running:
        os.close(terminal)
        sent = b""
        with suppress(OSError):  # EIO: the other side is closed
            while piece := os.read(ours, 4096):
                sent += piece
        os.close(ours)
        out, _ = running.communicate(timeout=60)
    return running.returncode, out, sent.decode()


def test_on_a_terminal_what_takes_long_shows_its_progress(bank: Served) -> None:
    status, out, sent = on_a_terminal(bank, "generate", "--customers", "200", "--transactions", "1")
    assert (status, out) == (0, "200 customers, 400 accounts, 400 transactions\n")
    first, *lines, end = sent.split("\r")  # one line, written again and again
    assert (first, end) == ("", "\n")
    assert all(re.fullmatch(r"generating, \d+ % *", line) for line in lines)
    parts = [int(line.split()[1]) for line in lines]
    assert parts == sorted(parts)
    assert parts[0] < 50 < parts[-1]


def test_on_a_terminal_what_is_refused_is_one_line(bank: Served) -> None:
    expected = "by: Expected a duration such as 10s, 2m, 1h30m, 3d or PT1H, found the text 'soon'."
    assert on_a_terminal(bank, "clock", "advance", "soon") == (2, "", f"bank-emulator: {expected}\r\n")


def test_a_port_that_does_not_speak_tls_is_said_to_be_one(bank: Served) -> None:
    plain = bank.url.replace("http:", "https:")
    done = run(bank, "clock", "show", "--url", plain)
    assert done.returncode == 2
    assert done.stderr == (f"bank-emulator: {plain} does not speak TLS (WRONG_VERSION_NUMBER): is it http?\n")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["GET", "/v1/accounts", "--url", "http://127.0.0.1:1"],
            ": Connection refused. Is `bank-emulator serve` running?\n",
        ),
        (["GET", "/v1/accounts", "--tpp", "nobody"], "bank-emulator tpp new nobody"),
        (["GET", "/v1/accounts", "--certificate", "c.pem"], "must be given together"),
        (["GET", "/v1/accounts", "-H", "no colon"], "Name: value"),
        (["POST", "/v1/consents", "--json", "@missing.json"], "missing.json"),
        (["GET", "/v1/accounts", "-H", "X: \udce6"], "-H X: UTF-8 was expected"),
        (["GET", "/v1/accounts", "-H", "psu-id: a", "-H", "PSU-ID: b"], "the header psu-id appears more than once"),
        (["GET", "/v1/accounts?a=b c"], "without blanks (write %20), not '/v1/accounts?a=b c'"),
        (["GET", "/v1/ø"], "an address is ASCII"),
        (["GÉT", "/v1/accounts"], "'GÉT' is not an HTTP method, such as GET"),
    ],
)
def test_what_a_request_lacks_is_told_in_one_line(bank: Served, arguments: list[str], message: str) -> None:
    refused = run(bank, "request", *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


# proxy


@contextmanager
def proxy(bank: Served, *flags: str) -> Iterator[str]:
    """A running signing proxy; its address."""
    process = Command("proxy", "--state", str(bank.state), "--quiet", *flags, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("READY ").strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.communicate()


def plain(url: str, body: bytes | None = None) -> tuple[int, Any]:
    """What a client that knows nothing of signatures gets."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} if body else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_plain_client_goes_the_whole_way_through_the_proxy(bank: Served, scheme: str) -> None:
    target = bank.urls[0] if scheme == "http" else bank.urls[1]
    trust = [] if scheme == "http" else ["--ca", str(bank.state / "ca.pem")]
    with proxy(bank, "--to", target, *trust) as address:
        status, refused = plain(f"{address}/v1/accounts?withBalance=true")
        assert status == 401
        token = refused["_links"]["scaRedirect"]["href"].rpartition("/")[2]
        back = control(bank.url, "POST", f"sca/{token}/approve", {"nationalId": KARI})["redirect"]
        assert back.startswith(f"{address}/_proxy/callback/")
        with urllib.request.urlopen(back, timeout=30) as welcome:
            assert b"The proxy now sends the customer" in welcome.read()
        status, listed = plain(f"{address}/v1/accounts?withBalance=true")
        assert (status, len(listed["accounts"])) == (200, 2)
        status, created = plain(
            f"{address}/v1/payments/norwegian-domestic-credit-transfers",
            json.dumps(
                {
                    "instructedAmount": {"amount": "10.00", "currency": "NOK"},
                    "creditorName": "Bjørn på Nøtterøy",
                    "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
                    "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
                },
                ensure_ascii=False,
            ).encode(),
        )
        assert (status, created["transactionStatus"]) == (201, "RCVD")


def asked_as(address: str, path: str, *hosts: str) -> tuple[int, bytes]:
    """What a client gets that names these hosts."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    for host in hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_proxy_answers_to_its_own_names_alone(bank: Served) -> None:
    """A page of another name that resolves to this machine would otherwise sign and change whatever it likes."""
    with proxy(bank, "--to", bank.url) as address:
        for path in ("/_emulator/clock", "/v1/accounts", "/_proxy/callback?psu-id=x", "/health"):
            for host in ("evil.test", "evil.test:80", "127.0.0.1.evil.test", "", "[::2]:1", "evil.test@127.0.0.1"):
                status, body = asked_as(address, path, host)
                assert status == 403, (path, host)
                [message] = json.loads(body)["tppMessages"]
                assert (message["category"], message["code"], message["path"]) == ("ERROR", "FORBIDDEN", "Host")
        for host in ("localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:9090", urlsplit(address).netloc):
            assert asked_as(address, "/health", host)[0] == 200, host


def test_a_proxy_logs_a_customer_in_at_its_start(bank: Served) -> None:
    with proxy(bank, "--to", bank.url, "--login", KARI) as address:
        status, listed = plain(f"{address}/v1/accounts")
        assert (status, len(listed["accounts"])) == (200, 2)
    refused = run(bank, "proxy", "--login", "00000000000")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert refused.stderr.startswith("bank-emulator: --login 00000000000: ")


def test_a_bank_that_does_not_answer_is_a_502(bank: Served) -> None:
    with proxy(bank, "--to", "http://127.0.0.1:1") as address:
        assert plain(f"{address}/v1/accounts")[0] == 502


@pytest.mark.parametrize("ca", ["missing.pem", "tpps/demo/key.pem"])
def test_a_proxy_reads_its_ca_before_it_is_ready(bank: Served, ca: str) -> None:
    refused = run(bank, "proxy", "--to", bank.urls[1], "--ca", str(bank.state / ca))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"bank-emulator: {bank.state / ca} cannot be read as a CA: ")


def test_a_port_in_use_is_wrong_use(bank: Served) -> None:
    port = bank.url.rpartition(":")[2]
    line = ("proxy", "--url", bank.url, "--state", str(bank.state), "--port", port)
    refused = Command(*line, stderr=subprocess.PIPE)
    _, log = refused.communicate(60)
    assert refused.returncode == 2
    assert log == f"bank-emulator: --port {port}: {os.strerror(errno.EADDRINUSE)}\n"


# explain


def test_what_curl_printed_is_explained(bank: Served, tmp_path: Path) -> None:
    folder = bank.state / "tpps" / "demo"
    headers = sign(
        "GET",
        "/v1/accounts",
        certificate=folder / "certificate.pem",
        key=folder / "key.pem",
        headers={"TPP-Redirect-URI": "https://tpp.example/"},
    )
    curl = [tool("curl"), "-sv", f"{bank.url}/v1/accounts?withBalance=true"]  # another address than was signed
    for name, value in headers.items():
        curl += ["-H", f"{name}: {value}"]
    printed = subprocess.run(curl, capture_output=True, text=True, timeout=30).stderr
    explained = run(bank, "explain", "-", "--output", "json", given=printed)
    assert explained.returncode == 1
    assert "query" in explained.stdout
    file = tmp_path / "printed.txt"
    file.write_text(printed.replace("?withBalance=true", ""))
    assert run(bank, "explain", str(file)).stdout.startswith("The signature is valid.")


@pytest.mark.parametrize("arguments", [[], ["missing.txt"], ["-", "--request", "latest"]])
def test_explain_needs_one_thing_to_explain(bank: Served, arguments: list[str]) -> None:
    refused = run(bank, "explain", *arguments)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


# openapi, completion, help


@pytest.mark.parametrize("flags, path", [([], "/v1/accounts"), (["--control"], "/payments")])
def test_the_documents_are_printed_without_a_bank(bank: Served, flags: list[str], path: str) -> None:
    shown = json.loads(run(bank, "openapi", *flags).stdout)
    assert shown["openapi"].startswith("3.1")
    assert any(known.endswith(path) for known in shown["paths"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(bank: Served, shell: str) -> None:
    assert "_BANK_EMULATOR_COMPLETE" in run(bank, "completion", shell).stdout


def test_the_commands_are_listed_in_the_order_in_which_they_are_needed() -> None:
    listed = CliRunner().invoke(group, ["--help"]).output.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()[: len(COMMANDS)]] == list(COMMANDS)
    assert next(iter(COMMANDS)) == "serve"


@pytest.mark.parametrize(("typed", "meant"), [(["serv"], "serve"), (["tpp", "lis"], "list")])
def test_a_misspelt_command_is_answered_with_a_guess(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(typed) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_no_command_is_listed_with_its_summary_cut_off() -> None:
    nouns = [name for name, command in group.commands.items() if hasattr(command, "commands")]
    for noun in [None, *nouns]:
        help_text = CliRunner().invoke(group, [*([noun] if noun else []), "--help"], terminal_width=80).output
        listed = help_text.partition("Commands:\n")[2].partition("\n\n")[0]
        assert listed
        assert "..." not in listed


def test_what_nobody_reads_to_the_end_is_no_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unread(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, f"nobody reads {text}")

    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, Unread())
    assert main.run(["scenario", "list"]) == 141


def test_an_error_that_nobody_can_be_told_ends_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, f"no room for {text}")

    monkeypatch.setattr(sys, "stderr", Full())
    assert main.run(["scenario", "check", "nowhere.yaml"]) == 2


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(group, [name, "--help"])
        assert shown.exit_code == 0
        assert "bank-emulator" in shown.output.partition("Options:")[2] or "bank-emulator completion" in shown.output, (
            name
        )


def test_the_help_of_scenario_play_names_no_bank_where_none_is_asked() -> None:
    """Without --url a story plays on a bank in the process of the command, and not at the usual address."""
    shown = CliRunner().invoke(group, ["scenario", "play", "--help"]).output
    assert "--url" in shown
    assert "127.0.0.1" not in shown


# state check


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory of a bank that was killed after some changes: its journal still holds them."""
    state = tmp_path_factory.mktemp("killed") / "state"
    with served(state) as running:
        for number in range(3):
            run(running, "request", "POST", "/v1/sandbox/customers", "--json", json.dumps(customer(number)))
    return state


@pytest.fixture
def state(killed: Path, tmp_path: Path) -> Path:
    """A copy of that directory, for one test to change."""
    return shutil.copytree(killed, tmp_path / "state")


def customer(number: int) -> dict[str, str]:
    return {"customerNumber": f"5555555{number}", "name": "Ny Kunde", "type": "private"}


def checked(state: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return command("state", "check", "--state", str(state), *flags)


def test_what_is_left_of_a_deleted_bank_is_not_looked_at(state: Path) -> None:
    left = state / "banks" / ".deleted-0123456789ab"
    left.mkdir()
    (left / "journal-000000000006.jsonl").write_text("what came after the part that is gone")
    assert checked(state).returncode == 0
    assert checked(state, "--repair").stdout.count("intact") == 1


def test_damage_is_named_refused_and_mended_with_a_copy_kept(state: Path) -> None:
    [journal] = [file for file in (state / "banks" / "default").iterdir() if "journal" in file.name]
    content = bytearray(journal.read_bytes())
    content[len(content) // 3] ^= 0x55
    journal.write_bytes(bytes(content))

    result = checked(state)
    assert result.returncode == 3
    assert journal.name in result.stderr
    assert "--repair" in result.stderr

    with pytest.raises(RuntimeError, match="damaged"), served(state):
        pass

    mended = json.loads(checked(state, "--repair", "--output", "json").stdout)[0]
    assert mended["actions"]
    [copy] = [file for file in Path(mended["copies"]).rglob("*") if file.name.startswith(journal.name)]
    assert copy.read_bytes() == bytes(content)
    assert checked(state).returncode == 0
    with served(state) as running:
        assert run(running, "people").returncode == 0


def test_a_bank_of_a_later_version_hides_nothing_of_the_others(state: Path) -> None:
    [journal] = [file for file in (state / "banks" / "default").iterdir() if "journal" in file.name]
    journal.write_bytes(journal.read_bytes()[:-5])
    for name in ("later", "later-too"):
        later = state / "banks" / name
        later.mkdir()
        (later / "documents.json").write_text('{"_store":{"1":{"format":99,"sequence":1}}}')
    done = checked(state, "--repair")
    assert (done.returncode, done.stderr.count("\n"), done.stderr.count("has format 99")) == (2, 1, 2)
    assert done.stdout.startswith("default: intact, ")
    assert "copies of changed files: " in done.stdout


def test_a_damaged_saved_snapshot_is_named_and_keeps_no_bank_from_starting(state: Path) -> None:
    with served(state) as running:
        for name in ("good", "bad"):
            run(running, "snapshot", "save", name)
    good, file = sorted((state / "banks" / "default").glob("content-*"))  # named by the time
    file.write_bytes(file.read_bytes()[:-10])
    for flags in ((), ("--repair",)):
        result = checked(state, *flags)
        assert result.returncode == 3
        assert str(file) in result.stderr
        assert good.name not in result.stdout + result.stderr
        assert result.stdout.startswith("default: intact, ")
        assert re.search(rf"{file.name} at byte \d+: the snapshot bad: ", result.stdout)
        assert "the snapshot bad: " in result.stderr
    [report] = json.loads(checked(state, "--output", "json").stdout)
    assert [entry["file"] for entry in report["snapshots"]] == [str(file)]
    with served(state) as running:
        assert run(running, "snapshot", "list").returncode == 0


def test_what_nothing_can_be_read_of_is_given_up_and_a_start_begins_anew(state: Path) -> None:
    with served(state) as running:
        assert running.stop() == 0
    snapshot = state / "banks" / "default" / "documents.json"
    snapshot.write_bytes(b"")
    assert checked(state).returncode == 3
    mended = checked(state, "--repair")
    assert (mended.returncode, mended.stderr) == (0, "")
    assert "no document can be read: its content is lost" in mended.stdout
    assert "a start creates the bank again" in mended.stdout
    assert (snapshot.parent / "damaged-1" / "documents.json").read_bytes() == b""
    with served(state) as running:
        assert run(running, "people").returncode == 0


def test_what_a_repair_has_saved_is_there_after_a_start(state: Path) -> None:
    """Though the document that says what the bank was made from may be lost."""
    with served(state) as running:
        assert running.stop() == 0
    snapshot = state / "banks" / "default" / "documents.json"
    snapshot.write_bytes(snapshot.read_bytes().replace(b'"id":"bank"', b'"id":"ba"k"').replace(b"Kari", b"Mari"))
    assert checked(state, "--repair").returncode == 0
    with served(state) as running:
        assert "Mari" in run(running, "people").stdout


def test_what_cannot_be_mended_is_3_with_what_helps(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = StoreDamaged(state / "documents.json", 7, "it is wrong")
    monkeypatch.setattr("emulator.store.check.repair", lambda bank, kinds: CheckReport(bank, findings=[finding]))
    with pytest.raises(Damaged, match=r"at byte 7: it is wrong \(it cannot be repaired: move .*default away\)"):
        state_commands.check.main(["--repair", "--state", str(state)], standalone_mode=False)


def test_a_bank_in_use_is_not_looked_at(bank: Served) -> None:
    done = checked(bank.state)
    assert done.returncode == 2
    assert "in use by" in done.stderr
