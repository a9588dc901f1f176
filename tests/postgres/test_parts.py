"""A snapshot file in parts is read as if it were whole, and what is behind is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.bank.kinds import KINDS, PAYMENT
from emulator.store import Image
from emulator.store.kinds import by_name
from emulator.store.postgres import Parts
from emulator.store.snapshot import image_from_bytes, load, snapshot_bytes

WHOLE = bytes(range(100))


@pytest.mark.parametrize("size", [1, 7, 50, 99, 100, 1000])
def test_any_stretch_is_what_the_whole_has_there(size: int) -> None:
    for offset in range(0, 101, 3):
        for length in (1, 6, 7, 50, 200):
            parts = Parts(WHOLE[at : at + size] for at in range(0, 100, size))
            assert parts.size == 100
            assert parts.read(offset, length) == WHOLE[offset : offset + length]


def test_reading_on_gives_up_what_was_read() -> None:
    parts = Parts(WHOLE[at : at + 10] for at in range(0, 100, 10))
    assert parts.read(0, 5) == WHOLE[:5]
    assert parts.read(90, 10) == WHOLE[90:]
    read = b"".join(parts.read(at, 20) for at in range(5, 105, 20))
    assert read == WHOLE[5:]
    assert parts.read(0, 80) == b"", "a bank would be in memory twice"


@pytest.mark.parametrize("size", [64, 4096])
def test_a_snapshot_is_loaded_from_its_parts(size: int) -> None:
    documents = [{"id": f"p{number}", "status": "RCVD"} for number in range(500)]
    content = snapshot_bytes(Image.build(KINDS, {PAYMENT: documents}).tables)
    parts = Parts(content[at : at + size] for at in range(0, len(content), size))
    image = load(parts.read, parts.size, Path("checkpoint"), by_name(KINDS)).image
    assert list(image.tables["payment"].rows.values()) == list(
        image_from_bytes(content, KINDS).tables["payment"].rows.values()
    )
    assert snapshot_bytes(image.tables) == content
