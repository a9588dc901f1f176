"""`state check`: looking without taking over, and repair that keeps a copy."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from zlib import crc32

import pytest

from emulator.store import StoreLocked, StoreTooNew, open_store
from emulator.store.check import repair, verify
from emulator.store.disk import shared_lock
from emulator.store.journal import sealed
from tests.unit.store.making import BOOK, KINDS, NOTE, book, copy_of, with_books


@pytest.fixture
def killed(directory: Path) -> Path:
    """A directory with a snapshot of 5 books and 3 notes in the journal, as a kill left it."""
    store = with_books(directory)
    store.log.compact()
    for number in range(3):
        store.put(NOTE, {"id": f"n{number}"})
    copy = copy_of(directory)
    store.close()
    return copy


@pytest.fixture
def journal(killed: Path) -> Path:
    (journal,) = killed.glob("journal-*")
    return journal


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "lock"}


def test_a_sound_directory_is_reported_and_left_alone(killed: Path) -> None:
    before = contents(killed)
    report = verify(killed, KINDS)
    assert report.sound
    assert report.findings == []
    assert report.torn is None
    assert report.sequence == 8
    assert report.documents == {"book": 5, "note": 3}
    assert contents(killed) == before
    assert repair(killed, KINDS).actions == []
    assert contents(killed) == before


def test_a_directory_in_use_is_said_to_be(directory: Path) -> None:
    store = open_store(directory, KINDS)
    for look in (verify, repair):
        report = look(directory)
        assert report.in_use is not None
        assert "process" in report.in_use
        assert not report.sound
    store.put(BOOK, book("b1"))
    store.close()
    assert verify(directory).sound


def test_looking_writes_nothing_at_all(killed: Path, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def read_only(path: str, flags: int, *more: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return opened(path, flags, *more)

    (killed / "lock").touch()
    journal.write_bytes(journal.read_bytes()[:-5])
    monkeypatch.setattr(os, "open", read_only)
    assert verify(killed, KINDS).sound
    with pytest.raises(OSError, match="Read-only"):
        repair(killed, KINDS)


def test_two_may_look_at_once_and_nobody_writes_meanwhile(killed: Path) -> None:
    (killed / "lock").touch()
    with shared_lock(killed):
        assert verify(killed, KINDS).sound
        assert repair(killed, KINDS).in_use is not None
        with pytest.raises(StoreLocked):
            open_store(killed, KINDS)
    open_store(killed, KINDS).close()


def test_a_directory_that_is_not_there_is_a_finding_and_not_made(tmp_path: Path) -> None:
    for look in (verify, repair):
        assert not look(tmp_path / "nowhere").sound
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_directory_is_sound_and_stays_empty(tmp_path: Path) -> None:
    assert verify(tmp_path).sound
    assert list(tmp_path.iterdir()) == []


def test_a_torn_tail_is_no_damage_and_repair_cuts_it(killed: Path, journal: Path) -> None:
    data = journal.read_bytes()
    journal.write_bytes(data[:-5])
    report = verify(killed, KINDS)
    assert report.sound
    assert report.torn is not None
    assert report.torn.file == journal
    assert report.documents["note"] == 2
    offset = report.torn.offset
    repaired = repair(killed, KINDS)
    assert repaired.sound
    assert repaired.torn is None
    assert journal.read_bytes() == data[:offset]
    assert repaired.copies == killed / "damaged-1"
    assert (killed / "damaged-1" / journal.name).read_bytes() == data[:-5]


def test_a_damaged_journal_is_cut_at_the_damage_and_a_copy_kept(killed: Path, journal: Path) -> None:
    data = journal.read_bytes()
    offset = data.index(b"\n") + 1
    journal.write_bytes(data.replace(b"n1", b"nX"))
    damaged = journal.read_bytes()
    report = verify(killed, KINDS)
    (finding,) = report.findings
    assert (finding.file, finding.offset) == (journal, offset)
    assert not report.sound
    assert journal.read_bytes() == damaged
    repaired = repair(killed, KINDS)
    assert repaired.sound
    assert repaired.documents == {"book": 5, "note": 1}
    assert (killed / "damaged-1" / journal.name).read_bytes() == damaged
    assert (killed / "damaged-1" / journal.name).stat().st_mode & 0o777 == 0o600
    assert (killed / "damaged-1").stat().st_mode & 0o777 == 0o700
    (action,) = repaired.actions
    assert action.startswith(f"cut {journal.name} at byte {offset}: a valid record follows at byte ")
    assert action.endswith("; the changes in 2 records are lost")
    store = open_store(killed, KINDS)
    assert store.sequence == 6
    store.put(NOTE, {"id": "after"})
    store.close()
    assert verify(killed, KINDS).sound


def test_a_journal_that_is_bad_from_its_beginning_goes_with_the_reason(killed: Path, journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0][:-5])
    report = repair(killed, KINDS)
    assert report.sound
    [action] = report.actions
    assert action == (
        f"removed {journal.name}: the last record, {len(lines[0]) - 5} bytes, is torn or damaged; "
        "the changes in 1 record are lost"
    )


def test_journals_after_the_damage_go_too(directory: Path) -> None:
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "n0"})
    store.put(NOTE, {"id": "n1"})
    store.log.begin_compaction()
    store.put(NOTE, {"id": "n2"})
    killed = copy_of(directory)
    store.close()
    first, second = sorted(killed.glob("journal-*"))
    first.write_bytes(first.read_bytes()[:-3])
    assert verify(killed).findings[0].file == first
    report = repair(killed)
    assert report.sound
    assert report.documents == {"note": 1}
    assert [action.partition("; ")[2] for action in report.actions] == [
        "the changes in 1 record are lost",
        "the changes in 1 record are lost",
    ]
    assert not second.exists()
    assert (killed / "damaged-1" / second.name).exists()


def test_a_document_that_a_start_does_not_decode_is_decoded(killed: Path) -> None:
    file = killed / "documents.json"
    lines = file.read_bytes().replace(b'"Title 001"', b'"Title 001', 1).split(b"\n", 1)
    head = lines[0][:-11] + b'00000000"}}'
    check = crc32(head + b"\n", crc32(lines[1]))
    file.write_bytes(b'%b%08x"}}\n%b' % (lines[0][:-11], check, lines[1]))
    (finding,) = verify(killed).findings  # without indexes
    assert finding.intact, "as it was written"
    assert finding.reason.startswith("a document of kind book: ")


def test_a_journal_that_does_not_follow_on_is_put_aside(killed: Path, journal: Path) -> None:
    journal.rename(killed / "journal-000000000009.jsonl")
    assert "changes 6 to 8 are missing" in verify(killed).findings[0].reason
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents == {"book": 5, "note": 0}
    assert (killed / "damaged-1" / "journal-000000000009.jsonl").exists()


def test_of_a_damaged_snapshot_every_readable_document_is_kept(killed: Path) -> None:
    file = killed / "documents.json"
    sound = file.read_bytes()
    damaged = sound.replace(b'"Title 001"', b'"Title 0011', 1)
    file.write_bytes(damaged)
    (finding,) = verify(killed).findings
    assert (finding.file, finding.offset) == (file, sound.index(b"\n") + 1), "the documents begin there"
    assert finding.reason == "the checksum of the documents is wrong"
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents == {"book": 4, "note": 3}
    assert "kept the 4 documents" in report.actions[0]
    assert "dropped 1;" in report.actions[0]
    assert (killed / "damaged-1" / "documents.json").read_bytes() == damaged
    store = open_store(killed, KINDS)
    assert [b["id"] for b in store.all(BOOK)] == ["b0", "b2", "b3", "b4"]
    assert store.sequence == 8
    store.close()


@pytest.mark.parametrize(
    ("sound", "damaged", "lost"),
    [
        (b"{", b"\xef\xbb\xbf{", 0),
        (b'"Title 001"', b"NaN", 1),
        (b'"Title 001"', b"1e999", 1),
        (b'"Title 001"', b"9" * 400, 1),
        (b'"Title 001"', rb'"\ud800"', 1),
        (b'"Title 001"', b'"\xed\xa0\x80"', 1),
        (b'"Title 001"', b"[" * 2000 + b"]" * 2000, 1),
    ],
    ids=["byte order mark", "NaN", "infinite", "long number", "surrogate", "surrogate in UTF-8", "deep"],
)
def test_what_only_other_readers_take_for_json_is_damage_and_not_a_lack_of_memory(
    killed: Path, sound: bytes, damaged: bytes, lost: int
) -> None:
    file = killed / "documents.json"
    file.write_bytes(file.read_bytes().replace(sound, damaged, 1))
    assert [finding.file for finding in verify(killed).findings] == [file]
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents == {"book": 5 - lost, "note": 3}


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xef\xbb\xbf{}", b"{}".decode().encode("utf-16")])
def test_a_file_of_another_form_is_no_snapshot(killed: Path, text: bytes) -> None:
    (killed / "documents.json").write_bytes(text)
    (finding,) = verify(killed).findings
    assert "the file is not a snapshot" in finding.reason


def test_of_a_snapshot_that_ends_early_the_rest_is_told_to_be_lost(killed: Path) -> None:
    file = killed / "documents.json"
    sound = file.read_bytes()
    assert "the file ends early" not in " ".join(repair(killed, KINDS).actions)
    file.write_bytes(sound[: sound.index(b'"Title 003"')])
    report = repair(killed, KINDS)
    assert report.actions[0] == (
        "kept the 3 documents of documents.json that can be read, dropped 1; none of them is verified; "
        "the file is incomplete, and the documents of its end are lost"
    )


def test_a_first_line_that_lies_does_not_hide_the_journal(killed: Path) -> None:
    file = killed / "documents.json"
    file.write_bytes(file.read_bytes().replace(b'"sequence":5', b'"sequence":7'))
    assert not verify(killed).sound
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents == {"book": 5, "note": 3}


@pytest.mark.parametrize("damaged", [b"", b"\0" * 100, b"{}", b"[]", b"null", b"\xff" * 5000, b'{"_store":{"1":{'])
def test_a_snapshot_in_which_nothing_can_be_read_is_given_up(killed: Path, journal: Path, damaged: bytes) -> None:
    file = killed / "documents.json"
    file.write_bytes(damaged)
    rest = journal.read_bytes()
    report = repair(killed, KINDS)
    assert report.sound
    assert "removed documents.json, in which no document can be read" in report.actions[0]
    assert report.actions[-1] == "nothing is left: a start creates the bank again from its fixture"
    assert (killed / "damaged-1" / "documents.json").read_bytes() == damaged
    assert (killed / "damaged-1" / journal.name).read_bytes() == rest, "it holds changes of what is lost"
    store = open_store(killed, KINDS)
    assert (store.sequence, store.count(BOOK)) == (0, 0)
    store.close()


def test_of_a_snapshot_that_was_cut_anywhere_the_rest_is_kept_or_nothing(killed: Path) -> None:
    for size in (*range(0, 260, 20), 400, 600):
        directory = copy_of(killed)
        file = directory / "documents.json"
        file.write_bytes(file.read_bytes()[:size])
        report = repair(directory, KINDS)
        assert report.sound, size
        store = open_store(directory, KINDS)
        assert (store.count(BOOK), store.count(NOTE)) == (
            report.documents.get("book", 0),
            report.documents.get("note", 0),
        )
        assert (store.count(NOTE) > 0) is (store.count(BOOK) > 0), size
        store.log.discard()


def test_the_journal_from_the_first_change_on_needs_no_snapshot(directory: Path) -> None:
    store = open_store(directory, KINDS)
    for number in range(3):
        store.put(NOTE, {"id": f"n{number}"})
    killed = copy_of(directory)
    store.close()
    (killed / "documents.json").write_bytes(b"")
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents["note"] == 3


def test_a_snapshot_by_another_program_is_salvaged_too(killed: Path) -> None:
    file = killed / "documents.json"
    whole = json.loads(file.read_bytes())
    whole["book"]["2"].pop("id")
    file.write_text(json.dumps(whole))
    assert not verify(killed, KINDS).sound
    report = repair(killed, KINDS)
    assert report.sound
    assert report.documents == {"book": 4, "note": 3}


def test_a_journal_that_the_snapshot_covers_is_not_looked_at(killed: Path, journal: Path) -> None:
    """A kill between the renaming of a snapshot and the removal of the journals before it leaves such ones."""
    old = killed / "journal-000000000001.jsonl"
    old.write_bytes(b"garbage\n" + sealed(b'{"sequence":2,"put":[]}'))
    for report in (verify(killed, KINDS), repair(killed, KINDS)):
        assert report.sound
        assert report.documents == {"book": 5, "note": 3}
        assert report.actions == []
    assert journal.exists()
    store = open_store(killed, KINDS)
    assert store.count(NOTE) == 3
    assert not old.exists()
    store.close()


def test_repairs_keep_their_copies_apart(killed: Path, journal: Path) -> None:
    for number in (1, 2):
        journal.write_bytes(journal.read_bytes()[:-1])
        assert repair(killed).copies == killed / f"damaged-{number}"


def test_a_record_whose_checksum_holds_is_never_cut(killed: Path, journal: Path) -> None:
    first, _, _, rest = journal.read_bytes().split(b"\n")
    journal.write_bytes(first + b"\n" + sealed(b'{"sequence":7,"put":[7]}') + rest)
    before = journal.read_bytes()
    report = repair(killed, KINDS)
    assert (report.sound, report.actions, journal.read_bytes()) == (False, [], before)
    assert "cannot be applied" in report.findings[0].reason


def test_a_later_version_is_not_repaired(killed: Path) -> None:
    (killed / "documents.json").write_text('{"_store": {"1": {"id": "snapshot", "format": 3, "sequence": 7}}}')
    for look in (verify, repair):
        with pytest.raises(StoreTooNew):
            look(killed)
