"""Where documents stand in a snapshot is noted a batch at a time, whatever gaps deletions have left."""

from __future__ import annotations

from itertools import accumulate, chain

from hypothesis import example, given
from hypothesis import strategies as st

from emulator.store.snapshot import RowPlaces

# numbers ascending as the steps from one to the next, in batches
BATCHES = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5), max_size=6)


@example([[1, 1], [1, 1], [2, 1], [1, 3]])
@given(BATCHES)
def test_runs_hold_the_numbers_of_all_batches_and_do_not_touch(steps: list[list[int]]) -> None:
    place = RowPlaces([], [], [])
    numbers: list[int] = []
    for batch in steps:
        some = list(accumulate(batch, initial=numbers[-1] if numbers else 0))[1:]
        place.add(some, [10 * number for number in some], some)
        numbers += some
    assert list(chain.from_iterable(range(first, last + 1) for first, last in place.runs)) == numbers
    assert all(left[1] + 1 < right[0] for left, right in zip(place.runs, place.runs[1:], strict=False))
    assert (place.starts, place.sizes) == ([10 * number for number in numbers], numbers)
