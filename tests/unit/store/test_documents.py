"""Documents by id."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from emulator.store import Document, Documents, Kind, memory_store
from tests.unit.store.making import BOOK, KINDS, NOTE, book


def test_a_document_comes_back_as_it_went_in(store: Documents) -> None:
    document = book("b1", title="Æ", nested={"list": [1, 2.5, None, True], "text": 'a"b\\c\n'})
    store.put(BOOK, document)
    assert store.get(BOOK, "b1") == document
    assert store.exists(BOOK, "b1")


def test_nothing_outside_aliases_what_is_inside(store: Documents) -> None:
    tags = ["x"]
    store.put(BOOK, book("b1", tags=tags))
    tags.append("y")
    read = store.get(BOOK, "b1")
    assert read is not None
    read["tags"].append("z")
    next(store.all(BOOK))["tags"].append("z")
    store.find(BOOK, tags="x")[0]["tags"].append("z")
    assert store.get(BOOK, "b1") == book("b1", tags=["x"])


def test_all_is_the_content_at_the_call_whatever_changes_meanwhile(store: Documents) -> None:
    for identity in ("b1", "b2", "b3"):
        store.put(BOOK, book(identity))
    seen = []
    for document in store.all(BOOK):
        store.delete(BOOK, document["id"])
        store.put(BOOK, book("new " + document["id"]))
        seen.append(document["id"])
    assert seen == ["b1", "b2", "b3"]


def test_every_change_has_a_number_and_only_changes_have(store: Documents) -> None:
    begin = store.sequence
    store.put(BOOK, book("b1"))
    assert store.sequence == begin + 1
    store.put(BOOK, book("b1"))
    store.delete(BOOK, "b2")
    store.get(BOOK, "b1")
    assert store.sequence == begin + 1, "nothing changed"
    store.delete(BOOK, "b1")
    assert store.sequence == begin + 2


def test_a_transaction_without_effect_is_no_change(store: Documents) -> None:
    store.put(BOOK, book("b1"))
    number = store.sequence
    with store.transaction():
        pass
    with store.transaction():
        store.put(BOOK, book("passing"))
        store.delete(BOOK, "passing")
    with store.transaction():
        store.put(BOOK, book("b1", year=0))
        store.put(BOOK, book("b1"))
    assert store.sequence == number


def test_a_rollback_puts_back_a_document_that_has_no_place_in_an_order(store: Documents) -> None:
    store.put(BOOK, book("shelved", shelf="left", title=7))
    store.put(BOOK, book("lying about", title="Seven"))  # on no shelf, so it sorts among nothing
    with suppress(ZeroDivisionError), store.transaction():
        store.delete(BOOK, "lying about")
        raise ZeroDivisionError
    assert store.get(BOOK, "lying about") == book("lying about", title="Seven")


def test_a_change_with_a_number_that_another_document_has_is_refused(store: Documents) -> None:
    store.put(NOTE, {"id": "a"})
    with pytest.raises(ValueError, match="number 1 exists already"):
        store.apply(b'{"sequence":2,"put":[["note",1,{"id":"b"}]]}')


def test_dump_has_every_kind(store: Documents) -> None:
    store.put(NOTE, {"id": "n"})
    assert store.dump() == {"book": [], "note": [{"id": "n"}]}
    size, parts = store.json()
    assert b"".join(parts) == b'{"book":[],"note":[{"id":"n"}]}'
    assert size == len(b'{"book":[],"note":[{"id":"n"}]}')


def test_the_json_of_everything_comes_in_small_parts_and_as_it_stood(store: Documents) -> None:
    for count in (0, 1, 255, 256, 257, 1000):
        with store.transaction():
            for number in range(count):
                store.put(BOOK, book(f"b{number}", title="x" * 100))
        dump = store.dump()
        size, parts = store.json()
        with store.transaction():
            for number in range(count):
                store.delete(BOOK, f"b{number}")
        several = list(parts)
        assert json.loads(b"".join(several)) == dump, count
        assert (sum(map(len, several)), max(map(len, several)) < 60_000) == (size, True), count


def test_a_document_that_cannot_be_kept_is_refused_and_changes_nothing(store: Documents) -> None:
    store.put(BOOK, book("b0", author="a", year=1))
    before, number = store.dump(), store.sequence
    documents: tuple[dict[Any, Any], ...] = (
        {},
        {"id": None},
        {"id": 7},
        {"id": "x", "amount": object()},
        {"id": "x", "text": "\ud800"},
        {"id": "x", "number": 1 << 80},
        {"id": "x", 7: "a key that is no text"},
        {"id": "x", "author": {"an": "object"}},
        {"id": "x", "author": [["nested"]]},
        {"id": "x", "author": float("nan")},
        {"id": "x", "year": ["2000"]},
        {"id": "x", "shelf": 7, "title": "t"},
    )
    for document in documents:
        with pytest.raises(ValueError):
            store.put(BOOK, document)
        with suppress(ValueError), store.transaction():
            store.put(BOOK, book("b9", author="a"))
            store.put(BOOK, document)
        assert (store.dump(), store.sequence) == (before, number), document
        assert store.find(BOOK, author="a") == [book("b0", author="a", year=1)], document
    store.put(BOOK, book("b1", author="a"))
    assert store.count(BOOK, author="a") == 2


def test_a_kind_that_is_not_declared_is_refused(store: Documents) -> None:
    with pytest.raises(KeyError):
        store.get(Kind[Document]("film"), "f1")
    with pytest.raises(KeyError):
        store.put(Kind[Document]("film"), {"id": "f1"})


def test_names_that_the_file_needs_for_itself_are_no_kinds() -> None:
    with pytest.raises(ValueError, match="_store"):
        memory_store((Kind[Document]("_store"),))


def test_documents_are_kept_in_bytes_of_exact_size() -> None:
    store = memory_store(KINDS)
    store.put(NOTE, {"id": "n", "text": "x" * 700})
    table = store.tables["note"]
    (raw,) = table.rows.values()
    assert raw == b'{"id":"n","text":"' + b"x" * 700 + b'"}'
