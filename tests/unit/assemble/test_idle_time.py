"""What a process does while no requests come."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import assemble
from emulator.assemble.application import YOUNG
from emulator.settings import ServeSettings


class Node:
    """An object that refers to itself: only a garbage collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(("objects", "handled", "freed"), [(YOUNG + 1, 0, True), (YOUNG + 1, 1, False), (10, 0, False)])
async def test_garbage_is_collected_if_there_is_much_and_no_request_has_come(
    objects: int, handled: int, freed: bool, tmp_path: Path
) -> None:
    application = assemble.assemble(ServeSettings(port=8080, state=tmp_path))
    application.start()
    gc.collect()
    node = weakref.ref(Node())
    others = [[number] for number in range(objects)]
    application._turns.count += handled
    application._use_idle_time()
    assert (node() is None) == freed
    assert len(others) == objects
    application.stop()
    application.close()
