"""The player against a transport that says what the test wants: saving, filling in, acting as somebody, failing."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.scenario import loader, player, steps
from emulator.scenario.player import Played, StepResult, play
from emulator.scenario.transport import InProcess, ReceivedAnswer, Running, Transport, TransportFailed
from emulator.scenario.variables import Unknown, Variables, member_at
from tests.cases import cases


class Told(Transport):
    """A transport that notes what it is asked, and answers from a list."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("http://127.0.0.1:8080")
        self.asked: list[tuple[str, str, Any]] = []
        self._answers = answers

    def send(self, prepared: Any) -> ReceivedAnswer:
        raise AssertionError("no TPP acts here")

    def control(self, method: str, path: str, body: Any = None) -> ReceivedAnswer:
        self.asked.append((method, path, body))
        status, value = self._answers.get(path.strip("/").replace("/", "_"), (200, {}))
        return ReceivedAnswer(status, (), json.dumps(value).encode())


def story(*steps: dict[str, Any]) -> Any:
    return loader.from_value({"scenario": "told", "story": list(steps)})


def outcomes(played: Played) -> list[str]:
    return [step.outcome for step in played.steps]


def test_what_one_step_saves_the_next_one_uses() -> None:
    transport = Told(consents=(200, {"consents": [{"consentId": "c1", "n": 5}]}))
    played = play(
        story(
            {"control": "GET consents", "save": {"consent": "consents[0].consentId", "n": "consents[-1].n"}},
            {"control": "POST /_emulator/consents/${consent}/revoke", "json": {"n": "${n}", "text": "n=${n}"}},
        ),
        transport,
    )
    assert outcomes(played) == ["passed", "passed"]
    assert transport.asked[-1] == ("POST", "/consents/c1/revoke", {"n": 5, "text": "n=5"})
    assert played.steps[1].title == "control POST /_emulator/consents/c1/revoke"


def test_days_are_counted_from_bank_time() -> None:
    transport = Told(clock=(200, {"now": "2026-03-01T23:30:00+00:00"}))  # 2 March in Oslo
    play(story({"control": "POST x", "json": ["${today}", "${today+3d}", "${today-2d}"]}), transport)
    assert transport.asked[-1] == ("POST", "/x", ["2026-03-02", "2026-03-05", "2026-02-28"])


@cases(
    "step, reason",
    [
        ({"control": "GET a", "save": {"x": "b"}}, "The answer has no member b."),
        ({"control": "GET consents", "save": {"x": "consents[3]"}}, "The answer has no entry [3] at consents[3]."),
        ({"control": "GET consents", "save": {"x": "consnts"}}, "no member consnts; did you mean consents?"),
        ({"control": "GET broken"}, "expected no error, received status 500"),
        ({"control": "GET broken", "expect": {"status": 404}}, "status: expected the number 404, found the number 500"),
        ({"control": "GET consents", "expect": {"json": {"consents": []}}}, "an empty list, found 1 entry"),
        ({"control": "GET consents", "expect": {"lost": True}}, "expected no answer, received one"),
        ({"control": "GET consents", "expect": {"headers": {"A": "b"}}}, "header A: expected the text 'b', found no"),
        ({"control": "GET consents", "expect": {"body": "x*"}}, "body: expected the text 'x*'"),
    ],
)
def test_a_step_that_fails_says_why_and_ends_the_story(step: dict[str, Any], reason: str) -> None:
    transport = Told(consents=(200, {"consents": [{"consentId": "c1"}]}), broken=(500, {"tppMessages": []}))
    played = play(story(step, {"clock": "advance 1s"}), transport)
    assert outcomes(played) == ["failed", "skipped"]
    assert reason in played.steps[0].differences[0]
    assert not played.passed


@cases("stated, fits", [("b", True), ("c", True), ("d", False), ({"absent": True}, False)])
def test_of_a_header_that_an_answer_has_twice_any_value_may_fit(stated: Any, fits: bool) -> None:
    twice = ReceivedAnswer(200, (("A", "b"), ("a", "c")))
    assert len(steps.differences({"headers": {"A": stated}}, twice)) == (0 if fits else 1)


def test_a_scenario_that_the_bank_refuses_is_the_first_failure() -> None:
    refusal = {"tppMessages": [{"text": "There is no account NO1."}]}
    played = play(story({"clock": "advance 1s"}), Told(scenario=(400, refusal)))
    assert [(step.number, step.outcome) for step in played.steps] == [(0, "failed"), (1, "skipped")]
    assert played.steps[0].differences == ["scenario: There is no account NO1."]
    assert played.refused


def test_a_bank_that_is_not_there_is_told() -> None:
    class Gone(Told):
        def control(self, method: str, path: str, body: Any = None) -> ReceivedAnswer:
            raise TransportFailed("http://127.0.0.1:9 does not answer.")

    assert play(story(), Gone()).steps[0].differences == ["http://127.0.0.1:9 does not answer."]


@cases("base", ["", "127.0.0.1:8080", "ftp://x", "http://", "http://x:99999"])
def test_an_address_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(TransportFailed, match="is not the address of a bank"):
        Running(base)


@cases("transport", [Running("http://127.0.0.1:1"), InProcess(lambda _: pytest.fail("it was sent"))])
def test_what_no_request_can_carry_fails_its_step_on_every_stage(transport: Transport) -> None:
    with pytest.raises(TransportFailed, match="The request cannot be sent: an address is ASCII without blanks"):
        transport.control("GET", "/payments/a b")


def test_an_expectation_with_a_saved_name_is_judged_when_it_is_known() -> None:
    answer = ReceivedAnswer(200, (), b'{"n": 5}')
    assert steps.differences({"json": {"n": {"gt": 4}}}, answer) == []
    assert steps.differences({"json": {"n": {"gt": "many"}}}, answer) == [
        "expect.json.n.gt: Expected a number, found the text 'many'."
    ]
    assert steps.differences({"seconds": {"lt": 1}}, answer) == []
    assert steps.differences(None, ReceivedAnswer(lost=True)) == ["expected an answer, but the connection was closed"]


def test_names_that_were_never_saved_have_a_guess() -> None:
    variables = Variables(lambda: pytest.fail("no day was asked for"))
    variables.save("payment", "p1")
    with pytest.raises(Unknown, match=r"No step has saved 'paymnt'; did you mean payment\?"):
        variables.fill({"a": ["${paymnt}"]})


@given(st.recursive(st.none() | st.text("a${}[].0", max_size=9), lambda inner: st.lists(inner, max_size=3)))
def test_filling_in_never_fails_in_another_way(value: Any) -> None:
    variables = Variables(lambda: pytest.fail("no day was asked for"))
    variables.save("a", 1)
    with contextlib.suppress(Unknown):
        assert "${a}" not in json.dumps(variables.fill(value))


@given(st.text("ab.[]01-", max_size=10))
def test_a_path_finds_a_member_or_says_that_there_is_none(path: str) -> None:
    value = {"a": [{"b": 1}], "b": {"a": 2}}
    with contextlib.suppress(Unknown):
        assert json.dumps(member_at(value, path)) in json.dumps(value)


def test_junit_holds_any_text() -> None:
    result = StepResult(1, "tpp GET /\x00\ud800", "failed", {"status": 200}, None, ["a\x0bb <&>"])
    report = player.junit_report(
        [Played("s", "", [result, StepResult(2, "clock", "passed"), StepResult(3, "x", "skipped")])]
    )
    root = ElementTree.fromstring(report)
    assert root[0].attrib | {"time": ""} == {
        "name": "s",
        "tests": "3",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
        "time": "",
    }
    assert root[0][0][0].attrib["message"] == "a?b <&>"


def test_junit_calls_a_step_the_same_in_every_run_whatever_ids_the_bank_has_given() -> None:
    """CI servers follow a test from run to run by its name."""
    transport = Told(consents=(200, {"consents": [{"consentId": "c1"}]}))
    saved = {"control": "GET consents", "save": {"consent": "consents[0].consentId"}}
    played = play(story(saved, {"control": "POST consents/${consent}/revoke"}), transport)
    root = ElementTree.fromstring(player.junit_report([played]))
    assert [case.attrib["name"] for case in root[0]] == [
        "1 control GET consents",
        "2 control POST consents/${consent}/revoke",
    ]
