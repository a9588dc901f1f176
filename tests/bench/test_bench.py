"""What the benchmark makes of what it measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from inspect import signature

from tests.bench.harness import PIECES, WARM_UP, Pair, Rate, Row, beside, rows
from tests.bench.run import sections
from tests.bench.soak import Documents, Mix, grown
from tests.cases import cases


def at(per_second: float, cpu_us: float = 0.0) -> Rate:
    return Rate(per_second, p50_ms=1.0, p99_ms=2.0, statuses={}, cpu_us=cpu_us)


@cases("name", sections())
def test_a_section_measures_in_rounds_of_requests(name: str) -> None:
    assert list(signature(import_module(f"tests.bench.sections.{name}").measure).parameters) == ["rounds", "requests"]


def test_the_ratio_is_the_median_over_rounds_each_beside_its_own_yardstick() -> None:
    pair = Pair([at(40), at(10), at(90)], [at(100), at(10), at(100)])
    assert pair.ratio == 0.9


def test_where_processor_time_is_known_the_ratio_is_out_of_it() -> None:
    pair = Pair([at(40, cpu_us=300), at(10, cpu_us=300)], [at(100, cpu_us=150), at(10, cpu_us=150)])
    assert pair.ratio == 0.5


def test_both_sides_are_warmed_up_and_take_turns_in_going_first() -> None:
    went: list[tuple[str, int]] = []

    def side(name: str) -> Callable[[int], Rate]:
        def load(count: int) -> Rate:
            went.append((name, count))
            return at(len(went))

        return load

    pair = beside(side("ours"), side("theirs"), 1, 50 * PIECES)
    assert went[:2] == [("ours", WARM_UP), ("theirs", WARM_UP)]
    assert [name for name, _ in went[2:8]] == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert {count for _, count in went[2:]} == {50}
    assert [rate.per_second for rate in pair.ours][:3] == [3, 6, 7]


def test_a_request_is_reported_with_its_rate_and_what_it_is_beside() -> None:
    measured = list(rows("s", "read", "the plain GET", Pair([at(30)], [at(60)]), at_least=0.45))
    assert measured == [
        Row("s", "read", 30, "1/s"),
        Row("s", "read, processor time", 0, "us"),
        Row("s", "read, processor time put off", 0, "us"),
        Row("s", "read, median", 1, "ms"),
        Row("s", "read beside the plain GET", 0.5, "x", at_least=0.45),
    ]
    assert [row.good for row in measured] == [None, None, None, None, True]


@cases("kind, late, bad", [("repeat", 109, False), ("repeat", 111, True), ("payment", 900, False)])
def test_only_documents_that_stay_for_ever_may_become_more(kind: str, late: int, bad: bool) -> None:
    assert grown(Documents(Counter({kind: 100}), 1.0), Documents(Counter({kind: late}), 1.0)) is bad


def test_a_mix_knows_which_answers_it_must_get() -> None:
    mix = Mix()
    mix.add(201, [b"one"] * 3)
    mix.add(400, [b"two"])
    assert (len(mix.requests), mix.expected) == (4, {"201": 3, "400": 1})
