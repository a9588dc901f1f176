"""Documents by a declared order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from emulator.store import Documents, memory_store
from tests.unit.store.making import BOOK, KINDS, NOTE, book


@pytest.fixture
def filled() -> Documents:
    store = memory_store(KINDS)
    for identity, year in (("d", 1999), ("b", 2001), ("c", 2001), ("a", 2001), ("e", 2005)):
        store.put(BOOK, book(identity, year=year))
    for identity, shelf, title in (("x", "left", "M"), ("y", "right", "A"), ("z", "left", "B"), ("w", "left", "M")):
        store.put(BOOK, book(identity, shelf=shelf, title=title))
    return store


def ids(documents: list[dict[str, Any]]) -> str:
    return "".join(document["id"] for document in documents)


def test_a_range_is_sorted_by_value_then_id(filled: Documents) -> None:
    for asked, expected in (
        ({}, "dabce"),
        ({"reverse": True}, "ecbad"),
        ({"low": 2001}, "abce"),
        ({"high": 2001}, "dabc"),
        ({"low": 2001, "high": 2001}, "abc"),
        ({"low": 2002, "high": 2004}, ""),
        ({"low": 2005, "high": 1999}, ""),
        ({"offset": 1, "limit": 2}, "ab"),
        ({"reverse": True, "offset": 1, "limit": 2}, "cb"),
        ({"reverse": True, "limit": 1}, "e"),
        ({"offset": 4}, "e"),
        ({"offset": 5}, ""),
        ({"offset": 99, "reverse": True}, ""),
        ({"limit": 0}, ""),
        ({"offset": -2, "limit": 2}, "da"),
        ({"low": 2001, "reverse": True, "offset": 3}, "a"),
    ):
        assert ids(filled.range(BOOK, "year", **asked)) == expected
        bounds = {name: value for name, value in asked.items() if name in ("low", "high")}
        if bounds == asked:
            assert filled.range_count(BOOK, "year", **bounds) == len(expected)


def test_a_group_is_an_order_of_its_own(filled: Documents) -> None:
    for asked, expected in (
        ({"group": "left"}, "zwx"),
        ({"group": "right"}, "y"),
        ({"group": "nowhere"}, ""),
        ({"group": "left", "low": "C"}, "wx"),
        ({"group": "left", "high": "L"}, "z"),
        ({"group": "left", "reverse": True, "limit": 1}, "x"),
    ):
        assert ids(filled.range(BOOK, "shelf", **asked)) == expected


def test_the_ids_of_one_value_come_in_insertion_order(filled: Documents) -> None:
    assert filled.ids_at(BOOK, "year", 2001) == ["b", "c", "a"]
    assert filled.ids_at(BOOK, "year", 2000) == []


def test_text_and_numbers_do_not_sort_together(filled: Documents) -> None:
    with pytest.raises(ValueError, match="'year'"):
        filled.put(BOOK, book("f", year="2001"))
    with pytest.raises(ValueError, match="'title'"):
        filled.put(BOOK, book("f", shelf="left", title=7))
    assert filled.range_count(BOOK, "year") == 5


def test_a_group_is_named_exactly_where_there_are_groups(filled: Documents) -> None:
    with pytest.raises(ValueError, match="group"):
        filled.range(BOOK, "year", group="left")
    with pytest.raises(ValueError, match="group"):
        filled.range(BOOK, "shelf")
    with pytest.raises(ValueError, match="no order"):
        filled.range(BOOK, "author")


def test_the_order_of_arrival_is_that_in_which_documents_came(filled: Documents) -> None:
    for identity in "xcadb":
        filled.put(NOTE, {"id": identity})
    filled.put(NOTE, {"id": "a", "changed": True})
    filled.delete(NOTE, "x")
    with suppress(RuntimeError), filled.transaction():
        filled.delete(NOTE, "c")
        raise RuntimeError
    orders: list[tuple[dict[str, Any], str]] = [
        ({}, "cadb"),
        ({"reverse": True}, "bdac"),
        ({"limit": 2}, "ca"),
        ({"reverse": True, "limit": 2}, "bd"),
        ({"offset": 1, "limit": 2}, "ad"),
        ({"reverse": True, "offset": 3, "limit": 2}, "c"),
        ({"offset": 9}, ""),
        ({"limit": 0}, ""),
    ]
    for asked, expected in orders:
        assert ids(filled.range(NOTE, "came", **asked)) == expected, asked


def test_the_order_of_arrival_has_no_bounds(filled: Documents) -> None:
    bounds: list[dict[str, Any]] = [{"group": "left"}, {"low": "a"}, {"high": "a"}]
    for asked in bounds:
        with pytest.raises(ValueError, match="no bounds"):
            filled.range(NOTE, "came", **asked)
