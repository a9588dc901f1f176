"""The sorted list under the orders: whatever is added and taken out, it reads like a sorted list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.store import sorting
from emulator.store.sorting import SortedList


@pytest.fixture(autouse=True, scope="module")
def _small_pieces() -> Iterator[None]:
    """So that a few entries fill several pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "PIECE", 3)
        yield


@given(
    first=st.sets(st.integers(0, 60)),
    changes=st.lists(st.integers(0, 60)),
    bounds=st.lists(st.integers(-1, 61), min_size=2, max_size=2),
)
def test_it_reads_like_a_sorted_list(first: set[int], changes: list[int], bounds: list[int]) -> None:
    kept, plain = SortedList(first), sorted(first)
    for change in changes:
        if change in plain:
            kept.remove(change)
            plain.remove(change)
        else:
            kept.add(change)
            plain = sorted([*plain, change])
        assert list(kept) == plain
        assert (len(kept), bool(kept)) == (len(plain), bool(plain))
        assert kept.first() == (plain[0] if plain else None)
    low, high = sorted(bounds)
    assert kept.before(low) == sum(entry < low for entry in plain)
    assert kept.between(max(0, low), high) == plain[max(0, low) : max(0, high)]


def test_what_is_not_there_is_not_taken_out() -> None:
    kept = SortedList([1, 3, 5, 7, 9])
    for absent in (0, 4, 10):
        with pytest.raises(ValueError, match="no entry"):
            kept.remove(absent)
    assert list(kept) == [1, 3, 5, 7, 9]


def test_what_does_not_sort_among_the_others_changes_nothing() -> None:
    kept = SortedList(range(7))
    with pytest.raises(TypeError):
        kept.add("text")
    assert list(kept) == list(range(7))


def test_pieces_stay_small_wherever_entries_come_in() -> None:
    """Or one entry more would move all the others."""
    kept = SortedList()
    for entry in [*range(0, 100, 2), *range(99, 0, -2)]:
        kept.add(entry)
    assert max(len(piece) for piece in kept.pieces) <= 2 * sorting.PIECE
