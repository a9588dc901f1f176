"""500 requests that are signed wrongly: the bank says of each what it has always said (see `corpus`)."""

from __future__ import annotations

from tests.unit.signature.corpus import judged


def test_the_verdict_on_every_request_of_the_corpus_stays() -> None:
    verdicts = [(request["name"], request["verdict"], now) for request, now in judged()]
    assert len(verdicts) == 500
    assert [one for one in verdicts if one[1] != one[2]] == []
