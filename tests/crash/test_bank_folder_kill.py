"""A bank that is made or deleted as the process dies: it is there whole or not at all, and nothing else is left."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from emulator.api.messages import Request
from emulator.assemble import assemble
from emulator.bank.clock import real_now
from emulator.bank.kinds import KINDS, META
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings
from emulator.store.check import verify

pytestmark = pytest.mark.crash

CALLS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")
JSON = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
MADE = {"scenario": "slow-bank", "seed": 7}


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority(None, clock=real_now)


def asked(state: Path, authority: CertificateAuthority, method: str, body: object, die_at: int | None = None) -> None:
    """Make or delete the bank x over `state`, and die before the call `die_at` that changes files."""
    application = assemble(ServeSettings(state=state, durability="power"), authority=authority)
    calls = itertools.count()

    def die(event: str, arguments: tuple[object, ...]) -> None:
        if event in CALLS:
            path = str(arguments[0])  # a name alone where a whole folder is removed
            if (str(state) in path or "/" not in path) and next(calls) == die_at:
                os._exit(9)

    if die_at is not None:
        sys.addaudithook(die)
    application.handle(Request(method, "/_emulator/banks/x", JSON, json.dumps(body).encode() if body else b""))
    if die_at is None:
        application.close()


def dies(state: Path, authority: CertificateAuthority, method: str, body: object, at: int) -> bool:
    """Do it in a process of its own; whether that has died on the way."""
    child = os.fork()
    if child == 0:
        try:
            asked(state, authority, method, body, at)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_bank_is_there_whole_or_not_at_all(tmp_path: Path, authority: CertificateAuthority, method: str) -> None:
    before = tmp_path / "before"
    asked(before, authority, "PUT", MADE)
    if method == "PUT":
        asked(before, authority, "DELETE", None)
    seen = set()
    for at in itertools.count():
        state = tmp_path / "state"
        shutil.copytree(before, state)
        died = dies(state, authority, method, MADE if method == "PUT" else None, at)
        folders = [path for path in (state / "banks").iterdir() if not path.name.startswith(".")]
        assert all(verify(folder, KINDS).sound for folder in folders), at
        application = assemble(ServeSettings(state=state), authority=authority)
        assert {path.name for path in (state / "banks").iterdir()} == set(application.registry.names())
        there = application.registry.find("x")
        seen.add(there is not None)
        if there is not None:
            documents = there.bank.documents
            about = documents.get(META, "bank")
            assert about is not None, at
            made_with = about.pop("madeWith")
            assert about == {"id": "bank", "fixtures": "known-state", "seed": 7}, at
            assert [scenario["scenario"] for scenario in made_with["scenarios"]] == ["slow-bank"], at
            assert (documents.get(META, "scenario") or {})["source"]["scenario"] == "slow-bank", at
        application.close()
        shutil.rmtree(state)
        if not died:
            break
    assert at > 5
    assert seen == {True, False}


def test_a_damaged_bank_is_there_until_the_one_in_its_place_is(tmp_path: Path, authority: CertificateAuthority) -> None:
    before = tmp_path / "before"
    asked(before, authority, "PUT", MADE)
    (before / "banks" / "x" / "documents.json").write_text("damaged")
    seen = set()
    for at in itertools.count():
        state = tmp_path / "state"
        shutil.copytree(before, state)
        died = dies(state, authority, "PUT", MADE, at)
        assemble(ServeSettings(state=state), authority=authority).close()
        assert {path.name for path in (state / "banks").iterdir()} == {"default", "x"}, at
        sound = verify(state / "banks" / "x", KINDS).sound
        seen.add(sound)
        if not sound:
            assert (state / "banks" / "x" / "documents.json").read_text() == "damaged"
        shutil.rmtree(state)
        if not died:
            break
    assert seen == {True, False}
