"""Signed requests that lie: each with its status, codes and paths (tables in bodies.py, envelopes.py, signatures.py)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.hostile import bodies
from tests.hostile.attack import Target, told
from tests.hostile.case import Case

CASES: tuple[Case, ...] = (*bodies.CASES,)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_a_lie_is_refused_in_its_own_words(target: Target, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    answers = []
    with target.unharmed(answers, caplog):
        answers.append(target.send(case))
    [answer] = answers
    assert answer.status == case.status, answer.body[:500]
    assert sorted(told(answer), key=str) == sorted(case.told, key=str), answer.body[:500]


def test_no_case_stands_twice() -> None:
    assert [name for name, times in Counter(case.id for case in CASES).items() if times > 1] == []
