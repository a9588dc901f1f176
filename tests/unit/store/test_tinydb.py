"""TinyDB is the document store: stock TinyDB reads the file, TinyDB's methods work on our tables."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from tinydb import TinyDB, where
from tinydb.storages import Storage
from tinydb.table import Document as Numbered
from tinydb.table import Table

from emulator.store import Documents, StoreDamaged, open_store
from emulator.store.table import DocumentTable
from tests.unit.store.making import BOOK, KINDS, NOTE, answers, book, copy_of, disagreement, some_books, with_books


@pytest.fixture
def filled(directory: Path) -> Documents:
    return with_books(directory)


def table(store: Documents) -> DocumentTable:
    return store.tables["book"]


def test_stock_tinydb_opens_and_queries_the_snapshot(directory: Path) -> None:
    store = with_books(directory)
    store.close()
    with TinyDB(directory / "documents.json", access_mode="r") as stock:
        assert stock.tables() == {"book", "note", "_store"}
        assert stock.table("book").all() == some_books()
        assert stock.table("book").search(where("author") == "author 1") == [some_books()[1], some_books()[3]]
        assert [b.doc_id for b in stock.table("book")] == [1, 2, 3, 4, 5]
        (about,) = stock.table("_store").all()
        assert (about["format"], about["sequence"]) == (2, 5)


def test_a_snapshot_that_was_changed_with_stock_tinydb_is_read(directory: Path) -> None:
    store = with_books(directory)
    store.close()
    with TinyDB(directory / "documents.json") as stock:
        stock.table("book").update({"author": "a person's hand"}, where("id") == "b1")
        stock.table("book").insert({"id": "by hand", "year": 1})
        stock.table("book").remove(where("id") == "b0")
    store = open_store(directory, KINDS)
    assert store.first(BOOK, author="a person's hand") == some_books()[1] | {"author": "a person's hand"}
    assert [b["id"] for b in store.all(BOOK)] == ["b1", "b2", "b3", "b4", "by hand"]
    assert store.first_key("year", BOOK) == 1
    assert store.sequence == 5
    before = answers(store)
    store.put(NOTE, {"id": "n"})
    store.delete(NOTE, "n")
    store.close()
    assert (directory / "documents.json").read_bytes().startswith(b'{"_store":{"1":{"id":"snapshot","format":2,')
    assert answers(open_store(directory, KINDS)) == before


@pytest.mark.parametrize("document", [{"no": "id"}, {"id": 7}, {"id": "b1"}])
def test_a_hand_that_leaves_no_proper_document_is_told(directory: Path, document: dict[str, object]) -> None:
    store = open_store(directory, KINDS)
    store.put(BOOK, book("b1"))
    store.close()
    with TinyDB(directory / "documents.json") as stock:
        stock.table("book").insert(document)
    with pytest.raises(StoreDamaged, match="'id'"):
        open_store(directory, KINDS)


def test_tinydbs_reading_methods_work_on_our_tables(filled: Documents) -> None:
    books = table(filled)
    assert isinstance(books, Table)
    assert isinstance(books.storage, Storage)
    assert len(books) == 5
    assert books.all() == some_books()
    assert books.search(where("year") < 1998) == some_books()[3:]
    assert books.get(doc_id=2) == some_books()[1]
    assert books.get(where("id") == "b3") == some_books()[3]
    assert books.get(doc_id=9) is None
    assert books.contains(where("author") == "author 0")
    assert books.count(where("author") == "author 0") == 3
    filled.put(BOOK, book("b1", author="author 0"))
    assert books.count(where("author") == "author 0") == 4, "nothing is answered from a cache"


def test_tinydbs_writing_methods_are_changes_like_others(filled: Documents) -> None:
    books, number = table(filled), filled.sequence
    assert books.update({"author": "new"}, where("year") < 1998) == [4, 5]
    assert filled.count(BOOK, author="new") == 2
    assert books.insert({"id": "b9", "author": "new"}) == 6
    assert books.insert(Numbered({"id": "b8", "author": "new"}, doc_id=20)) == 20
    assert books.insert_multiple([{"id": "b10"}, {"id": "b11", "tags": ["all"]}]) == [21, 22]
    assert books.upsert({"id": "b9", "author": "newer"}, where("id") == "b9") == [6]
    assert books.remove(doc_ids=[1]) == [1]
    assert filled.sequence == number + 6, "each is one change"
    assert [b["id"] for b in filled.all(BOOK)] == ["b1", "b2", "b3", "b4", "b9", "b8", "b10", "b11"]
    assert [b["id"] for b in filled.find(BOOK, author="new")] == ["b3", "b4", "b8"]
    books.update({"id": "renamed"}, where("id") == "b10")
    assert filled.exists(BOOK, "renamed")
    assert not filled.exists(BOOK, "b10")
    books.truncate()
    assert filled.dump()["book"] == []
    assert filled.count(BOOK, author="new") == 0


def test_tinydbs_writes_join_a_transaction(filled: Documents) -> None:
    before = answers(filled)
    with suppress(ZeroDivisionError), filled.transaction():
        table(filled).update({"author": "new"})
        table(filled).remove(where("id") == "b1")
        raise ZeroDivisionError
    assert answers(filled) == before


def test_tinydb_cannot_make_a_document_that_we_could_not(filled: Documents) -> None:
    before = answers(filled)
    for document in ({"no": "id"}, {"id": "b1"}):
        with pytest.raises(ValueError):
            table(filled).insert(document)
    with pytest.raises(ValueError):
        table(filled).update({"id": "the same"})
    assert answers(filled) == before


def test_what_tinydb_wrote_survives_a_kill(directory: Path) -> None:
    store = with_books(directory)
    table(store).update({"author": "new"}, where("year") < 1998)
    table(store).remove(where("id") == "b0")
    table(store).insert(Numbered({"id": "b8"}, doc_id=20))
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_a_file_in_another_order_is_read_in_that_of_the_numbers(directory: Path) -> None:
    store = with_books(directory)
    before = answers(store)
    store.close()
    file = directory / "documents.json"
    whole = json.loads(file.read_bytes())
    whole["book"] = dict(reversed(whole["book"].items()))
    file.write_text(json.dumps(whole))
    again = open_store(directory, KINDS)
    assert answers(again) == before
    assert disagreement(again.tables["book"]) is None
    again.close()
