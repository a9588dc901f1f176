"""A named bank whose documents are damaged: said in one sentence, and mended by PUT, DELETE or a repair."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.bank.errors import BankError
from emulator.bank.fixtures import PreparedFixture
from emulator.bank.kinds import KINDS, META
from emulator.ca import CertificateAuthority
from emulator.control.operation import BankSpec
from emulator.settings import ServeSettings
from emulator.store import Documents
from emulator.store.check import repair

HEADERS = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
BANK = "/_emulator/banks/x"


def asked(application: BankApplication, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    request = Request(method, target, HEADERS, json.dumps(body or {}).encode() if method == "PUT" else b"")
    answer = application.handle(request)
    application._turns._documents_of(request)  # as the end of its turn does
    assert isinstance(answer, Response)
    return answer.status, json.loads(answer.body) if answer.body else None


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    return tmp_path / "banks" / "x" / "documents.json"


@pytest.fixture
def application(tmp_path: Path, snapshot: Path, authority: CertificateAuthority) -> Iterator[BankApplication]:
    """The application over a bank x of an earlier run, which has a snapshot `kept` and damaged documents."""
    application = damaged(tmp_path, snapshot, authority)
    yield application
    application.close()


def damaged(
    state: Path, snapshot: Path, authority: CertificateAuthority, durability: Literal["process", "power"] = "process"
) -> BankApplication:
    settings = ServeSettings(state=state, durability=durability)
    before = assemble(settings, authority=authority)
    assert asked(before, "PUT", BANK)[0] == 201
    assert asked(before, "PUT", "/banks/x/_emulator/snapshots/kept")[0] < 300
    before.close()
    snapshot.write_bytes(b"gar" + snapshot.read_bytes())
    return assemble(settings, authority=authority)


@pytest.mark.parametrize("target", ["/banks/x/v1/accounts", "/banks/x/_emulator/clock", "/banks/x/console"])
def test_a_damaged_bank_is_503_and_names_file_and_byte(
    application: BankApplication, snapshot: Path, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    status, body = asked(application, "GET", target)
    [message] = body["tppMessages"]
    assert (status, message["code"]) == (503, "SYSTEM_ERROR")
    assert message["text"].startswith(f"Bank x cannot be opened: {snapshot} is damaged at byte 0: ")
    assert message["text"].endswith(" Replace or delete it (/_emulator/banks/x), or run state check --repair.")
    assert asked(application, "GET", target) == (status, body)
    [logged] = caplog.records
    assert "documents.json" in logged.getMessage()
    assert logged.exc_info is None, "logged once, without a traceback"


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8")
def test_a_path_that_is_no_utf_8_is_told_with_its_bytes_escaped(
    tmp_path: Path, authority: CertificateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    # What is captured goes from a test's process to the other as UTF-8.
    caplog.set_level(logging.CRITICAL, logger="emulator")
    state = tmp_path / os.fsdecode(b"b\xf8k")
    application = damaged(state, state / "banks" / "x" / "documents.json", authority)
    status, body = asked(application, "GET", "/banks/x/_emulator/clock")
    assert status == 503
    assert rf"{tmp_path}/b\udcf8k/banks/x/documents.json is damaged" in body["tppMessages"][0]["text"]
    repair(state / "banks" / "x", KINDS)
    [snapshot] = (state / "banks" / "x").glob("content-*")
    snapshot.write_bytes(b"gar" + snapshot.read_bytes())
    status, body = asked(application, "POST", "/banks/x/_emulator/snapshots/kept/restore")
    assert status == 409
    assert rf"{tmp_path}/b\udcf8k/banks/x/content-" in body["tppMessages"][0]["text"]
    application.close()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_put_makes_a_damaged_bank_anew(
    tmp_path: Path, snapshot: Path, authority: CertificateAuthority, durability: Literal["process", "power"]
) -> None:
    application = damaged(tmp_path, snapshot, authority, durability)
    assert asked(application, "PUT", BANK, {"seed": 7})[0] == 200
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 200
    assert asked(application, "GET", "/banks/x/_emulator/snapshots") == (200, {"snapshots": []})
    assert [path.name for path in (tmp_path / "banks" / "x").iterdir() if path.is_dir()] == []
    assert sorted(path.name for path in (tmp_path / "banks").iterdir()) == ["default", "x"]
    application.close()


def test_a_damaged_bank_that_is_not_made_anew_stays_as_it_was(application: BankApplication, snapshot: Path) -> None:
    before = snapshot.read_bytes()
    scenario = {"scenario": "s", "start": {"from": "snapshot:none"}}
    assert asked(application, "PUT", BANK, {"scenario": scenario})[0] == 400
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 503
    assert snapshot.read_bytes() == before
    assert asked(application, "GET", "/_emulator/banks")[1]["banks"] == [
        {"name": name, "baseUrl": f"http://127.0.0.1:8080/banks/{name}"} for name in ("default", "x")
    ]


@pytest.mark.parametrize(("meanwhile", "then"), [("PUT", 200), ("DELETE", 404)])
def test_what_becomes_of_a_damaged_bank_while_another_one_is_prepared_stays(
    application: BankApplication, monkeypatch: pytest.MonkeyPatch, meanwhile: str, then: int
) -> None:
    registry = application.registry
    prepared = registry._prepared

    def later(spec: BankSpec, documents: Documents) -> Generator[object, None, PreparedFixture]:
        monkeypatch.undo()
        yield None
        return (yield from prepared(spec, documents))

    monkeypatch.setattr(registry, "_prepared", later)
    making = registry.making("x", BankSpec())
    next(making)
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 503
    assert asked(application, meanwhile, BANK)[0] in (200, 204)
    with pytest.raises(BankError, match="created or deleted in the meantime"):
        next(making)
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == then


def test_delete_removes_a_damaged_bank(application: BankApplication, snapshot: Path) -> None:
    assert asked(application, "DELETE", BANK) == (204, None)
    assert not snapshot.parent.exists()
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 404


def test_a_repaired_bank_is_found_without_a_restart(application: BankApplication, snapshot: Path) -> None:
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 503
    repair(snapshot.parent, KINDS)
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 200


def test_a_bank_that_lost_in_a_repair_what_it_was_made_with_is_reset_to_the_known_state(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    settings = ServeSettings(state=tmp_path)
    before = assemble(settings, authority=authority)
    before.default.bank.documents.delete(META, "bank")
    before.close()
    application = assemble(settings, authority=authority)
    assert asked(application, "POST", "/_emulator/reset") == (200, {"fixtures": "known-state", "scenario": None})
    application.close()
