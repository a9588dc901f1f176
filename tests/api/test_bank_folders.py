"""The folders of named banks: made and deleted whole or not at all, on a full disk and with fsyncs that fail too."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.api.messages import Request, Stream
from emulator.assemble import assemble, registry
from emulator.assemble.application import BankApplication
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings
from emulator.store.disk import Disk
from tests.api.control_desk import asked

HEADERS = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
BANK = "/_emulator/banks/x"


def names(application: BankApplication) -> list[str]:
    status, listed = asked(application, "GET", "/_emulator/banks")
    assert status == 200
    return [bank["name"] for bank in listed["banks"]]


class Watched:
    """The calls to the disk since `watch`, in order; those in `failing` fail, the first `spared` of them do not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failing: tuple[str, ...] = ()
        self.spared = 0
        for name in ("write", "sync", "sync_directory", "rename"):
            monkeypatch.setattr(Disk, name, self._watched(name, getattr(Disk(), name)))

    def _watched(self, name: str, call: Any) -> Any:
        def watched(_disk: Disk, *arguments: Any) -> Any:
            self.calls.append((name, arguments[-1].name if isinstance(arguments[-1], Path) else ""))
            if name in self.failing:
                if self.spared == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                self.spared -= 1
            return call(*arguments)

        return watched


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.fixture
def application(tmp_path: Path, authority: CertificateAuthority, disk: Watched) -> Iterator[BankApplication]:
    application = assemble(ServeSettings(state=tmp_path), authority=authority)
    yield application
    application.close()


@pytest.fixture
def power(tmp_path: Path, authority: CertificateAuthority, disk: Watched) -> Iterator[BankApplication]:
    """A application with durability `power`."""
    application = assemble(ServeSettings(state=tmp_path, durability="power"), authority=authority)
    disk.calls.clear()
    yield application
    disk.failing = ()
    application.close()


def test_a_stream_of_events_ends_with_its_bank(application: BankApplication) -> None:
    assert asked(application, "PUT", BANK)[0] == 201
    stream = application.handle(Request("GET", "/banks/x/_emulator/events", HEADERS))
    assert isinstance(stream, Stream)
    chunks: list[bytes | None] = []
    stream.subscribe(chunks.append)
    assert asked(application, "PUT", BANK)[0] == 200  # created again it is the same bank
    assert None not in chunks
    assert asked(application, "DELETE", BANK)[0] == 204
    assert chunks[-1] is None


def test_of_a_bank_that_did_not_fit_on_the_disk_nothing_is_left(
    application: BankApplication, tmp_path: Path, disk: Watched
) -> None:
    disk.failing = ("write",)
    assert asked(application, "PUT", BANK, {"seed": 3})[0] == 503
    assert names(application) == ["default"]
    assert [path.name for path in (tmp_path / "banks").iterdir()] == ["default"]
    assert asked(application, "GET", "/banks/x/_emulator/clock")[0] == 404
    disk.failing = ()
    assert asked(application, "PUT", BANK, {"seed": 3})[0] == 201
    meta = asked(application, "GET", "/banks/x/_emulator/state")[1]["meta"]
    about = next(document for document in meta if document["id"] == "bank")
    assert (about["fixtures"], about["seed"]) == ("known-state", 3), "it has the ids that it would have had"
    assert asked(application, "PUT", "/banks/x/_emulator/settings", {"calendar": "norway"})[0] == 200


def test_a_bank_that_cannot_be_made_anew_stays_as_it_was(application: BankApplication, disk: Watched) -> None:
    asked(application, "PUT", BANK, {"scenario": "slow-bank", "seed": 1})
    asked(application, "GET", "/banks/x/v1/accounts")
    views = [f"/banks/x/_emulator/{view}" for view in ("state", "rules", "settings", "scenario", "requests")]
    before = [asked(application, "GET", view) for view in views]
    disk.failing = ("write",)
    assert asked(application, "PUT", BANK, {"scenario": "insufficient-funds", "seed": 2})[0] == 503
    assert [asked(application, "GET", view) for view in views] == before
    disk.failing = ()
    assert asked(application, "PUT", BANK, {"seed": 2})[0] == 200


def test_a_bank_made_anew_has_its_seed_anew(application: BankApplication) -> None:
    def made_with(body: dict[str, Any]) -> Any:
        assert asked(application, "PUT", BANK, body)[0] < 300
        documents = asked(application, "GET", "/banks/x/_emulator/state")[1]["meta"]
        about = next(document for document in documents if document["id"] == "bank")
        return about["fixtures"], about["madeWith"], about.get("seed")

    assert made_with({"seed": 7, "fixtures": "empty"}) == ("empty", {"fixtures": "empty"}, 7)
    assert made_with({}) == ("known-state", {"fixtures": "known-state"}, None)


def test_a_bank_that_is_made_anew_has_no_snapshots(application: BankApplication, tmp_path: Path, disk: Watched) -> None:
    snapshots = "/banks/x/_emulator/snapshots"
    asked(application, "PUT", BANK)
    asked(application, "PUT", f"{snapshots}/before")
    before = asked(application, "GET", snapshots)
    from_before = {"scenario": {"scenario": "s", "start": {"from": "snapshot:before"}}}
    status, refused = asked(application, "PUT", BANK, from_before)
    assert (status, refused["tppMessages"][0]["text"]) == (400, "There is no snapshot before.")
    disk.failing = ("write",)
    assert asked(application, "PUT", BANK, {"seed": 3})[0] == 503
    disk.failing = ()
    assert asked(application, "GET", snapshots) == before, "nothing was made"
    assert asked(application, "PUT", BANK)[0] == 200
    assert asked(application, "GET", snapshots) == (200, {"snapshots": []})
    assert list(tmp_path.rglob("content-*")) == []


def test_an_end_that_takes_too_long_leaves_what_is_written_in_the_journal(
    tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServeSettings(state=tmp_path)
    application = assemble(settings, authority=authority)
    for bank in ("", "/banks/x"):
        assert asked(application, "PUT", f"/_emulator/banks/{bank[7:] or 'default'}")[0] < 300
        assert asked(application, "PUT", f"{bank}/_emulator/settings", {"calendar": "norway"})[0] == 200
    monkeypatch.setattr(registry, "COMPACTING", 0.0)
    application.close()
    for name in ("default", "x"):
        assert not (tmp_path / "banks" / name / "documents.json").exists()
    again = assemble(settings, authority=authority)
    for bank in ("", "/banks/x"):
        assert asked(again, "GET", f"{bank}/_emulator/settings")[1]["calendar"] == "norway"
    again.close()


def test_the_short_journals_of_many_banks_hold_up_no_end(
    tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = assemble(ServeSettings(state=tmp_path), authority=authority)
    assert asked(application, "PUT", "/_emulator/banks/x")[0] == 201
    assert asked(application, "PUT", "/_emulator/settings", {"calendar": "norway"})[0] == 200
    monkeypatch.setattr(registry, "COMPACTING_SHORT", -1.0)
    application.close()
    assert (tmp_path / "banks" / "default" / "documents.json").exists()
    assert not (tmp_path / "banks" / "x" / "documents.json").exists()
    again = assemble(ServeSettings(state=tmp_path), authority=authority)
    assert names(again) == ["default", "x"]
    again.close()


def test_only_folders_with_the_name_of_a_bank_are_listed(application: BankApplication, tmp_path: Path) -> None:
    (tmp_path / "banks" / "file").write_text("x")
    for name in ("Foo", ".deleted-0123456789ab", "a b"):
        (tmp_path / "banks" / name).mkdir()
    assert names(application) == ["default"]


def test_what_a_kill_left_is_gone_with_the_next_start(tmp_path: Path, authority: CertificateAuthority) -> None:
    settings = ServeSettings(state=tmp_path)
    assemble(settings, authority=authority).close()
    for name in (".deleted-0123456789ab", ".new-0123456789ab", ".mine"):
        (tmp_path / "banks" / name / "snapshots").mkdir(parents=True)
    assemble(settings, authority=authority).close()
    assert sorted(path.name for path in (tmp_path / "banks").iterdir()) == [".mine", "default"]


def test_with_power_a_bank_is_on_the_medium_before_it_is_acknowledged(power: BankApplication, disk: Watched) -> None:
    assert asked(power, "PUT", BANK)[0] == 201
    renamed = disk.calls.index(("rename", "x"))
    assert ("sync", "") in disk.calls[:renamed], "the journal"
    assert disk.calls[renamed + 1 :] == [("sync_directory", "banks")]
    disk.calls.clear()
    assert asked(power, "PUT", BANK, {"fixtures": "empty"})[0] == 200
    assert disk.calls[-1] == ("sync", "")
    disk.calls.clear()
    assert asked(power, "DELETE", BANK)[0] == 204
    assert [name for name, _ in disk.calls] == ["rename", "sync_directory"]


def test_the_folders_of_the_state_are_on_the_medium_with_power(
    tmp_path: Path, authority: CertificateAuthority, disk: Watched
) -> None:
    state = tmp_path / "new" / "state"
    assemble(ServeSettings(state=state, durability="power"), authority=authority).close()
    synced = {name for call, name in disk.calls if call == "sync_directory"}
    assert {tmp_path.name, "new", "state", "banks"} <= synced


def test_process_durability_pays_for_none_of_it(application: BankApplication, disk: Watched) -> None:
    assert asked(application, "PUT", BANK)[0] == 201
    assert asked(application, "PUT", BANK)[0] == 200
    assert asked(application, "DELETE", BANK)[0] == 204
    assert not [call for call in disk.calls if call[0].startswith("sync")]


@pytest.mark.parametrize("call, spared", [("sync", 0), *(("sync_directory", number) for number in range(3))])
def test_a_bank_whose_fsync_fails_is_not_made(
    power: BankApplication, tmp_path: Path, disk: Watched, call: str, spared: int
) -> None:
    disk.failing, disk.spared = (call,), spared
    assert asked(power, "PUT", BANK)[0] == 503
    disk.failing = ()
    assert [path.name for path in (tmp_path / "banks").iterdir()] == ["default"]
    assert asked(power, "PUT", BANK)[0] == 201


def test_a_bank_whose_fsync_fails_is_not_deleted(power: BankApplication, disk: Watched) -> None:
    asked(power, "PUT", BANK)
    disk.failing = ("sync_directory",)
    assert asked(power, "DELETE", BANK)[0] == 503
    disk.failing = ()
    assert names(power) == ["default", "x"]
    assert asked(power, "PUT", "/banks/x/_emulator/settings", {"calendar": "norway"})[0] == 200
    assert asked(power, "DELETE", BANK)[0] == 204


def test_a_bank_whose_fsync_fails_is_not_made_anew(power: BankApplication, disk: Watched) -> None:
    asked(power, "PUT", BANK, {"scenario": "slow-bank"})
    before = asked(power, "GET", "/banks/x/_emulator/state"), asked(power, "GET", "/banks/x/_emulator/rules")
    disk.failing = ("sync",)
    assert asked(power, "PUT", BANK, {"fixtures": "empty"})[0] == 503
    disk.failing = ()
    after = asked(power, "GET", "/banks/x/_emulator/state"), asked(power, "GET", "/banks/x/_emulator/rules")
    assert after == before


@pytest.mark.parametrize(
    ("call", "spared", "replaced"),
    [("rename", 0, False), ("sync_directory", 2, False), ("write", 0, True), ("sync", 0, True)],
)
def test_the_tpp_of_a_bank_that_is_not_made_is_not_issued(
    tmp_path: Path, disk: Watched, call: str, spared: int, replaced: bool
) -> None:
    authority = CertificateAuthority(tmp_path, clock=real_now, power=True)
    power = assemble(ServeSettings(state=tmp_path, durability="power"), authority=authority)
    asked(power, "POST", "/_emulator/tpps", {"name": "old"})
    if replaced:
        asked(power, "PUT", BANK)
    before = asked(power, "GET", "/_emulator/tpps")
    key = (tmp_path / "tpps" / "old" / "key.pem").read_bytes()
    for name in ("old", "new"):
        disk.failing, disk.spared = (call,), spared
        assert asked(power, "PUT", BANK, {"tpp": {"name": name}})[0] == 503
        disk.failing = ()
        assert asked(power, "GET", "/_emulator/tpps") == before
    assert (tmp_path / "tpps" / "old" / "key.pem").read_bytes() == key
    assert [path.name for path in (tmp_path / "tpps").iterdir()] == ["old"]
    power.close()
