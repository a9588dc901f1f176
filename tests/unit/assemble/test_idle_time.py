"""What a process does while no requests come."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from emulator import assemble
from emulator.assemble.application import YOUNG
from emulator.settings import ServeSettings


class Node:
    """An object that refers to itself: only a garbage collection frees it."""

    def __init__(self) -> None:
        self.itself = self


async def test_garbage_is_collected_if_there_is_much_and_no_request_has_come(tmp_path: Path) -> None:
    application = assemble.assemble(ServeSettings(port=8080, state=tmp_path))
    application.start()
    gc.disable()
    try:
        for objects, handled, freed in ((10, 0, False), (2 * YOUNG, 1, False), (2 * YOUNG, 0, True)):
            gc.collect(1)  # counts what is young from here
            node = weakref.ref(Node())
            others = [[number] for number in range(objects)]
            application._turns.count += handled
            application._use_idle_time()
            assert (node() is None) == freed, (objects, handled)
            assert len(others) == objects
            del others
    finally:
        gc.enable()
    application.stop()
    application.close()
