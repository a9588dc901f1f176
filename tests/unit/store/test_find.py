"""Documents by a declared index."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator.store import Documents, open_store
from tests.unit.store.making import BOOK, KINDS, book, disagreement


def ids(documents: list[dict[str, object]]) -> list[object]:
    return [document["id"] for document in documents]


def test_a_limit_counts_from_the_front(store: Documents) -> None:
    for number in range(4):
        store.put(BOOK, book(f"b{number}", author="a"))
    for limit, newest_first, expected in (
        (2, False, ["b0", "b1"]),
        (2, True, ["b3", "b2"]),
        (0, False, []),
        (0, True, []),
        (9, True, ["b3", "b2", "b1", "b0"]),
    ):
        assert ids(store.find(BOOK, author="a", limit=limit, newest_first=newest_first)) == expected


def test_a_missing_member_and_none_are_not_found_by_anything(store: Documents) -> None:
    store.put(BOOK, book("b1"))
    store.put(BOOK, book("b2", author=None))
    assert store.find(BOOK, author=None) == []
    assert store.first(BOOK, author=None) is None
    assert store.count(BOOK, author=None) == 0


def test_numbers_are_values_too_and_differ_from_text(store: Documents) -> None:
    store.put(BOOK, book("b1", author=7))
    store.put(BOOK, book("b2", author="7"))
    assert ids(store.find(BOOK, author=7)) == ["b1"]
    assert ids(store.find(BOOK, author="7")) == ["b2"]


def test_exactly_one_declared_index_is_searched(store: Documents) -> None:
    with pytest.raises(ValueError, match="no index 'title'"):
        store.find(BOOK, title="x")
    with pytest.raises(ValueError, match="exactly one"):
        store.find(BOOK, author="x", tags="y")
    with pytest.raises(ValueError, match="exactly one"):
        store.find(BOOK)


def test_of_many_any_can_go_and_the_rest_is_found_in_order(directory: Path) -> None:
    store = open_store(directory, KINDS)
    with store.transaction():
        for number in range(60):
            store.put(BOOK, book(f"b{number}", author="one"))
    numbers = list(range(60))
    for number in (0, 1, 2, 30, 59, 17):
        store.delete(BOOK, f"b{number}")
        numbers.remove(number)
    with suppress(ZeroDivisionError), store.transaction():
        store.delete(BOOK, "b3")
        raise ZeroDivisionError
    names = [f"b{number}" for number in numbers]

    def check(store: Documents) -> None:
        assert [b["id"] for b in store.find(BOOK, author="one")] == names
        assert [b["id"] for b in store.find(BOOK, author="one", newest_first=True, limit=3)] == names[:-4:-1]
        assert [b["id"] for b in store.find(BOOK, author="one", limit=2)] == names[:2]
        assert (store.first(BOOK, author="one") or {})["id"] == names[0]
        assert store.count(BOOK, author="one") == len(names)
        assert disagreement(store.tables["book"]) is None

    check(store)
    image = store.image()
    for number in numbers[:50]:
        store.delete(BOOK, f"b{number}")
    assert store.count(BOOK, author="one") == 4
    assert disagreement(store.tables["book"]) is None
    store.restore(image)
    check(store)
    store.close()
    check(open_store(directory, KINDS))
