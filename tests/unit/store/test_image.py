"""Pictures of the whole content."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator.store import Document, Image, Kind, Store, StoreDamaged, StoreTooNew, memory_store, open_store
from emulator.store.check import verify
from emulator.store.snapshot import image_from_bytes, snapshot_bytes
from tests.unit.store.making import BOOK, KINDS, NOTE, answers, book, copy_of, some_books


@pytest.fixture
def filled(store: Store) -> Store:
    for document in some_books(20):
        store.put(BOOK, document)
    store.put(NOTE, {"id": "n"})
    return store


def test_restore_brings_back_everything_but_the_number(filled: Store) -> None:
    before, image, number = answers(filled), filled.image(), filled.sequence
    filled.put(BOOK, book("b1", author="changed"))
    filled.delete(BOOK, "b2")
    filled.put(BOOK, book("new", author="author 1", tags=["all"]))
    filled.delete(NOTE, "n")
    filled.restore(image)
    assert answers(filled) == before
    assert filled.sequence == number + 5


def test_an_image_can_be_restored_again_and_again_and_never_changes(filled: Store) -> None:
    before, image = answers(filled), filled.image()
    for _ in range(3):
        for number in range(5):
            filled.delete(BOOK, f"b{number}")
        filled.put(BOOK, book("new", author="author 1", tags=["all"], year=1, shelf="left", title="A"))
        filled.restore(image)
        assert answers(filled) == before


def test_restoring_what_is_there_already_is_no_change(filled: Store) -> None:
    image, number = filled.image(), filled.sequence
    filled.restore(image)
    assert filled.sequence == number


def test_restore_is_part_of_its_transaction(filled: Store) -> None:
    empty = memory_store(KINDS).image()
    before, number = answers(filled), filled.sequence
    with suppress(RuntimeError), filled.transaction():
        filled.put(BOOK, book("first"))
        filled.restore(empty)
        filled.put(BOOK, book("b1", author="in the new content"))
        assert filled.count(BOOK) == 1
        raise RuntimeError
    assert answers(filled) == before
    with filled.transaction():
        filled.put(BOOK, book("first"))
        filled.restore(empty)
        filled.put(BOOK, book("b1", author="in the new content"))
    assert filled.dump() == {"book": [book("b1", author="in the new content")], "note": []}
    assert filled.sequence == number + 1


def test_a_built_image_equals_a_filled_store() -> None:
    documents = some_books(40)
    store, other = memory_store(KINDS), memory_store(KINDS)
    for document in documents:
        store.put(BOOK, document)
    other.restore(Image.build(KINDS, {BOOK: documents}))
    assert answers(other) == answers(store)
    with pytest.raises(ValueError, match="'id'"):
        Image.build(KINDS, {BOOK: [{"title": "no id"}]})
    with pytest.raises(KeyError):
        Image.build(KINDS, {Kind[Document]("film"): [{"id": "f"}]})


def test_an_image_survives_as_bytes(filled: Store) -> None:
    before = answers(filled)
    data = snapshot_bytes(filled.image().tables)
    for number in range(10):
        filled.delete(BOOK, f"b{number}")
    filled.restore(image_from_bytes(data, KINDS))
    assert answers(filled) == before


def test_bytes_of_an_image_are_checked() -> None:
    data = snapshot_bytes(Image.build(KINDS, {BOOK: some_books()}).tables)
    with pytest.raises(StoreDamaged) as damaged:
        image_from_bytes(data.replace(b"Title 001", b"Title 009"), KINDS, file=Path("named.json"))
    assert damaged.value.file == Path("named.json")
    with pytest.raises(StoreDamaged):
        image_from_bytes(b"", KINDS)
    with pytest.raises(StoreTooNew):
        image_from_bytes(b'{"_store": {"1": {"id": "snapshot", "format": 3, "sequence": 0}}}', KINDS)


def test_an_image_of_other_declarations_is_indexed_anew(filled: Store) -> None:
    declared = (Kind[Document]("book", indexes=("title",)), Kind[Document]("note", indexes=("id",)))
    for image in (filled.image(), image_from_bytes(snapshot_bytes(filled.image().tables), declared)):
        other = memory_store(declared)
        other.restore(image)
        assert other.dump() == filled.dump()
        assert other.first(BOOK, title="Title 007") == filled.get(BOOK, "b7")
        assert other.count(NOTE, id="n") == 1


def test_restored_content_survives_a_kill(directory: Path) -> None:
    store = open_store(directory, KINDS)
    for document in some_books():
        store.put(BOOK, document)
    image, before = store.image(), answers(store)
    store.delete(BOOK, "b1")
    store.put(BOOK, book("b1", author="under another number"))
    store.put(BOOK, book("c1"))
    later = store.image()
    store.restore(image)
    assert answers(open_store(copy_of(directory), KINDS)) == before
    after = answers(store)
    store.restore(memory_store(KINDS).image())
    store.put(BOOK, book("takes the first number"))
    store.restore(later)
    store.restore(image)
    assert answers(open_store(copy_of(directory), KINDS)) == after == answers(store)
    store.close()


def test_what_a_restore_writes_down_does_not_grow_with_what_was_there(directory: Path) -> None:
    store = open_store(directory, KINDS)
    little = Image.build(KINDS, {BOOK: some_books(3), NOTE: [{"id": "kept"}]})

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
