"""Pictures of the whole content."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.store import Document, Documents, Kind, StoreDamaged, StoreTooNew, memory_store, open_store
from emulator.store.check import verify
from emulator.store.snapshot import snapshot_bytes
from tests.unit.store.making import BOOK, KINDS, NOTE, answers, book, copy_of, image_from_bytes, image_of, some_books


@pytest.fixture
def filled(store: Documents) -> Documents:
    for document in some_books(20):
        store.put(BOOK, document)
    store.put(NOTE, {"id": "n"})
    return store


def test_restoring_what_is_there_already_is_no_change(filled: Documents) -> None:
    image, number = filled.image(), filled.sequence
    filled.restore(image)
    assert filled.sequence == number


def test_a_restore_stores_what_a_later_version_has(directory: Path) -> None:
    film = Kind[Document]("film")
    store = open_store(directory, KINDS)
    store.restore(image_of((*KINDS, film), {BOOK: some_books(2), film: [{"id": "f"}]}))
    assert open_store(copy_of(directory), KINDS).dump() == store.dump()


def test_a_built_image_equals_a_filled_store() -> None:
    documents = some_books(40)
    store, other = memory_store(KINDS), memory_store(KINDS)
    for document in documents:
        store.put(BOOK, document)
    other.restore(image_of(KINDS, {BOOK: documents}))
    assert answers(other) == answers(store)
    with pytest.raises(ValueError, match="'id'"):
        image_of(KINDS, {BOOK: [{"title": "no id"}]})
    with pytest.raises(KeyError):
        image_of(KINDS, {Kind[Document]("film"): [{"id": "f"}]})


def test_bytes_of_an_image_are_checked() -> None:
    data = snapshot_bytes(image_of(KINDS, {BOOK: some_books()}).rows)
    with pytest.raises(StoreDamaged) as damaged:
        image_from_bytes(data.replace(b"Title 001", b"Title 009"), KINDS, file=Path("named.json"))
    assert damaged.value.file == Path("named.json")
    with pytest.raises(StoreDamaged):
        image_from_bytes(b"", KINDS)
    with pytest.raises(StoreTooNew):
        image_from_bytes(b'{"_store": {"1": {"id": "snapshot", "format": 3, "sequence": 0}}}', KINDS)


def test_what_a_restore_writes_down_does_not_grow_with_what_was_there(directory: Path) -> None:
    store = open_store(directory, KINDS)
    little = image_of(KINDS, {BOOK: some_books(3), NOTE: [{"id": "kept"}]})

    def written() -> int:
        with store.transaction():
            for document in some_books(50):
                store.put(BOOK, document)
        begin = sum(file.stat().st_size for file in directory.glob("journal-*"))
        with store.transaction():
            store.put(BOOK, book("b1", author="changed and gone"))
            store.restore(little)
            store.put(BOOK, book("b1", author="changed after"))
            store.put(NOTE, {"id": "new"})
            store.delete(BOOK, "b2")
        return sum(file.stat().st_size for file in directory.glob("journal-*")) - begin

    few = written()
    with store.transaction():
        for number in range(5000):
            store.put(BOOK, book(f"more-{number}", author="author 1", year=number))
    # the change's number may have grown by a digit
    assert written() <= few + 1
    killed = copy_of(directory)
    assert verify(killed, KINDS).sound
    assert answers(open_store(killed, KINDS)) == answers(store)
    assert [document["id"] for document in store.all(BOOK)] == ["b0", "b1"]
    store.close()


def test_a_restore_that_takes_little_away_writes_down_little(directory: Path) -> None:
    store = open_store(directory, KINDS)
    with store.transaction():
        for document in some_books(2000):
            store.put(BOOK, document)
    image = store.image()
    store.put(BOOK, book("one more"))
    (journal,) = directory.glob("journal-*")
    before = journal.stat().st_size
    store.restore(image)
    assert journal.stat().st_size - before < 200
    store.close()


def test_indexes_are_the_same_whether_documents_come_one_by_one_or_from_a_file() -> None:
    """Members are looked for in the texts: they may stand anywhere, and so may what looks like them."""
    members: list[dict[str, object]] = [
        {"author": "plain", "title": "t", "shelf": "s", "year": "2001"},
        {"author": "an \"author\": 'x'", "title": 'b","author":"no', "shelf": "back\\slash", "text": ',"author":"no"}'},
        {"author": "before", "nested": {"author": "no", "more": [{"author": "no"}]}},
        {"nested": {"first": 1, "author": "no", "tags": ["no"]}, "author": "after"},
        {"nested": {"first": 1, "author": "no", "year": "no"}},
        {"author": "a brace } in it", "title": "]}", "shelf": "{"},
        {"author": None, "tags": None, "year": None},
        {"author": "", "tags": ["x", "y", "x"], "year": "", 'odd","author': "no", 'odd"author': "no"},
        {"author": "Ærlig talt \N{WHITE SMILING FACE}", "tags": "one", "year": "\n", "shelf": "\u0001", "title": "z"},
        {"tags": [], "author": "plain"},
        {"author": 7, "tags": [7, "7"]},
    ]
    documents = [{"id": f"b{number}", **some} for number, some in enumerate(members)]
    documents += [{**some, "id": f"last {number}"} for number, some in enumerate(members)]
    documents.append({"author": 'a "quoted" id', "id": 'x"y', "tags": ["all"]})
    built = image_of(KINDS, {BOOK: documents})
    read = image_from_bytes(snapshot_bytes(built.rows), KINDS)
    ours, theirs = built.tables["book"], read.tables["book"]
    assert (theirs.rows, theirs.numbers, theirs.next_number) == (ours.rows, ours.numbers, ours.next_number)
    assert theirs.keys.indexes == ours.keys.indexes
    assert theirs.keys.orders == ours.keys.orders
    assert set(ours.keys.indexes["author"]) > {"plain", "before", "after", 7, "a brace } in it"}
