"""All or nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest

from emulator.store import Documents
from tests.unit.store.making import BOOK, NOTE, answers, book, some_books


class Stop(Exception):
    pass


@pytest.fixture
def filled(store: Documents) -> Documents:
    for document in some_books():
        store.put(BOOK, document)
    return store


def test_a_transaction_is_one_change(filled: Documents) -> None:
    number = filled.sequence
    with filled.transaction():
        filled.put(BOOK, book("new"))
        filled.delete(BOOK, "b1")
        filled.put(NOTE, {"id": "n"})
    assert filled.sequence == number + 1
    assert filled.exists(BOOK, "new")


def test_writes_are_seen_inside_by_id_index_and_order(filled: Documents) -> None:
    with filled.transaction():
        filled.put(BOOK, book("b0", author="changed", year=1))
        filled.delete(BOOK, "b1")
        assert filled.find(BOOK, author="changed") == [book("b0", author="changed", year=1)]
        assert filled.first_key(BOOK, "year") == 1
        assert filled.get(BOOK, "b1") is None
        assert filled.count(BOOK) == 4


def test_an_exception_undoes_everything(filled: Documents) -> None:
    before, number = answers(filled), filled.sequence
    with suppress(Stop), filled.transaction():
        filled.put(BOOK, book("new", author="author 1", year=1, tags=["all"]))
        filled.put(BOOK, book("b0", author="changed", year=1))
        filled.put(BOOK, book("b0", author="again", year=2))
        filled.delete(BOOK, "b1")
        filled.put(BOOK, book("b1", author="reborn"))
        filled.delete(BOOK, "b2")
        filled.put(NOTE, {"id": "n"})
        raise Stop
    assert answers(filled) == before
    assert filled.sequence == number
    filled.put(BOOK, book("next"))
    assert [b["id"] for b in filled.all(BOOK)] == ["b0", "b1", "b2", "b3", "b4", "next"]


def test_a_nested_transaction_joins_the_outer(filled: Documents) -> None:
    before, number = answers(filled), filled.sequence
    with suppress(Stop), filled.transaction():
        with filled.transaction():
            filled.put(BOOK, book("inner"))
        assert filled.sequence == number, "nothing is committed yet"
        raise Stop
    assert answers(filled) == before


def test_a_nested_exception_that_the_outer_catches_leaves_no_half_done_inner(filled: Documents) -> None:
    with filled.transaction():
        filled.put(BOOK, book("outer"))
        with suppress(Stop), filled.transaction():
            filled.put(BOOK, book("inner"))
            filled.delete(BOOK, "outer")
            raise Stop
        assert filled.exists(BOOK, "outer")
    assert filled.exists(BOOK, "outer")
    assert not filled.exists(BOOK, "inner")


def test_a_transaction_without_effect_is_no_change(filled: Documents) -> None:
    number = filled.sequence
    with filled.transaction():
        pass
    with filled.transaction():
        filled.put(BOOK, book("passing"))
        filled.delete(BOOK, "passing")
    with filled.transaction():
        document = filled.get(BOOK, "b1")
        assert document is not None
        filled.put(BOOK, document | {"year": 0})
        filled.put(BOOK, document)
    assert filled.sequence == number


def test_a_rolled_back_deletion_keeps_the_documents_place(filled: Documents) -> None:
    with suppress(Stop), filled.transaction():
        filled.delete(BOOK, "b0")
        filled.delete(BOOK, "b3")
        raise Stop
    assert [b["id"] for b in filled.all(BOOK)] == ["b0", "b1", "b2", "b3", "b4"]
    assert [b["id"] for b in filled.find(BOOK, tags="all")] == ["b0", "b1", "b2", "b3", "b4"]


def test_a_rollback_puts_back_a_document_that_has_no_place_in_an_order(store: Documents) -> None:
    store.put(BOOK, book("shelved", shelf="left", title=7))
    store.put(BOOK, book("lying about", title="Seven"))  # on no shelf, so it sorts among nothing
    with suppress(Stop), store.transaction():
        store.delete(BOOK, "lying about")
        raise Stop
    assert store.get(BOOK, "lying about") == book("lying about", title="Seven")
