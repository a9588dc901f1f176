"""Signed requests that lie: each with its status, codes and paths (the tables: bodies, envelopes, signatures)."""

from __future__ import annotations

import pytest

from tests.hostile import bodies, envelopes, signatures
from tests.hostile.attack import Target, messages

CASES = (*bodies.CASES, *envelopes.CASES, *signatures.CASES)


@pytest.mark.parametrize("theme", dict.fromkeys(case.theme for case in CASES))
def test_a_lie_is_refused_in_its_own_words(target: Target, theme: str, caplog: pytest.LogCaptureFixture) -> None:
    for case in CASES:
        if case.theme == theme:
            answer = target.refused(case.name, target.request(case), caplog)
            assert (case.name, answer.status) == (case.name, case.status), answer.body[:500]
            assert set(messages(answer)) == set(case.messages), (case.name, answer.body[:500])
