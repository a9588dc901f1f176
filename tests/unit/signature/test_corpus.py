"""500 requests that are signed wrongly: the bank says of each what it has always said (see `make_corpus`)."""

from __future__ import annotations

import json

from tests.unit.signature.make_corpus import CORPUS, SIZE, verdict


def test_the_verdict_on_every_request_of_the_corpus_stays() -> None:
    with CORPUS.open(encoding="utf-8") as lines:
        first, *requests = map(json.loads, lines)
    assert len(requests) == SIZE
    changed = {
        request["name"]: (request["verdict"], now)
        for request in requests
        if (now := verdict(first, request)) != request["verdict"]
    }
    assert not changed
