"""What a change tells the journal: each document that differs from before, once, as it is at the end."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import orjson
from hypothesis import given

from emulator.store import Document, Documents, Kind, open_store
from tests.unit.store.making import records

A, B = Kind[Document]("a"), Kind[Document]("b")
KINDS = (A, B)

Place = tuple[str, str]
"""Kind and id."""

OPERATIONS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["1", "2", "3"]), st.sampled_from(["x", "y", None])), max_size=6
)


class Stop(Exception):
    pass


def held(store: Documents) -> dict[Place, tuple[int, Any]]:
    """Every document with its number."""
    differences = {}
    for kind in KINDS:
        table = store.tables[kind.name]
        differences.update(
            {(kind.name, identity): (number, store.get(kind, identity)) for identity, number in table.numbers.items()}
        )
    return differences


def applied(store: Documents, operations: list[tuple[str, str, str | None]]) -> list[Place]:
    """Do the operations, a text puts and None deletes; what they touched."""
    touched = []
    for name, identity, text in operations:
        kind = A if name == "a" else B
        known = store.get(kind, identity)
        wanted = None if text is None else {"id": identity, "text": text}
        if wanted is None:
            store.delete(kind, identity)
        else:
            store.put(kind, wanted)
        if wanted != known:
            touched.append((name, identity))
    return touched


def expected_changes(
    sequence: int, before: dict[Place, Any], after: dict[Place, Any], touched: list[Place]
) -> list[bytes]:
    """The change by its definition: as the one record that it makes, or none."""
    gone = [[kind, before[kind, name][0], name] for kind, name in touched if (kind, name) in before.keys() - after]
    came = [[place[0], *after[place]] for place in touched if place in after and after[place] != before.get(place)]
    change = {"sequence": sequence, **({"delete": gone} if gone else {}), "put": came}
    return [orjson.dumps(change)] if gone or came else []


@given(before=OPERATIONS, first=OPERATIONS, undone=OPERATIONS, last=OPERATIONS)
def test_a_change_tells_what_differs(before: list[Any], first: list[Any], undone: list[Any], last: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), KINDS)
        with store.transaction():
            applied(store, before)
        sequence, content = store.sequence, held(store)
        with store.transaction():
            touched = applied(store, first)
            with suppress(Stop), store.transaction():
                applied(store, undone)
                raise Stop
            touched += applied(store, last)
        expected = expected_changes(sequence + 1, content, held(store), list(dict.fromkeys(touched)))
        (journal,) = Path(folder).glob("journal-*.jsonl")
        payloads = [payload for _, payload in records(journal.read_bytes())]
        assert payloads[sequence:] == expected
        store.close()
