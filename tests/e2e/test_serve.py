"""`serve` as a process: what it prints, how it ends, what it refuses (flags.md)."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

from emulator.cli import main
from tests.e2e.process import Served, command, served
from tests.tools import tool
from tests.warm import Command

PATIENCE = 30


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BANK_EMULATOR_")}
    return {**inherited, **variables}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end in a process of its own: a bank that gets as far as to log needs one."""
    done = Command(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    out, err = done.communicate(PATIENCE)
    return subprocess.CompletedProcess(done.args, done.wait(), out, err)


def assert_refused(done: subprocess.CompletedProcess[str], text: str, status: int = 2) -> None:
    """One line on stderr, nothing on stdout."""
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert re.fullmatch(r"bank-emulator: [^\n]+\n", done.stderr), done.stderr
    assert text in done.stderr


def status_of(url: str) -> int:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return int(answer.status)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A running bank for the tests that leave it as it was."""
    with served(tmp_path_factory.mktemp("bank") / "state", "--tls-port", "0", "--allow-host", "bank.test") as running:
        yield running


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory of a bank that has ended in order."""
    state = tmp_path_factory.mktemp("ended") / "state"
    with served(state) as running:
        assert running.stop() == 0
    return state


@pytest.fixture
def state(ended: Path, tmp_path: Path) -> Path:
    """A copy of that directory, for one test to change."""
    return shutil.copytree(ended, tmp_path / "state")


def test_the_same_app_answers_over_tls_with_a_certificate_of_the_sandbox_ca(bank: Served) -> None:
    assert re.fullmatch(r"https://127\.0\.0\.1:\d+", bank.urls[1])
    trusting = ssl.create_default_context(cafile=str(bank.state / "ca.pem"))
    port = int(bank.urls[1].rpartition(":")[2])
    for name in ("localhost", "127.0.0.1", "bank.test"):
        plain = socket.create_connection(("127.0.0.1", port))
        with trusting.wrap_socket(plain, server_hostname=name) as secure:
            assert secure.version() in ("TLSv1.2", "TLSv1.3")
    connection = http.client.HTTPSConnection("localhost", port, context=trusting, timeout=PATIENCE)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_with_0_when_told_and_has_printed_one_line(tmp_path: Path, number: signal.Signals) -> None:
    with served(tmp_path / "state") as running:
        assert status_of(f"{running.url}/ready") == 200
        running.process.send_signal(number)
        rest, log = running.process.communicate(timeout=PATIENCE)
        assert (running.process.returncode, rest) == (0, "")
    assert "stopped; every connection is closed" in log
    assert "every request is answered" not in log  # one under a long scripted delay is cut off


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_more_signals_do_not_change_the_status(tmp_path: Path, number: signal.Signals) -> None:
    line = [sys.executable, "-m", "emulator", "serve", "--port", "0", "--state", str(tmp_path / "state")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("READY ")
        while process.poll() is None:
            process.send_signal(number)
            sleep(0.002)
    assert process.returncode == 0


def test_the_log_is_json_on_stderr_when_asked_for_with_a_line_for_each_request(tmp_path: Path) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with served(tmp_path / "state", "--log-format", "json") as running:
        asked = ["request", "GET", "/v1/accounts", "--url", running.url, "--state", str(running.state)]
        command(*asked, "-H", "X-Request-ID: r-1", "-H", f"traceparent: {trace}")
        for _ in range(25):  # more than there may be of any other line in a minute
            with suppress(OSError):
                status_of(f"{running.url}/v1/accounts")
        running.process.send_signal(signal.SIGTERM)
        _, log = running.process.communicate(timeout=PATIENCE)
    entries = [json.loads(line) for line in log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(entry) for entry in entries)
    signed, *unsigned = [entry for entry in entries if entry["logger"] == "emulator.requests"]
    assert {name: signed[name] for name in signed.keys() - {"time", "milliseconds"}} == {
        "level": "info",
        "logger": "emulator.requests",
        "message": "GET /v1/accounts 401",
        "requestId": "r-1",
        "bank": "default",
        "tpp": "PSDNO-SBX-demo",
        "operation": "getAccounts",
        "status": 401,
        "reason": "SCA_NOT_FOUND PSU-ID: The customer is not known yet: send the PSU to scaRedirect.",
        "traceparent": trace,
    }
    assert len(unsigned) == 25
    assert all(entry["reason"].startswith("HTTP_HEADER_REQUIRED ") for entry in unsigned)


def test_a_script_finds_the_bank_by_the_file_and_by_the_lines(tmp_path: Path) -> None:
    """Variables stand in for flags, but for those that are given; an ephemeral bank keeps no documents."""
    file, state = tmp_path / "the bank.json", tmp_path / "the state"
    line = ["serve", "--tls-port", "0", "--ephemeral", "--print-env", "--state", str(state), "--ready-file", str(file)]
    variables = environment(BANK_EMULATOR_PORT="0", BANK_EMULATOR_STATE=str(tmp_path / "variable"))
    with Command(*line, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(8)]
        facts = json.loads(file.read_text())
        shell = ["sh", "-c", "".join(lines) + "env"]
        shown = subprocess.run(shell, capture_output=True, text=True, check=True, env=environment()).stdout
        status = status_of(f"{facts['url']}/ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    exported = dict(line.split("=", 1) for line in shown.splitlines() if line.startswith("BANK_EMULATOR_"))
    assert status == 200
    assert lines[-2:] == [f"# READY {facts['url']}\n", f"# READY {facts['tlsUrl']}\n"]
    assert facts.pop("pid") == process.pid
    names = {"tlsUrl": "TLS_URL"}
    assert exported == {f"BANK_EMULATOR_{names.get(name, name.upper())}": value for name, value in facts.items()}
    assert facts["state"] == str(state)
    assert all(Path(facts[name]).read_text().startswith("-----BEGIN") for name in ("ca", "certificate", "key"))
    assert os.listdir(tmp_path) == ["the state"]
    assert [path for path in state.rglob("*") if path.suffix in (".json", ".jsonl")] == []


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--prt", "0"], "--prt"),
        (["--port", "70000"], "--port"),
        (["--host", "0.0.0.0"], "--control-token"),
        (["--host", "::"], "--control-token"),
        (["--host", "no.such.host.invalid"], "--control-token"),
        (["--ready-file", "/no/such/place"], "--ready-file /no/such/place: the directory /no/such does not exist"),
        (["--ready-file", "/"], "--ready-file /: it is a directory"),
        (["--print-env=1"], "--print-env"),
        (["--log-format", "xml"], "--log-format takes one of text, json"),
        (["--metrics-token", "a b"], "--metrics-token"),
        (["extra"], "extra"),
    ],
)
def test_wrong_use_is_2_and_one_line_that_names_the_flag(tmp_path: Path, arguments: list[str], text: str) -> None:
    state = ["--state", str(tmp_path / "state")]
    assert_refused(command("serve", "--port", "0", *state, *arguments), text)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--host", "203.0.113.1", "--control-token", "t"], "--host: "),
        (["--host", "no.such.host.invalid", "--control-token", "t"], "--host: "),
        (["--fixtures", "no-such-fixture"], "--fixtures"),
        (["--scenario", "no-such-scenario"], "--scenario"),
    ],
)
def test_what_cannot_be_served_is_2_and_named(tmp_path: Path, arguments: list[str], text: str) -> None:
    assert_refused(run("serve", "--port", "0", "--state", str(tmp_path / "state"), *arguments), text)


@pytest.mark.parametrize("text", [None, "accounts: [{iban: NO1, customer: nobody}]\n"])
def test_a_wrong_fixture_is_refused_where_documents_are_kept_already(
    state: Path, tmp_path: Path, text: str | None
) -> None:
    """It would be read at the next reset only, and fail there."""
    fixture = tmp_path / "wrong.yaml"
    if text is not None:
        fixture.write_text(text)
    done = run("serve", "--port", "0", "--state", str(state), "--fixtures", str(fixture))
    assert_refused(done, f"--fixtures {fixture}" if text else "--fixtures ")


def test_a_wrong_variable_is_2_and_named() -> None:
    assert_refused(command("serve", environment={"BANK_EMULATOR_LINKS": "sideways"}), "BANK_EMULATOR_LINKS")


def test_a_taken_port_is_2_and_no_state_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        state = tmp_path / "state"
        assert_refused(run("serve", "--port", port, "--state", str(state)), f"--port: port {port} is in use")
        done = run("serve", "--port", "0", "--tls-port", port, "--state", str(state))
        assert_refused(done, f"--tls-port: port {port} is in use")
        assert not state.exists()


def test_a_state_directory_in_use_is_2_and_names_its_holder(bank: Served) -> None:
    assert_refused(run("serve", "--port", "0", "--state", str(bank.state)), str(bank.process.pid))


def test_damaged_documents_are_3_and_the_file_and_byte_are_named(state: Path) -> None:
    [snapshot] = [path for path in (state / "banks" / "default").iterdir() if path.suffix == ".json"]
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 1
    snapshot.write_bytes(content)
    done = run("serve", "--port", "0", "--state", str(state))
    assert_refused(done, str(snapshot), status=3)
    assert re.search(r"byte \d+", done.stderr)


def test_documents_of_a_later_version_are_refused_and_left_alone(state: Path) -> None:
    snapshot = state / "banks" / "default" / "documents.json"
    later = re.sub(r'"format":\d+', '"format":99', snapshot.read_text(), count=1)
    snapshot.write_text(later)
    at = ("--state", str(state))
    for done in (
        run("serve", "--port", "0", *at),
        command("state", "check", *at),
        command("state", "check", "--repair", *at),
    ):
        assert_refused(done, f"{snapshot} has format 99")
    assert snapshot.read_text() == later


def test_a_state_that_cannot_be_made_is_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(run("serve", "--port", "0", "--state", str(tmp_path / "file" / "state")), "file")


def test_an_unknown_command_is_2_and_debug_shows_where() -> None:
    assert_refused(command("sevre"), "sevre")
    done = command("sevre", "--debug")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1].startswith("bank-emulator: ")


def test_version_and_help() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", command("--version").stdout)
    shown = command("serve", "--help")
    assert shown.returncode == 0
    assert "--tls-port" in shown.stdout
    assert "Example: " in shown.stdout


def test_in_an_interpreter_of_its_own_it_loads_what_serving_needs_alone_and_stays_under_nohup(state: Path) -> None:
    line = [sys.executable, "-X", "importtime", "-m", "emulator", "serve", "--port", "0", "--state", str(state)]
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *line]
    with subprocess.Popen(ignoring, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("READY ").strip()
        process.send_signal(signal.SIGHUP)
        assert status_of(f"{url}/health") == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in log.splitlines() if "|" in line}
    assert {"aiohttp", "emulator.store"} <= loaded
    unneeded = {"pydantic", "yaml", "faker", "jinja2", "jsonschema", "httpx", "requests", "prometheus_client"}
    assert loaded & unneeded == set()
    assert [name for name in loaded if re.search("psycopg|postgres|pgserver", name)] == []


def test_a_full_stdout_is_named() -> None:
    with open("/dev/full", "w") as full:
        process = Command("serve", "--port", "0", "--ephemeral", stdout=full, stderr=subprocess.PIPE)
    _, log = process.communicate(PATIENCE)
    assert process.returncode == 2
    assert "bank-emulator: stdout cannot be written: No space left on device" in log


@pytest.fixture
def unread() -> Iterator[int]:
    """The writing end of a pipe that is full and that nobody reads."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


def test_a_log_that_nobody_reads_stops_neither_the_bank_nor_its_end(tmp_path: Path, unread: int) -> None:
    line = ("serve", "--port", "0", "--state", str(tmp_path / "state"))
    with Command(*line, stdout=subprocess.PIPE, stderr=unread) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("READY ").strip()
        assert status_of(f"{url}/health") == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0


def test_a_failure_that_nobody_reads_of_ends_the_command(unread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "LAST_SECONDS", 0.01)
    with open(os.dup(unread), "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        assert main.run(["scenario", "check", "nowhere.yaml"]) == 2


def test_a_proxy_whose_log_nobody_reads_goes_on(bank: Served, tmp_path: Path, unread: int) -> None:
    line = ("proxy", "--url", bank.url, "--state", str(bank.state))
    with Command(*line, stdout=subprocess.PIPE, stderr=unread) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("READY ").strip()
        assert [status_of(f"{url}/health") for _ in range(3)] == [200] * 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root gives a folder to somebody else")
@pytest.mark.parametrize("storage", [[], pytest.param(["--ephemeral"], marks=pytest.mark.long)], ids=str)
def test_a_volume_of_somebody_else_is_taken_without_the_rights_of_root(tmp_path: Path, storage: list[str]) -> None:
    """As a pod sees it: root owns the mount point, its group or everybody may write, and `chmod` is refused."""
    volume = tmp_path / "volume"
    (volume / "lost+found").mkdir(parents=True)
    for folder, mode in ((volume / "lost+found", 0o700), (volume, 0o2770)):
        folder.chmod(mode)
        os.chown(folder, 12345, 0)
    plain = [tool("setpriv"), "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown,-fsetid"]
    serving = [sys.executable, "-m", "emulator", "serve", "--port=0", "--tls-port=0", "--state", str(volume), *storage]
    with subprocess.Popen([*plain, *serving], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("READY ").strip()
        assert status_of(f"{url}/ready") == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "WARNING" in log) == (0, False)
    for name in ("private", "tpps"):
        assert stat.S_IMODE((volume / name).stat().st_mode) & 0o077 == 0
