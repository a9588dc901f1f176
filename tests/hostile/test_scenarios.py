"""YAML that would fill the memory, run code or say two things, and JSON of the same kind: refused, nothing changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.api.messages import Request
from emulator.scenario.rules import RuleSet
from tests.hostile.attack import Target
from tests.unit.pages.living import Living
from tests.unit.pages.visitor import HOST

_HEAD = "scenario: lie\n"
_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
_RULE = _HEAD + "rules:\n  - when: {operation: getAccounts}\n    then: "

YAML = {
    "a billion laughs": _HEAD + _LAUGHS,
    "a billion laughs in a rule": _HEAD + "rules: &a\n  - when: *a\n",
    "a list in itself": _HEAD + "rules: &a [*a]\n",
    "a merge of everything": _HEAD + "start: &s {from: empty}\nrules:\n  - <<: *s\n",
    "Python's own objects": _HEAD + "summary: !!python/object/apply:os.system ['touch /tmp/x']\n",
    "Python's own names": _HEAD + "summary: !!python/name:os.system\n",
    "100,000 documents": "---\n" * 100_000,
    "a scalar": "hello",
    "100,000 lists in one another": _HEAD + "rules: " + "[" * 100_000,
    "100,000 mappings in one another": _HEAD + "rules: " + "{a: " * 100_000,
    "10,000 lists by indentation": _HEAD + "rules:\n" + "- " * 10_000 + "x\n",
    "a summary of 100,000 characters": _HEAD + "summary: " + "x" * 100_000,
    "a number of 10,000 digits": _HEAD + "start: {clock: " + "9" * 10_000 + "}\n",
    "a sexagesimal": _HEAD + "start: {clock: 190:20:30}\n",
    "an escape for half a pair": _HEAD + 'summary: "\\ud800"\nrules: 1\n',
    "no name": "summary: x\n",
    "a name that climbs": "scenario: ../../etc/passwd\n",
    "a fixture outside": _HEAD + "start: {from: ../../../etc/passwd}\n",
    "a fixture by its path": _HEAD + "start: {from: /etc/passwd}\n",
    "a snapshot outside": _HEAD + "start: {from: 'snapshot:../../x'}\n",
    "a setting of nobody": _HEAD + "start: {settings: {control_token: x}}\n",
    "a member of nobody": _HEAD + "exec: rm\n",
    "a clock before all time": _HEAD + "start: {clock: '0001-01-01T00:00:00Z'}\n",
    "a clock after all time": _HEAD + "start: {clock: '9999-12-31T23:59:59Z'}\n",
    "501 rules": _HEAD + "rules:\n" + "  - {when: {operation: getAccounts}, then: {delay: 1s}}\n" * 501,
    "an operation of nobody": _HEAD + "rules: [{when: {operation: stealMoney}, then: {delay: 1s}}]\n",
    "a delay without end": _RULE + "{delay: P1000000D}\n",
    "a delay below nought": _RULE + "{delay: -1s}\n",
    "a status of 99": _RULE + "{answer: {status: 99}}\n",
    "a header that breaks its line": _RULE + '{answer: {status: 400, headers: {X-A: "a\\r\\nSet-Cookie: b"}}}\n',
    "a header name that breaks its line": _RULE + '{answer: {status: 400, headers: {"X-A: b\\r\\nX-B": c}}}\n',
    "a chance of two": _HEAD + "rules: [{when: {}, times: {chance: 2}, then: {delay: 1s}}]\n",
    "an expression that is none": _HEAD + "rules: [{when: {body: {a: {regex: '('}}}, then: {delay: 1s}}]\n",
    "an expression that looks back": _HEAD + "rules: [{when: {body: {a: {regex: '(a)\\1'}}}, then: {delay: 1s}}]\n",
    "a story with a method of nobody": _HEAD + "story: [{tpp: STEAL /v1/accounts}]\n",
}  # fmt: skip
JSON = {
    "a scenario of lists": [["scenario", "lie"]],
    "a name that is a number": {"scenario": 5},
    "no scenario": {},
    "a rule that is text": {"scenario": "lie", "rules": ["all"]},
    "Python's own": {"scenario": "lie", "__class__": "x"},
    "a name that nobody has": {"name": "no-such-scenario"},
    "a name that climbs": {"name": "../../etc/passwd"},
}


def rules(emulator: Living) -> list[dict[str, Any]]:
    """The bank's scripted rules."""
    rule_set = emulator.service.rules
    assert isinstance(rule_set, RuleSet)
    return rule_set.sources()


def test_a_scenario_that_lies_is_refused(emulator: Living, target: Target, caplog: pytest.LogCaptureFixture) -> None:
    lies = [(name, "application/yaml", text.encode()) for name, text in YAML.items()]
    lies += [(name, "application/json", json.dumps(value).encode()) for name, value in JSON.items()]
    berries = f"{_HEAD}summary: Blåbær\n"
    lies += [(name, "application/yaml", berries.encode(name)) for name in ("utf-16", "utf-32", "latin-1")]
    bank = emulator.service.bank
    before = (bank.settings, bank.clock.mode, rules(emulator))
    for name, kind, body in lies:
        headers = (("Host", HOST), ("Content-Type", kind))
        answer = target.refused(name, Request("POST", "/_emulator/scenario", headers, body, emulator.base), caplog)
        codes = {entry["code"] for entry in json.loads(answer.body)["tppMessages"]}
        assert answer.status in (400, 404, 413), (name, answer.body[:300])
        assert codes <= {"FORMAT_ERROR", "BAD_REQUEST", "RESOURCE_UNKNOWN", "NOT_FOUND"}, name
        assert len(answer.body) < 200_000, name
        assert (bank.settings, bank.clock.mode, rules(emulator)) == before, name
