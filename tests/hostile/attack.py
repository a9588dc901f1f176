"""Sending a case, and what holds of every refusal: 4xx, no word of our code, the documents as they were."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property

import pytest

from emulator.api.messages import Request, Response
from tests.api.desk import DeskClient
from tests.hostile.case import Case, Sent
from tests.unit.pages.living import Living

# What an answer holds when something of ours fell over, a library's own words came through, or none were found.
INSIDES = re.compile(rb'Traceback|File "|\.py\b|site-packages|pydantic|ValidationError|Exception\b|Another value')


@dataclass
class Target:
    """The bank under attack and a TPP of it with a session."""

    emulator: Living
    tpp: DeskClient

    @cached_property
    def account(self) -> str:
        """An account of the person, for addresses with HERE in them."""
        accounts = self.tpp.get("/v1/accounts").json()["accounts"]
        return str(accounts[0]["resourceId"])

    def fresh(self) -> DeskClient:
        """The usual TPP, not knowing anybody."""
        return DeskClient(self.emulator.service, self.emulator.authority)

    def csrf(self, path: str) -> str:
        """What the forms of a page carry."""
        page = self.emulator.visitor().get(path)
        return next(field.value for form in page.forms for field in form.fields if field.name == "csrf")

    def client(self, flaw: str | None) -> DeskClient:
        """The usual TPP, or one whose certificate is wrong in this way, with the same person's session."""
        if flaw is None:
            return self.tpp
        authority = self.emulator.authority
        name = f"liar-{flaw}"
        if authority.find(name) is None:
            authority.issue(name, roles=["PISP", "AISP"], flaw=flaw)
        return DeskClient(self.emulator.service, authority, name=name)

    def request(self, case: Case) -> Request:
        """What a case sends."""
        path = case.path.replace("HERE", self.account)
        prepared = self.client(case.flaw).prepare(case.method, path, **case.options)
        sent: Sent = list(prepared.headers.items())
        if case.spoil is not None:
            sent = case.spoil(sent)
        return Request(prepared.method, prepared.target, tuple(sent), prepared.body, self.emulator.base)

    def ask(self, request: Request) -> Response:
        answer = self.emulator.application.handle(request)
        assert isinstance(answer, Response)
        return answer

    def _stored(self) -> bytes:
        """All documents, as the text that is stored: to decode it for each case takes as long as the case."""
        return b"".join(self.emulator.service.bank.documents.json()[1])

    def refused(self, name: str, request: Request, caplog: pytest.LogCaptureFixture) -> Response:
        """What is answered; nothing changes but for one open SCA where that is 401, and nothing of ours fails."""
        before = self._stored()
        answer = self.ask(request)
        after = self._stored()
        added = []
        if after != before:
            was, now = json.loads(before), json.loads(after)
            added = [sca for sca in now.pop("sca") if sca not in was["sca"]]
            del was["sca"]
            assert now == was, name
        assert len(added) == (answer.status == 401 and b"scaRedirect" in answer.body), name
        assert not INSIDES.search(answer.body), (name, answer.body)
        assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == [], name
        return answer


def messages(answer: Response) -> list[tuple[str, str | None]]:
    """Code and path of every message."""
    return [(entry["code"], entry.get("path")) for entry in json.loads(answer.body)["tppMessages"]]
