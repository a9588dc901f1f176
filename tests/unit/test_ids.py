"""Ids and tokens: well-formed, and never the same twice, not even in a forked process."""

from __future__ import annotations

import os
import re
from uuid import UUID

from emulator.bank.ids import Ids
from emulator.bank.kinds import KINDS
from emulator.store import memory_store


def ids(seed: int | None = None) -> Ids:
    return Ids(memory_store(KINDS), seed=seed)


def test_ids_are_uuids_of_version_4_and_differ() -> None:
    source = ids()
    drawn = [source.new() for _ in range(300)]
    assert len(set(drawn)) == 300
    for text in drawn:
        assert str(UUID(text)) == text
        assert (UUID(text).version, UUID(text).variant) == (4, UUID(int=1 << 63).variant)


def test_every_bit_that_the_form_leaves_free_is_drawn() -> None:
    source = ids(seed=1)
    seen = [int(source.new().replace("-", ""), 16) for _ in range(200)]
    ones, zeros = 0, 0
    for number in seen:
        ones, zeros = ones | number, zeros | ~number
    fixed = 0xF << 76 | 3 << 62
    assert ones & zeros & ((1 << 128) - 1) == ((1 << 128) - 1) & ~fixed


def test_tokens_are_43_characters_that_fit_an_address() -> None:
    source = ids()
    drawn = [source.token() for _ in range(300)]
    assert len(set(drawn)) == 300
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in drawn)


def test_a_forked_process_draws_ids_of_its_own() -> None:
    source = ids()
    source.new()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.new().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    assert UUID(theirs)
    assert theirs != source.new()
