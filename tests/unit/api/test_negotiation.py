"""Content negotiation: JSON only, English or Norwegian (headers.md#content-negotiation)."""

from __future__ import annotations

from emulator.api.headers import Headers
from emulator.api.render import content_language, preferred_language, unacceptable
from tests.cases import cases


@cases(
    "accept",
    [
        "*/*",
        "application/json",
        "APPLICATION/JSON",
        "text/html, application/*;q=0.1",
        "application/json;charset=utf-8",
        "text/html;q=1, */*;q=0.8",
        "",
        "application/json;q=bad",
        "application/json;q=nan",
        "application/json;q=-1",
        "application/json;q=0e1",
    ],
)
def test_an_accept_that_lets_json_through_is_served(accept: str) -> None:
    assert unacceptable(Headers((("Accept", accept),))) is None


@cases(
    "accept", ["text/html", "application/xml, text/*", "application/json;q=0, */*", "*/*;q=0", "application/*;q=0.0"]
)
def test_an_accept_that_excludes_json_is_refused(accept: str) -> None:
    refused = unacceptable(Headers((("Accept", accept),)))
    assert refused is not None
    assert refused.path == "Accept"


@cases(
    "accept, language",
    [
        (None, "en"),
        ("nb-NO", "nb"),
        ("no", "nb"),
        ("nn, en;q=0.9", "nb"),
        ("en-GB, nb;q=0.9", "en"),
        ("de, nb;q=0.2, en;q=0.1", "nb"),
        ("nb;q=0", "en"),
    ],
)
def test_the_language_of_the_answer_follows_the_wish(accept: str | None, language: str) -> None:
    headers = Headers((("Accept-Language", accept),) if accept is not None else ())
    assert content_language(headers) == language


@cases(
    "header, language",
    [
        (None, None),
        ("", None),
        ("*", None),
        ("fr, en;q=0.5", "en"),
        ("en;q=0.5, nb-NO;q=0.9", "nb"),
        ("en;q=0", None),
        ("NN", "nb"),
        ("en;q=abc, no;q=0.1", "nb"),
        ("en ; q=0.2 , no ; q=1.", "nb"),
    ],
)
def test_an_accept_language_is_read_with_its_weights(header: str | None, language: str | None) -> None:
    assert preferred_language(header) == language
