"""Documents by a declared index."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator.store import Documents, kinds, open_store
from tests.unit.store.making import BOOK, KINDS, book, disagreement


def ids(documents: list[dict[str, object]]) -> list[object]:
    return [document["id"] for document in documents]


def test_find_gives_insertion_order_whenever_the_value_was_set(store: Documents) -> None:
    for identity in ("b1", "b2", "b3"):
        store.put(BOOK, book(identity, author="other"))
    for identity in ("b3", "b1", "b2"):
        store.put(BOOK, book(identity, author="one"))
    assert ids(store.find(BOOK, author="one")) == ["b1", "b2", "b3"]
    assert ids(store.find(BOOK, author="one", newest_first=True)) == ["b3", "b2", "b1"]
    assert store.find(BOOK, author="other") == []


@pytest.mark.parametrize(
    ("limit", "newest_first", "expected"),
    [
        (2, False, ["b0", "b1"]),
        (2, True, ["b3", "b2"]),
        (0, False, []),
        (0, True, []),
        (9, True, ["b3", "b2", "b1", "b0"]),
    ],
)
def test_a_limit_counts_from_the_front(store: Documents, limit: int, newest_first: bool, expected: list[str]) -> None:
    for number in range(4):
        store.put(BOOK, book(f"b{number}", author="a"))
    assert ids(store.find(BOOK, author="a", limit=limit, newest_first=newest_first)) == expected


def test_first_is_the_earliest_or_none(store: Documents) -> None:
    assert store.first(BOOK, author="a") is None
    store.put(BOOK, book("b1", author="a"))
    store.put(BOOK, book("b2", author="a"))
    assert store.first(BOOK, author="a") == book("b1", author="a")


def test_a_list_is_found_by_each_element_once(store: Documents) -> None:
    store.put(BOOK, book("b1", tags=["x", "y", "x"]))
    store.put(BOOK, book("b2", tags=["y"]))
    store.put(BOOK, book("b3", tags=[]))
    assert ids(store.find(BOOK, tags="x")) == ["b1"]
    assert ids(store.find(BOOK, tags="y")) == ["b1", "b2"]
    store.put(BOOK, book("b1", tags=["z"]))
    assert [store.count(BOOK, tags=tag) for tag in "xyz"] == [0, 1, 1]


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


def test_count_without_an_index_counts_the_kind(store: Documents) -> None:
    store.put(BOOK, book("b1", author="a"))
    store.put(BOOK, book("b2"))
    assert store.count(BOOK) == 2
    assert store.count(BOOK, author="a") == 1


def test_exactly_one_declared_index_is_searched(store: Documents) -> None:
    with pytest.raises(ValueError, match="no index 'title'"):
        store.find(BOOK, title="x")
    with pytest.raises(ValueError, match="exactly one"):
        store.find(BOOK, author="x", tags="y")
    with pytest.raises(ValueError, match="exactly one"):
        store.find(BOOK)


def test_many_under_one_value_come_and_go(store: Documents) -> None:
    many = 20
    books = store.tables["book"]
    for number in range(many):
        store.put(BOOK, book(f"b{number}", author="a"))
    assert ids(store.find(BOOK, author="a")) == [f"b{number}" for number in range(many)]
    for number in range(many - 1, 0, -1):
        store.delete(BOOK, f"b{number}")
        assert store.count(BOOK, author="a") == number
        assert disagreement(books) is None
    assert ids(store.find(BOOK, author="a")) == ["b0"]
    store.delete(BOOK, "b0")
    assert store.find(BOOK, author="a") == []


def test_of_very_many_any_can_go_and_the_rest_is_found_in_order(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "SORTED_FROM", 20)
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
    assert not isinstance(store.tables["book"].keys.indexes["author"]["one"], list), (
        "the first is removed as quickly as the last"
    )
    image = store.image()
    for number in numbers[:50]:
        store.delete(BOOK, f"b{number}")
    assert store.count(BOOK, author="one") == 4
    assert disagreement(store.tables["book"]) is None
    store.restore(image)
    check(store)
    store.close()
    check(open_store(directory, KINDS))
