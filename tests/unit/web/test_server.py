"""How many files a process that serves may have open."""

from __future__ import annotations

import resource

import pytest

from emulator.web import server

UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "most", "then"),
    [
        (1024, 1_048_576, UNLIMITED, 65536),
        (1024, 4096, UNLIMITED, 4096),
        (100_000, UNLIMITED, UNLIMITED, 100_000),
        (UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED),
        (256, UNLIMITED, 61440, 10240),  # macOS, where the most stands in kern.maxfilesperproc
        (20_000, UNLIMITED, 61440, 20_000),
        (256, UNLIMITED, 5000, 256),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_takes_it(
    soft: int, hard: int, most: int, then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = (soft, hard)

    def set_limits(_what: int, wanted: tuple[int, int]) -> None:
        nonlocal limits
        if most != UNLIMITED and wanted[0] > most:
            raise ValueError("current limit exceeds maximum limit")
        limits = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    server.raise_file_limit()
    assert limits == (then, hard)
