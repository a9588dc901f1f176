"""A log that is applied leaves what its changes left, indexes and orders too."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from emulator.store import Change, Document, Documents, Kind, Log, Ordered, memory_store
from emulator.store.table import DocumentTable

CARD = Kind[Document](
    "card", indexes=("colour", "holders"), ordered={"due": Ordered("due"), "shelf": Ordered("due", group="colour")}
)
NOTE = Kind[Document]("note")
KINDS = (CARD, NOTE)

VALUES = st.sampled_from([None, "a", "b", "c"])
CARDS = st.fixed_dictionaries(
    {"id": st.sampled_from("uvwxyz"), "colour": VALUES, "due": VALUES, "holders": st.lists(st.sampled_from("hij"))}
)
STEPS = st.one_of(
    st.tuples(st.just("put"), CARDS),
    st.tuples(st.just("note"), st.fixed_dictionaries({"id": st.sampled_from("uv"), "text": VALUES})),
    st.tuples(st.just("delete"), st.sampled_from("uvwxyz")),
    st.tuples(st.just("clear"), st.none()),
)


class Taped(Log):
    """Keeps the payloads."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[bytes] = []

    def append(self, change: Change) -> None:
        self.changes.append(change.payload)


def changed(store: Documents, changes: list[list[tuple[str, Any]]]) -> None:
    for steps in changes:
        with store.transaction():
            for verb, value in steps:
                if verb == "put":
                    store.put(CARD, value)
                elif verb == "note":
                    store.put(NOTE, value)
                elif verb == "delete":
                    store.delete(CARD, value)
                else:
                    store.restore(memory_store(KINDS).image())


def content(table: DocumentTable) -> dict[str, Any]:
    return {
        "rows": dict(table.sorted_rows()),
        "numbers": table.numbers,
        "next": table.next_number,
        "indexes": table.keys.indexes,
        "orders": table.keys.orders,
    }


@given(st.lists(st.lists(STEPS, max_size=6), max_size=4), st.lists(st.lists(STEPS, max_size=6), max_size=6))
def test_what_is_repeated_is_what_was_done(before: list[Any], after: list[Any]) -> None:
    tape = Taped()
    original = Documents(tape, KINDS)
    changed(original, before)
    copied = memory_store(KINDS)
    copied.replace(original.image(), original.sequence)
    tape.changes.clear()
    changed(original, after)
    for payload in tape.changes:
        copied.apply(payload)
    for kind in KINDS:
        there = content(original.tables[kind.name])
        there["next"] = content(copied.tables[kind.name])["next"]  # a number that was undone is free again
        assert content(copied.tables[kind.name]) == there


def test_a_number_that_another_document_has_is_refused() -> None:
    copied = memory_store(KINDS)
    copied.put(CARD, {"id": "a"})
    with pytest.raises(ValueError, match="number 1 exists already"):
        copied.apply(b'{"sequence":2,"put":[["card",1,{"id":"b"}]]}')
