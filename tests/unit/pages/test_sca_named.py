"""X-PSU-IDENTITY preselects the person on the page, and nobody else's number is told there (CONTRACT 4)."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from emulator.bank import sessions
from tests.unit.pages.living import KARI, STRAKS, living, straks


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/accounts"), ("POST", "/v1/consents"), ("POST", STRAKS)],
)
@pytest.mark.parametrize("says", ["X-PSU-IDENTITY", "PSU-ID"])
def test_the_field_holds_the_number_that_the_tpp_sent(method: str, path: str, says: str) -> None:
    with living() as emulator:
        named = KARI
        if says == "PSU-ID":
            named = sessions.seed(emulator.branch.bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)["psuId"]
        headers = {"TPP-Redirect-URI": "https://tpp.example/back", "PSU-Context": "PRIVATE", says: named}
        answer = emulator.call(method, path, headers=headers, **({"json": straks()} if path == STRAKS else {}))
        browser = emulator.visitor()
        page = browser.get(urlsplit(json.loads(answer.body)["_links"]["scaRedirect"]["href"]).path)
        assert ("nationalId", KARI if says == "X-PSU-IDENTITY" else "") in page.forms[-1].sent()
        assert page.forms[0].buttons[0].value == KARI
