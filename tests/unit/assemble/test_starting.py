"""While the documents are read: /health 200, /ready 503 with the progress, everything else 503."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from emulator import assemble
from emulator.api.messages import Request
from emulator.assemble import application as starting
from emulator.assemble.application import Progress, StartingApplication, is_slow
from emulator.cli import serve
from emulator.settings import ServeSettings
from emulator.store import open_store
from emulator.web.server import listen, port_of, run_loop
from tests.unit.store.making import KINDS, NOTE


def asked(application: StartingApplication, target: str) -> tuple[int, Any]:
    turn = application.turn()
    answer = turn.handle(Request("GET", target, [("X-Request-ID", "7")]))
    turn.end()
    return answer.status, json.loads(answer.body)


def test_health_is_fine_and_ready_tells_how_far_it_is() -> None:
    progress = Progress()
    application = StartingApplication(progress)
    progress(25 << 20, 100 << 20)
    assert asked(application, "/health")[0] == 200
    status, body = asked(application, "/ready")
    assert (status, body["reading"]["percent"]) == (503, 25)
    status, body = asked(application, "/v1/accounts")
    assert (status, body["tppMessages"][0]["code"]) == (503, "SYSTEM_ERROR")
    assert "25 %" in body["tppMessages"][0]["text"]


def test_the_log_hears_of_the_progress_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(starting, "LOG_INTERVAL", 0.0)
    Progress()(50 << 20, 100 << 20)
    assert caplog.messages == ["reading the documents: 50 % of 100 MB"]


def test_a_recovery_tells_how_far_it_is(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "1"})
    store.log.compact()
    for number in range(5):
        store.put(NOTE, {"id": f"n{number}"})
    store.log.discard()
    progress: list[tuple[int, int]] = []
    open_store(directory, KINDS, progress=lambda done, total: progress.append((done, total))).log.discard()
    total = sum(path.stat().st_size for path in directory.glob("*.json*"))
    assert {of for _, of in progress} == {total}
    done = [at for at, _ in progress]
    assert done == sorted(done)
    assert done[0] == 0
    assert len(done) == 7
    assert done[-1] < total


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "bank"


def test_only_large_documents_are_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServeSettings(state=tmp_path)
    assert not is_slow(settings)
    bank = tmp_path / "banks" / "default"
    bank.mkdir(parents=True)
    (bank / "journal-000000000001.jsonl").write_bytes(b"x" * 100)
    assert not is_slow(settings)
    monkeypatch.setattr(starting, "SLOW_BYTES", 99)
    assert is_slow(settings)
    assert not is_slow(ServeSettings(state=tmp_path, ephemeral=True))


def test_the_address_answers_while_the_documents_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "is_slow", lambda settings: True)
    plain = listen(["127.0.0.1"], 0)
    url = f"http://127.0.0.1:{port_of(plain)}"
    seen: list[tuple[int, bytes]] = []
    application = object()

    def read(settings: ServeSettings, *, progress: Progress) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        progress(1, 4)
        seen.append((urlopen(f"{url}/health").status, b""))
        try:
            urlopen(f"{url}/ready")
        except HTTPError as refused:
            seen.append((refused.code, refused.read()))
        return application

    monkeypatch.setattr(assemble, "assemble", read)
    assert serve._starting(ServeSettings(state=tmp_path, port=0), plain) is application
    assert [status for status, _ in seen] == [200, 503]
    assert b'"percent":25' in seen[1][1]

    async def still_listens() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(plain))
        writer.close()

    run_loop(still_listens())
    assert all(os.fstat(bound.fileno()) for bound in plain)
    for bound in plain:
        bound.close()
