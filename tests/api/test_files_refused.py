"""Files and folders that the system refuses: 503 with one line in the log, and nothing half-written is left."""

from __future__ import annotations

import errno
import io
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings
from tests.api.control_desk import asked
from tests.api.desk import DeskClient

TPP = {"name": "acme", "roles": ["PISP"]}


@pytest.fixture
def application(tmp_path: Path) -> Iterator[BankApplication]:
    """The application over a bank `old` of an earlier run, a snapshot `one` and a TPP `zed`."""
    settings = ServeSettings(state=tmp_path)
    before = assemble(settings)
    assert asked(before, "PUT", "/_emulator/banks/old")[0] == 201
    assert asked(before, "PUT", "/_emulator/snapshots/one")[0] == 201
    assert asked(before, "POST", "/_emulator/tpps", {"name": "zed"})[0] == 201
    before.close()
    application = assemble(settings)
    yield application
    application.close()


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refuse(patch: pytest.MonkeyPatch, *names: str, error: int) -> None:
    """Let these calls of `os` fail; what opens a file to read goes on."""

    def refusing(call: Any) -> Any:
        def refused(path: Any, *rest: Any, **more: Any) -> Any:
            if call is os.open and not rest[0] & (os.O_WRONLY | os.O_RDWR):
                return call(path, *rest, **more)
            raise OSError(error, os.strerror(error), path if isinstance(path, str | Path) else None)

        return refused

    for name in names:
        patch.setattr(os, name, refusing(getattr(os, name)))


CHANGES = [
    ("PUT", "/_emulator/banks/new", None),
    ("PUT", "/_emulator/snapshots/two", None),
    ("DELETE", "/_emulator/banks/old", None),
    ("POST", "/_emulator/tpps", TPP),
    ("POST", "/_emulator/tpps", {"name": "zed", "replace": True}),
]


def test_a_folder_that_may_not_be_changed_is_503(
    application: BankApplication, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    for method, target, body in CHANGES:
        before = files(tmp_path)
        caplog.clear()
        with pytest.MonkeyPatch.context() as patch:
            refuse(patch, "open", "mkdir", "rename", "replace", "unlink", "rmdir", "link", error=errno.EACCES)
            status, refusal = asked(application, method, target, body)
        assert (status, [message["code"] for message in refusal["tppMessages"]]) == (503, ["SYSTEM_ERROR"]), target
        [logged] = caplog.records
        assert logged.exc_info is None, target
        assert files(tmp_path) == before, target
        assert asked(application, method, target, body)[0] < 300, target


def test_a_bank_whose_folder_may_not_be_used_is_503(
    application: BankApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        refuse(patch, "open", error=errno.EACCES)
        assert asked(application, "GET", "/banks/old/_emulator/clock")[0] == 503
    assert asked(application, "GET", "/banks/old/_emulator/clock")[0] == 200
    refuse(monkeypatch, "stat", "scandir", "listdir", error=errno.EACCES)
    assert asked(application, "GET", "/banks/other/_emulator/clock")[0] == 503
    assert asked(application, "GET", "/_emulator/banks")[0] == 503


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_of_what_did_not_fit_on_the_disk_nothing_is_left(
    application: BankApplication, tmp_path: Path, call: str
) -> None:
    for body in (TPP, {"name": "zed", "replace": True}):
        before = files(tmp_path)
        certificate = (tmp_path / "tpps" / "zed" / "certificate.pem").read_bytes()
        with pytest.MonkeyPatch.context() as patch:
            refuse(patch, call, error=errno.ENOSPC)
            assert asked(application, "POST", "/_emulator/tpps", body)[0] == 503, body
        assert files(tmp_path) == before, body
        assert (tmp_path / "tpps" / "zed" / "certificate.pem").read_bytes() == certificate, body
        assert asked(application, "POST", "/_emulator/tpps", body)[0] == 201, body


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("durability", ["process", "power"])
def test_with_power_names_that_cannot_be_synced_are_503_and_all_is_as_it_was(
    application: BankApplication,
    tmp_path: Path,
    durability: Literal["process", "power"],
    links: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    application.close()
    if not links:  # as on FAT
        refuse(monkeypatch, "link", error=errno.EPERM)
    again = assemble(ServeSettings(state=tmp_path, durability=durability))
    asked(again, "PUT", "/_emulator/settings", {"progression": "manual"})  # another snapshot differs
    fsync = os.fsync

    def failing(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(file)

    for method, target, body in [("PUT", "/_emulator/snapshots/one", None), *CHANGES]:
        if "banks" not in target:
            snapshot = next(tmp_path.rglob("content-*"))
            before, content = files(tmp_path), snapshot.read_bytes()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "fsync", failing)
                assert (asked(again, method, target, body)[0] == 503) is (durability == "power"), target
            if durability == "power":
                assert (files(tmp_path), snapshot.read_bytes()) == (before, content), target
                assert asked(again, method, target, body)[0] < 300, target
    again.close()


def test_a_fixture_that_cannot_be_read_is_503_and_is_read_when_that_is_over(
    application: BankApplication,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    authority: CertificateAuthority,
) -> None:
    tpp = DeskClient(application.default, authority)
    opened = io.open

    def refused(path: Any, *rest: Any, **more: Any) -> Any:
        if Path(path).name == "known-state.yaml":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return opened(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(io, "open", refused)
        refusal = tpp.post("/v1/sandbox/initialize")
        assert (refusal.status, refusal.json()["tppMessages"][0]["code"]) == (503, "SYSTEM_ERROR")
        assert asked(application, "POST", "/_emulator/reset")[0] == 503
        assert asked(application, "PUT", "/_emulator/banks/new")[0] == 503
    assert all(logged.exc_info is None for logged in caplog.records)
    assert tpp.post("/v1/sandbox/initialize").status == 200
    assert asked(application, "POST", "/_emulator/reset")[0] == 200


def test_what_cannot_be_signed_is_not_done_either(
    application: BankApplication, tmp_path: Path, authority: CertificateAuthority
) -> None:
    tpp = DeskClient(application.default, authority)
    asked(application, "GET", "/_emulator/certificate")
    asked(application, "PUT", "/_emulator/settings", {"sign_responses": True})
    before = asked(application, "GET", "/_emulator/people")
    application.close()
    key = tmp_path / "bank" / "key.pem"
    content = key.read_bytes()
    for damage, reason in (
        (b"no key", "not a private key in PEM"),
        ((tmp_path / "tpps" / "zed" / "key.pem").read_bytes(), "not the key of certificate.pem"),
    ):
        key.write_bytes(damage)
        again = assemble(ServeSettings(state=tmp_path))
        tpp.service = again.default
        refusal = tpp.post("/v1/sandbox/customers", json={"customerNumber": "12345678", "name": "A", "type": "private"})
        assert refusal.status == 503
        assert refusal.json()["tppMessages"][0]["text"].startswith(
            f"A certificate or its key cannot be read: {key}: {reason}"
        )
        assert asked(again, "GET", "/_emulator/people") == before
        at_the_wire = Response(413)
        again.refused(Request("POST", "/v1/consents"), at_the_wire)
        assert "Signature" not in dict(at_the_wire.headers)
        key.write_bytes(content)
        assert "signature" in tpp.get("/v1/sandbox/customers").headers
        again.close()


def test_what_a_killed_process_left_of_a_snapshot_is_gone_with_the_next_start(
    application: BankApplication, tmp_path: Path
) -> None:
    application.close()
    left = tmp_path / "banks" / "default" / "content-0123456789.json"
    left.write_text("half")
    assemble(ServeSettings(state=tmp_path)).close()
    assert not left.exists()


def test_a_tpp_whose_files_are_damaged_is_named_until_it_is_issued_anew(
    application: BankApplication, tmp_path: Path
) -> None:
    key = tmp_path / "tpps" / "zed" / "key.pem"
    key.unlink()
    seeding = {"tpp": "zed", "nationalId": "14888520059"}
    for method, path, body in (("GET", "tpps", None), ("POST", "tpps", {"name": "zed"}), ("POST", "sessions", seeding)):
        status, refusal = asked(application, method, f"/_emulator/{path}", body)
        assert (status, refusal["tppMessages"][0]["code"]) == (503, "SYSTEM_ERROR")
        assert (
            refusal["tppMessages"][0]["text"] == f"A certificate or its key cannot be read: {key}: the key is missing."
        )
    assert asked(application, "POST", "/_emulator/tpps", {"name": "zed", "replace": True})[0] == 201
    assert asked(application, "POST", "/_emulator/sessions", seeding)[0] == 200
