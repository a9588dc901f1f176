"""Commands that read certificates of a state directory: what is damaged there is 3, with the file named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unicodedata import normalize

import pytest

from emulator.bank.clock import real_now
from emulator.ca import FLAWS, CertificateAuthority
from emulator.cli import tpp
from tests.api.conftest import Run
from tests.cases import cases


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with the TPP `demo`."""
    CertificateAuthority(tmp_path, clock=real_now).demo()
    monkeypatch.setenv("BANK_EMULATOR_STATE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("tpps/demo/certificate.pem", "tpp list"),
        ("tpps/demo/certificate.pem", "tpp new demo"),
        ("tpps/demo/certificate.pem", "request GET /v1/accounts"),
        ("tpps/demo/key.pem", "proxy"),
        ("ca.pem", "tpp list"),
        ("private/ca-key.pem", "tpp new shop"),
    ],
)
def test_a_damaged_file_is_3_and_named(run: Run, state: Path, file: str, command: str) -> None:
    (state / file).write_text("x")
    status, out, err = run(*command.split())
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert str((state / file).parent) in err
    assert "--debug" not in err


@pytest.mark.parametrize("command", ["tpp list", "request GET /v1/accounts"])
def test_a_missing_key_is_3_and_named(run: Run, state: Path, command: str) -> None:
    key = state / "tpps" / "demo" / "key.pem"
    key.unlink()
    assert run(*command.split()) == (
        3,
        "",
        f"bank-emulator: {key}: the key is missing (see bank-emulator docs recover-data)\n",
    )


def test_a_directory_that_cannot_be_written_is_2_and_named(
    run: Run, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("emulator.ca.folder_written", full)
    assert run("tpp", "new", "shop") == (2, "", f"bank-emulator: --state {state}: No space left on device\n")


def test_a_file_that_the_system_refuses_is_named(run: Run, state: Path) -> None:
    certificate = state / "tpps" / "demo" / "certificate.pem"
    certificate.unlink()
    certificate.mkdir()
    assert run("tpp", "list") == (2, "", f"bank-emulator: --state {certificate}: Is a directory\n")


def test_tpps_are_listed_with_roles_and_end(run: Run, state: Path) -> None:
    [line] = run("tpp", "list")[1].splitlines()
    assert line.startswith("demo  PSDNO-SBX-demo  AISP, PISP  20")
    [listed] = json.loads(run("tpp", "list", "--output", "json")[1])
    assert (listed["roles"], line.endswith(listed["validUntil"])) == (["AISP", "PISP"], True)


def test_the_help_tells_every_flaw_and_what_it_needs_to_be_refused(run: Run) -> None:
    assert tuple(tpp.FLAWS) == FLAWS
    help_text = "".join(run("tpp", "new", "--help")[1].split())  # its lines may break within a name
    assert [flaw for flaw in FLAWS if flaw not in help_text] == []


def test_a_keystore_has_a_password(run: Run, state: Path) -> None:
    status, out, err = run("tpp", "new", "shop", "--keystore-password", "")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "'--keystore-password': must not be empty" in err
    assert not (state / "tpps" / "shop").exists()


def test_a_flaw_is_told_with_what_it_needs_to_be_refused(run: Run, state: Path) -> None:
    status, _, err = run("tpp", "new", "stranger", "--flaw", "unknown-ca")
    assert (status, err) == (0, f"unknown-ca: {tpp.FLAWS['unknown-ca']}\n")
    assert "trust=sandbox-ca" in err


@pytest.mark.parametrize("command", ["request GET /v1/accounts", "proxy", "tpp list", "state check"])
def test_outside_the_folder_of_the_server_a_command_says_where_it_looked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BANK_EMULATOR_STATE", raising=False)
    status, out, err = run(*command.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert str(tmp_path / ".bank-emulator") in err
    assert "--state DIR" in err


def test_a_tpp_is_named_in_either_form_of_its_letters(run: Run) -> None:
    run("tpp", "new", normalize("NFD", "Kåre"))
    for name in (normalize("NFC", "Kåre"), normalize("NFD", "Kåre")):
        assert run("request", "GET", "/v1/accounts", "--tpp", name)[2].startswith("HTTP 401")
    assert "'--tpp': must not be empty" in run("request", "GET", "/v1/accounts", "--tpp", "")[2]


@cases("arguments", [["a/b"], ["shop", "--flaw", "none"]])
def test_a_tpp_that_is_refused_has_no_sandbox_ca_created(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    assert run("tpp", "new", *arguments, "--state", str(tmp_path / "new"))[0] == 2
    assert not (tmp_path / "new").exists()


def test_a_new_sandbox_ca_is_told(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "elsewhere"
    assert run("tpp", "new", "shop", "--state", str(state))[2] == f"created the sandbox CA of {state}\n"
    assert run("tpp", "new", "second", "--state", str(state))[2] == ""
