"""Signed requests that lie: each with its status, codes and paths (the tables: bodies, envelopes, signatures)."""

from __future__ import annotations

from collections import Counter

import pytest

from emulator.api.messages import Response
from tests.hostile import bodies, envelopes, signatures
from tests.hostile.attack import Target, messages
from tests.hostile.case import Case

CASES: tuple[Case, ...] = (*bodies.CASES, *envelopes.CASES, *signatures.CASES)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_a_lie_is_refused_in_its_own_words(target: Target, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    answers: list[Response] = []
    with target.unharmed(answers, caplog):
        answers.append(target.send(case))
    [answer] = answers
    assert answer.status == case.status, answer.body[:500]
    assert set(messages(answer)) == set(case.messages), answer.body[:500]


def test_no_case_stands_twice() -> None:
    assert [name for name, times in Counter(case.id for case in CASES).items() if times > 1] == []
