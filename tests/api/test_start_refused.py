"""A start that is refused says why, and leaves the kept bank as it stood."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path
from threading import Thread

import pytest

from emulator.assemble import assemble
from emulator.bank import fixtures
from emulator.bank.fixtures import FixtureError
from emulator.bank.kinds import META
from emulator.ca import CertificateAuthority
from emulator.ca.files import check_private
from emulator.cli import main
from emulator.failure import Damaged, Failed
from emulator.settings import ServeSettings
from emulator.store.disk import Disk

GOOD = """
scenario: good
start: {from: known-state, settings: {calendar: norway}}
rules: [{name: down, when: {operation: getAccounts}, then: {answer: {status: 503}}}]
"""
UNREADABLE = "scenario: unreadable\nstart: {settings: {nonsense: 1}}\n"
UNFIT = "scenario: unfit\nstart: {change: [{account: NO00, balance: '0.00'}]}\n"


@pytest.mark.parametrize("second", [UNREADABLE, UNFIT])
def test_a_refused_second_scenario_takes_the_first_one_back(
    tmp_path: Path, authority: CertificateAuthority, second: str
) -> None:
    state = tmp_path / "state"
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(second)
    files = str(tmp_path / "good.yaml"), str(tmp_path / "bad.yaml")

    before = assemble(ServeSettings(state=state), authority=authority)
    before.default.bank.documents.put(META, {"id": "mine", "kept": True})
    stood = before.default.bank.documents.dump()
    before.close()

    with pytest.raises(Failed, match="--scenario"):
        assemble(ServeSettings(state=state, scenario=files), authority=authority)

    after = assemble(ServeSettings(state=state), authority=authority)
    assert after.default.bank.documents.dump() == stood
    after.close()


@pytest.mark.parametrize("file", ["ca.pem", "tpps/demo/key.pem", "banks/default/lock"])
def test_a_file_that_the_system_refuses_is_named(tmp_path: Path, file: str) -> None:
    assemble(ServeSettings(state=tmp_path)).close()
    (tmp_path / file).unlink()
    (tmp_path / file).mkdir()
    with pytest.raises(Failed) as refused:
        assemble(ServeSettings(state=tmp_path))
    assert str(refused.value) == f"--state {tmp_path / file}: Is a directory"


def test_a_check_finds_the_lock_that_a_start_refuses(
    tmp_path: Path, authority: CertificateAuthority, capsys: pytest.CaptureFixture[str]
) -> None:
    assemble(ServeSettings(state=tmp_path), authority=authority).close()
    lock = tmp_path / "banks" / "default" / "lock"
    lock.unlink()
    lock.mkdir()
    assert main.run(["state", "check", "--state", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"bank-emulator: --state {lock}: Is a directory\n"


@pytest.mark.parametrize("file", ["ca.pem", "private/ca-key.pem", "tpps/demo/certificate.pem"])
def test_a_check_finds_the_certificate_that_a_start_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    assemble(ServeSettings(state=tmp_path)).close()
    assert main.run(["state", "check", "--state", str(tmp_path)]) == 0
    (tmp_path / file).write_text("damaged\n")
    capsys.readouterr()
    with pytest.raises(Damaged) as refused:
        assemble(ServeSettings(state=tmp_path))
    assert main.run(["state", "check", "--state", str(tmp_path)]) == 3
    assert capsys.readouterr().err.startswith(f"bank-emulator: {refused.value} (see ")
    assert (tmp_path / file).read_text() == "damaged\n"


def test_a_repair_follows_no_link(
    tmp_path: Path, authority: CertificateAuthority, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    assemble(ServeSettings(state=state), authority=authority).close()
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text("of somebody else\n")
    link = state / "banks" / "default" / "journal-000000000009.jsonl"
    link.symlink_to(elsewhere)
    assert main.run(["state", "check", "--repair", "--state", str(state)]) == 2
    assert f"--state {link}: it is a symbolic link" in capsys.readouterr().err
    assert link.is_symlink()
    link.unlink()
    assert main.run(["state", "check", "--repair", "--state", str(state)]) == 0


@pytest.mark.parametrize(
    "place",
    ["banks/default/journal-000000000009.jsonl", "banks/default/snapshots/a.snapshot.json", "tpps/demo/key.pem"],
)
def test_nobody_waits_for_a_named_pipe_in_a_state_directory(
    tmp_path: Path, authority: CertificateAuthority, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    state = tmp_path / "state"
    assemble(ServeSettings(state=state), authority=authority).close()
    pipe = state / place
    pipe.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(PermissionError, match="not a regular file"):  # or the next lines would wait forever
        check_private(state)
    assert main.run(["state", "check", "--state", str(state)]) == 2
    assert capsys.readouterr().err.startswith(f"bank-emulator: --state {pipe}: it is not a regular file")
    with pytest.raises(Failed, match="not a regular file"):
        assemble(ServeSettings(state=state))


def test_a_copy_reads_nothing_but_files(
    tmp_path: Path, authority: CertificateAuthority, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    state, pipe = tmp_path / "state", tmp_path / "state" / "banks" / "default" / "pipe"
    assemble(ServeSettings(state=state), authority=authority).close()
    os.mkfifo(pipe)
    assert main.run(["state", "copy", str(state), str(tmp_path / "copy")]) == 2
    assert f"{pipe}: it is not a regular file" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_does_not_fit_names_the_file_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    state, copy = tmp_path / "state", tmp_path / "copy"
    assemble(ServeSettings(state=state)).close()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))  # as a full disk, but with "File too large"
    try:
        assert main.run(["state", "copy", str(state), str(copy)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = capsys.readouterr().err
    assert re.fullmatch(rf"bank-emulator: {re.escape(str(copy))}/.*/documents\.json: File too large\n", error), error
    assert list(copy.iterdir()) == []


def test_a_scenario_may_come_through_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, UNFIT.encode())
    os.close(writer)
    assert main.run(["scenario", "show", f"/dev/fd/{reader}"]) == 0
    os.close(reader)
    assert capsys.readouterr().out == UNFIT


def test_a_fixture_is_a_file_that_can_be_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"summary: nothing\n")
    with pytest.raises(FixtureError, match="not a regular file"):
        fixtures.load(str(pipe))
    os.close(writer)


@pytest.mark.parametrize("shortage", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_shortage_is_told_as_that(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    def exhausted(thread: Thread) -> None:
        raise shortage

    monkeypatch.setattr(Thread, "start", exhausted)
    assert main.run(["serve", "--ephemeral", "--port", "0", "--state", str(tmp_path / "state")]) == 2
    message = "bank-emulator: there is not enough memory, or the system allows no more threads (--debug shows where)\n"
    assert capfd.readouterr().err == message


def test_a_full_disk_is_told_with_the_directory(
    tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Disk, "write", full)
    with pytest.raises(Failed) as refused:
        assemble(ServeSettings(state=tmp_path), authority=authority)
    assert str(refused.value).startswith(f"--state {tmp_path}: the change cannot be written: ")
    assert str(refused.value).endswith("No space left on device")
