"""All or nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest

from emulator.store import Store
from tests.unit.store.making import answers, book, some_books


class Stop(Exception):
    pass


@pytest.fixture
def filled(store: Store) -> Store:
    for document in some_books():
        store.put("book", document)
    return store


def test_a_transaction_is_one_change(filled: Store) -> None:
    number = filled.sequence
    with filled.transaction():
        filled.put("book", book("new"))
        filled.delete("book", "b1")
        filled.put("note", {"id": "n"})
    assert filled.sequence == number + 1
    assert filled.exists("book", "new")


def test_writes_are_seen_inside_by_id_index_and_order(filled: Store) -> None:
    with filled.transaction():
        filled.put("book", book("b0", author="changed", year=1))
        filled.delete("book", "b1")
        assert filled.find("book", author="changed") == [book("b0", author="changed", year=1)]
        assert filled.first_key("book", "year") == 1
        assert filled.get("book", "b1") is None
        assert filled.count("book") == 4


def test_an_exception_undoes_everything(filled: Store) -> None:
    before, number = answers(filled), filled.sequence
    with suppress(Stop), filled.transaction():
        filled.put("book", book("new", author="author 1", year=1, tags=["all"]))
        filled.put("book", book("b0", author="changed", year=1))
        filled.put("book", book("b0", author="again", year=2))
        filled.delete("book", "b1")
        filled.put("book", book("b1", author="reborn"))
        filled.delete("book", "b2")
        filled.put("note", {"id": "n"})
        raise Stop
    assert answers(filled) == before
    assert filled.sequence == number
    filled.put("book", book("next"))
    assert [b["id"] for b in filled.all("book")] == ["b0", "b1", "b2", "b3", "b4", "next"]


def test_a_nested_transaction_joins_the_outer(filled: Store) -> None:
    before, number = answers(filled), filled.sequence
    with suppress(Stop), filled.transaction():
        with filled.transaction():
            filled.put("book", book("inner"))
        assert filled.sequence == number, "nothing is committed yet"
        raise Stop
    assert answers(filled) == before


def test_a_nested_exception_that_the_outer_catches_leaves_no_half_done_inner(filled: Store) -> None:
    with filled.transaction():
        filled.put("book", book("outer"))
        with suppress(Stop), filled.transaction():
            filled.put("book", book("inner"))
            filled.delete("book", "outer")
            raise Stop
        assert filled.exists("book", "outer")
    assert filled.exists("book", "outer")
    assert not filled.exists("book", "inner")


def test_a_transaction_without_effect_is_no_change(filled: Store) -> None:
    number = filled.sequence
    with filled.transaction():
        pass
    with filled.transaction():
        filled.put("book", book("passing"))
        filled.delete("book", "passing")
    with filled.transaction():
        document = filled.get("book", "b1")
        assert document is not None
        filled.put("book", document | {"year": 0})
        filled.put("book", document)
    assert filled.sequence == number


def test_a_rolled_back_deletion_keeps_the_documents_place(filled: Store) -> None:
    with suppress(Stop), filled.transaction():
        filled.delete("book", "b0")
        filled.delete("book", "b3")
        raise Stop
    assert [b["id"] for b in filled.all("book")] == ["b0", "b1", "b2", "b3", "b4"]
    assert [b["id"] for b in filled.find("book", tags="all")] == ["b0", "b1", "b2", "b3", "b4"]


def test_a_rollback_puts_back_a_document_that_has_no_place_in_an_order(store: Store) -> None:
    store.put("book", book("shelved", shelf="left", title=7))
    store.put("book", book("lying about", title="Seven"))  # on no shelf, so it sorts among nothing
    with suppress(Stop), store.transaction():
        store.delete("book", "lying about")
        raise Stop
    assert store.get("book", "lying about") == book("lying about", title="Seven")
