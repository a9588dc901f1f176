"""A command whose stdout is closed, full, or read by nobody does its work and ends without an error of its own."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import pytest

from emulator.bank.bank import Bank
from tests.api.conftest import Run

# All print through the same function: one of each kind of output, and what click prints itself.
COMMANDS = (
    "payments list",
    "docs",
    "collection",
    "requests tail --no-follow",
    "request GET /v1/accounts",
    "tpp new shop",
    "rules remove none",
    "explain --request latest",
    "state copy none copy",
    "completion bash",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_whose_output_goes_nowhere_or_does_not_fit(
    run: Run,
    bank: Bank,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("folder"))
    if command.startswith("request GET"):
        run("tpp", "new", "demo")
    reading, writing = os.pipe()
    os.close(reading)
    unread = os.fdopen(writing, "w", buffering=1)
    full = open("/dev/full" if os.path.exists("/dev/full") else os.devnull, "w", buffering=1)  # noqa: SIM115
    for stdout, statuses in ((unread, (0, 1, 2, 141)), (None, (0, 1, 2)), (full, (0, 1, 2))):
        monkeypatch.setattr(sys, "stdout", stdout)
        status, _, err = run(*command.split())
        assert status in statuses
        assert "--debug" not in err
        assert "Broken pipe" not in err
    for stdout in (unread, full):
        with suppress(OSError):  # it writes what is left
            stdout.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_remark_that_cannot_be_written_fails_no_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "w", buffering=1)  # noqa: SIM115
    monkeypatch.setattr(sys, "stderr", full)
    assert run("payments", "list")[:2] == (0, "")
    assert run("consents", "revoke", "none")[0] == 2
    with suppress(OSError):  # it writes what is left
        full.close()
