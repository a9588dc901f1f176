"""What a store leaves in its directory, and what the next start makes of it."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from zlib import crc32

import pytest

from emulator.store import (
    Document,
    Documents,
    Kind,
    Ordered,
    StoreDamaged,
    StoreTooNew,
    StoreUnwritable,
    memory_store,
    open_store,
)
from emulator.store.check import verify
from emulator.store.journal import sealed
from tests.unit.store.making import BOOK, KINDS, NOTE, book, copy_of, some_books, with_books


def journals(directory: Path) -> list[Path]:
    return sorted(directory.glob("journal-*.jsonl"))


def test_a_journal_line_is_json_with_a_checksum(directory: Path) -> None:
    store = open_store(directory, KINDS)
    with store.transaction():
        store.put(BOOK, book("b1", title="Æ\n"))
        store.put(NOTE, {"id": "n"})
    store.delete(BOOK, "b1")
    store.put(NOTE, {"id": "n"})
    (journal,) = journals(directory)
    first, second, rest = journal.read_bytes().split(b"\n")
    assert rest == b""
    record = json.loads(first)
    assert record["change"] == {
        "sequence": 1,
        "put": [["book", 1, {"id": "b1", "title": "Æ\n"}], ["note", 1, {"id": "n"}]],
    }
    payload = first.split(b',"change":')[1][:-1]
    assert record["crc"] == f"{crc32(payload):08x}"
    assert json.loads(second)["change"] == {"sequence": 2, "delete": [["book", 1, "b1"]], "put": []}
    store.close()


def test_a_rolled_back_or_empty_transaction_writes_nothing(directory: Path) -> None:
    store = open_store(directory, KINDS)
    with store.transaction():
        store.put(NOTE, {"id": "n"})
        store.delete(NOTE, "n")
    assert [journal.stat().st_size for journal in journals(directory)] == [0]
    store.close()
    assert not (directory / "documents.json").exists(), "there is nothing to keep"


def test_close_leaves_a_snapshot_and_an_empty_journal(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    store.close()
    assert sorted(path.name for path in directory.iterdir()) == ["documents.json", "journal-000000000002.jsonl", "lock"]
    assert [journal.stat().st_size for journal in journals(directory)] == [0]
    written = (directory / "documents.json").stat().st_mtime_ns
    open_store(directory, KINDS).close()
    assert (directory / "documents.json").stat().st_mtime_ns == written, "nothing changed, nothing to write"


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        directory = tmp_path / "made" / "too" / "bank"
        store = open_store(directory, KINDS)
        store.put(NOTE, {"id": "n"})
        store.log.compact()
        for path in directory.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        for path in (directory, directory.parent, directory.parent.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        store.close()
    finally:
        os.umask(old)


def test_a_closed_store_reads_but_does_not_change(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    store.close()
    with pytest.raises(StoreUnwritable, match="closed"):
        store.put(NOTE, {"id": "m"})
    assert store.dump()["note"] == [{"id": "n"}]
    store.close()


def test_a_torn_tail_is_dropped_with_one_warning(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    (journal,) = journals(directory)
    whole = journal.read_bytes()
    store.put(NOTE, {"id": "torn"})
    killed = copy_of(directory)
    store.close()
    torn = killed / journal.name
    torn.write_bytes(torn.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        again = open_store(killed, KINDS)
    assert [record.getMessage() for record in caplog.records] == [
        f"{torn}: dropped {len(whole) + 2} bytes at {len(whole)}, a last record that is torn or damaged"
    ]
    assert again.dump()["note"] == [{"id": "n"}]
    again.put(NOTE, {"id": "m"})
    once_more = open_store(copy_of(killed), KINDS)
    assert once_more.dump() == again.dump()
    assert len(caplog.records) == 1


def test_a_torn_record_that_holds_what_looks_like_a_record_is_still_a_torn_tail(directory: Path) -> None:
    """Or a client could keep a killed bank from starting with what it sends."""
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    store.put(NOTE, {"id": "torn", "sent": json.loads(sealed(b'{"sequence":3,"put":[]}')), "more": "x" * 9})
    killed = copy_of(directory)
    store.close()
    (torn,) = journals(killed)
    torn.write_bytes(torn.read_bytes()[:-5])
    again = open_store(killed, KINDS)
    assert again.dump()["note"] == [{"id": "n"}]
    again.close()


def test_a_sound_record_that_makes_no_sense_is_damage(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    killed = copy_of(directory)
    store.close()
    (journal,) = journals(killed)
    whole = journal.read_bytes()
    for change in (
        b"7",
        b'{"no":"sequence"}',
        b'{"sequence":2}',
        b'{"sequence":2,"put":7}',
        b'{"sequence":2,"put":[["note",1,{"id":"another with its number"}]]}',
        b'{"sequence":2,"put":[["note",2,{"no":"id"}]]}',
        b'{"sequence":2,"put":[["book",2,{"id":"b","author":{}}]]}',
        b'{"sequence":3,"put":[]}',
    ):
        journal.write_bytes(whole + sealed(change))
        with pytest.raises(StoreDamaged) as damaged:
            open_store(killed, KINDS)
        assert (damaged.value.file, damaged.value.offset) == (journal, len(whole)), change


def test_numbers_as_indexed_values_survive_a_restart(directory: Path) -> None:
    store = open_store(directory, KINDS)
    for number in range(20):
        store.put(BOOK, book(f"b{number}", author=7 if number < 18 else 8.5))
    store.close()
    again = open_store(directory, KINDS)
    assert again.count(BOOK, author=7) == 18
    again.delete(BOOK, "b0")
    again.put(BOOK, book("b20", author=7))
    assert [b["id"] for b in again.find(BOOK, author=7)][-2:] == ["b17", "b20"]
    assert verify_closed(again, directory)


def verify_closed(store: Documents, directory: Path) -> bool:
    store.close()
    return verify(directory, KINDS).sound


def test_declarations_that_would_sort_text_with_numbers_are_an_error(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(BOOK, book("b1", odd="text"))
    store.put(BOOK, book("b2", odd=7))
    store.close()
    with pytest.raises(StoreDamaged, match="cannot be sorted among"):
        open_store(directory, (Kind[Document]("book", ordered={"odd": Ordered(by="odd")}),))


def test_damage_before_a_sound_record_names_file_and_offset(directory: Path) -> None:
    store = open_store(directory, KINDS)
    for number in range(3):
        store.put(NOTE, {"id": f"n{number}"})
    killed = copy_of(directory)
    store.close()
    (journal,) = journals(killed)
    data = journal.read_bytes()
    second = data.index(b"\n") + 1
    journal.write_bytes(data.replace(b"n1", b"nX"))
    (killed / "lock").unlink()
    before = {path: path.read_bytes() for path in killed.iterdir()}
    with pytest.raises(StoreDamaged) as damaged:
        open_store(killed, KINDS)
    assert (damaged.value.file, damaged.value.offset) == (journal, second)
    assert str(journal) in str(damaged.value)
    assert str(second) in str(damaged.value)
    (killed / "lock").unlink()
    assert {path: path.read_bytes() for path in killed.iterdir()} == before, "nothing was touched"


def test_a_missing_journal_is_damage(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    store.log.compact()
    store.put(NOTE, {"id": "m"})
    killed = copy_of(directory)
    (killed / "documents.json").unlink()
    with pytest.raises(StoreDamaged, match="changes 1 to 1 are missing"):
        open_store(killed, KINDS)
    store.close()


def test_a_changed_snapshot_is_damage(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n", "amount": "100.00"})
    store.close()
    file = directory / "documents.json"
    file.write_bytes(file.read_bytes().replace(b"100.00", b"900.00"))
    with pytest.raises(StoreDamaged, match="checksum") as damaged:
        open_store(directory, KINDS)
    assert damaged.value.file == file


def test_a_snapshot_that_is_none_is_damage(directory: Path) -> None:
    directory.mkdir()
    for text in ("", "[]", "{}", '{"_store":{}}', '{"note":{"1":{"id":"n"}}}', '{"_store": 7}', "{"):
        (directory / "documents.json").write_text(text)
        with pytest.raises(StoreDamaged):
            open_store(directory, KINDS)


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_a_snapshot_of_a_later_version_is_refused(directory: Path, separators: tuple[str, str]) -> None:
    directory.mkdir()
    snapshot = {"_store": {"1": {"id": "snapshot", "format": 3, "sequence": 7, "more": 1}}, "note": {}}
    (directory / "documents.json").write_text(json.dumps(snapshot, separators=separators))
    with pytest.raises(StoreTooNew, match="has format 3; this version reads up to 2"):
        open_store(directory, KINDS)
    assert json.loads((directory / "documents.json").read_bytes()) == snapshot, "and left alone"


def test_a_later_version_in_our_layout_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("emulator.store.snapshot.FORMAT", 3)
        store = open_store(directory, KINDS)
        store.put(NOTE, {"id": "n"})
        store.close()
    with pytest.raises(StoreTooNew):
        open_store(directory, KINDS)


def test_a_kind_that_is_not_declared_any_more_is_kept(directory: Path) -> None:
    store = with_books(directory)
    store.close()
    narrow = open_store(directory, (NOTE,))
    narrow.put(NOTE, {"id": "n"})
    assert narrow.count(BOOK) == 5
    narrow.close()
    again = open_store(directory, KINDS)
    assert list(again.all(BOOK)) == some_books()
    assert again.first(BOOK, author="author 1") == some_books()[1]
    again.close()


def test_changed_declarations_index_the_snapshot_anew(directory: Path) -> None:
    store = with_books(directory)
    store.close()
    declared = (Kind[Document]("book", indexes=("title",), ordered={"title": Ordered(by="title")}), NOTE)
    other = open_store(directory, declared)
    assert other.first(BOOK, title="Title 003") == some_books()[3]
    assert [b["id"] for b in other.range(BOOK, "title", reverse=True, limit=2)] == ["b4", "b3"]
    other.close()
    again = open_store(directory, declared)
    assert again.first(BOOK, title="Title 003") == some_books()[3]
    again.close()


def test_declarations_that_the_documents_do_not_fit_are_an_error(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(BOOK, book("b1", odd={"an": "object"}))
    store.close()
    with pytest.raises(StoreDamaged, match="'odd'"):
        open_store(directory, (Kind[Document]("book", indexes=("odd",)),))
    open_store(directory, KINDS).close()


def test_what_a_kill_left_behind_is_cleared_away(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    old = copy_of(directory) / "journal-000000000001.jsonl"
    store.close()
    (directory / old.name).write_bytes(old.read_bytes())
    (directory / "documents.json.7-abc.new").write_text("half a snapsh")
    again = open_store(directory, KINDS)
    assert again.dump()["note"] == [{"id": "n"}]
    assert sorted(path.name for path in directory.iterdir()) == ["documents.json", "journal-000000000002.jsonl", "lock"]
    again.close()


def test_a_store_goes_on_in_its_directory_under_another_name(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "before"})
    moved = directory.rename(directory.with_name("moved"))
    store.log.directory = moved
    compaction = store.log.begin_compaction()
    store.put(NOTE, {"id": "after"})
    compaction.run()
    store.log.finish_compaction(compaction)
    again = open_store(copy_of(moved), KINDS)
    assert again.dump()["note"] == [{"id": "before"}, {"id": "after"}]
    again.close()
    store.close()
    assert not directory.exists()


def test_a_discarded_store_leaves_its_directory_as_it_is(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n"})
    compaction = store.log.begin_compaction()
    before = {path.name for path in directory.iterdir()}
    gone = directory.rename(directory.with_name("gone"))
    store.discard()
    compaction.run()
    store.log.finish_compaction(compaction)
    assert {path.name for path in gone.iterdir()} == before
    assert caplog.records == []
    open_store(gone, KINDS).close()
    memory_store(KINDS).discard()
