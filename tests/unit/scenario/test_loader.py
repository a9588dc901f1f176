"""A scenario file with mistakes: all of them at once, each with its place, a plain sentence and a guess."""

from __future__ import annotations

import contextlib
import difflib
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.fixtures import strict_yaml
from emulator.scenario import loader
from emulator.scenario.loader import ScenarioRefused
from emulator.scenario.model import scenario_schema
from tests.cases import cases

VALIDATOR = jsonschema.Draft202012Validator(scenario_schema())
GOOD = """\
scenario: shop
summary: A shop.
start:
  from: known-state
  clock: 2026-03-02T09:00:00+01:00
  settings: {progression: time}
  change:
    - account: NO8599901000014
      balance: "0.00"
rules:
  - name: lost
    when: {operation: createPayment, body: {creditorName: "ACME*"}}
    times: {first: 2}
    then: {disconnect: after}
as: {nationalId: "14888520059"}
story:
  - tpp: GET /v1/accounts
    save: {account: "accounts[0].resourceId"}
    expect: {status: 200}
  - tpp: GET /v1/accounts/${account}
  - clock: advance 10s
"""


def refused(text: str) -> list[str]:
    with pytest.raises(ScenarioRefused) as caught:
        loader.from_text(text, "shop.yaml")
    return caught.value.lines()


def test_a_good_file_is_read_and_kept_as_it_stands() -> None:
    scenario = loader.from_text(GOOD, "shop.yaml")
    assert (scenario.name, scenario.summary, scenario.start.base) == ("shop", "A shop.", "known-state")
    assert [rule.name for rule in scenario.rules] == ["lost"]
    assert [step.title for step in scenario.story] == [
        "tpp GET /v1/accounts",
        "tpp GET /v1/accounts/${account}",
        "clock advance 10s",
    ]
    assert loader.from_value(dict(scenario.source)).source == scenario.source


def test_every_mistake_is_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
scenario: Shop!
start:
  form: known-state
  settings: {progresion: time, links: sideways}
rules:
  - when: {operation: createPaymnt}
    then: {delay: -2s}
  - times: {chance: 1.5}
    then: {answr: {status: 500}}
story:
  - tpp: GTE /v1/accounts
  - clok: advance 10s
  - psu: aprove ${payment}
"""
    assert refused(text) == [
        "shop.yaml:1:1: Expected a name of 1 to 63 small letters, digits and dashes, such as slow-bank, "
        "found the text 'Shop!'. (scenario)",
        "shop.yaml:3:3: There is no member 'form'; did you mean from? (start.form)",
        "shop.yaml:4:14: There is no setting 'progresion'; did you mean progression? (start.settings.progresion)",
        "shop.yaml:4:32: The setting links must be one of relative, absolute. (start.settings.links)",
        "shop.yaml:6:12: There is no operation 'createPaymnt'; did you mean createPayment? (rules[0].when.operation)",
        "shop.yaml:7:12: Expected a duration such as 10s, 2m, 1h30m, 3d or PT1H, found the text '-2s'. "
        "(rules[0].then.delay)",
        "shop.yaml:8:13: Expected a number of at most 1, found the number 1.5. (rules[1].times.chance)",
        "shop.yaml:9:12: There is no member 'answr'; did you mean answer? (rules[1].then.answr)",
        "shop.yaml:11:5: There is no method 'GTE'; did you mean GET? (story[0].tpp)",
        "shop.yaml:12:5: There is no step 'clok'; did you mean clock? (story[1])",
        "shop.yaml:13:5: A customer cannot 'aprove'; did you mean approve? (story[2].psu)",
        "shop.yaml:13:5: No earlier step saves 'payment'. (story[2].psu)",
    ]


@cases(
    "member, problem",
    [
        ("start: {from: knwn-state}", "There is no fixture 'knwn-state'; did you mean known-state?"),
        ("start: {clock: 2026-03-02}", "Expected a moment with its zone"),
        ("start: {change: [{account: X, balance: a lot}]}", "Expected an amount, such as"),
        ("start: {change: [{account: X, blance: '1.00'}]}", "did you mean balance?"),
        ("start: {change: [{account: X}]}", "The change is missing"),
        ("start: {add: {custmers: []}}", "did you mean customers?"),
        ("start: {add: {accounts: [{bban: 1}]}}", "The member customerNumber is missing."),
        (
            "start: {add: {customers: [{currency: NOK}]}}",
            "There is no member 'currency'; expected one of customerNumber, name, organisationNumber, type.",
        ),
        (
            "start: {add: {transactions: [{x: 1}]}}",
            "There is no member 'x'; expected one of account, amount, amounts, ",
        ),
        ("start: {add: {accounts: [{currenzy: NOK}]}}", "There is no member 'currenzy'; did you mean currency?"),
        ("start: {add: {accounts: [{transactions: [{batch: [{txt: a}]}]}]}}", "no member 'txt'; did you mean text?"),
        ("start: {add: {customers: [{name: 5}]}}", "Expected text, found the number 5; write it in quotes."),
        ("start: {add: {customers: [{name: {}}]}}", "Expected text, found an empty mapping."),
        ("start: {add: {customers: [{type: firm}]}}", "Expected one of private, corporate, found the text 'firm'."),
        ("start: {add: {customers: [{customerNumber: '1'}]}}", "Expected 8 to 11 digits, found the text '1'."),
        ("start: {add: {agreements: [{signatures: 3}]}}", "Expected one of 1, 2, found the number 3."),
        ("start: {add: {accounts: [{demandsKid: 1}]}}", "Expected true or false, found the number 1."),
        ("start: {add: {accounts: {}}}", "Expected a list, found an empty mapping."),
        ("start: {add: {accounts: [x]}}", "Expected a mapping, found the text 'x'."),
        ("start: {add: {accounts: [{accountName: ''}]}}", "Expected text of at least 1 character, found the text ''."),
        ("start: {add: {accounts: [{currency: nok}]}}", "Expected a currency code such as NOK, found the text 'nok'."),
        ("start: {add: {accounts: [{balance: lots}]}}", "Expected an amount, such as"),
        ("start: {add: {transactions: [{text: []}]}}", "Expected a list of at least 1 entry, found an empty list."),
        ("rules: [{then: {}}]", "A rule needs an effect"),
        ("rules: [{when: {}}]", "The member then is missing."),
        ("rules: [{then: {delay: 5}}]", "Expected a duration"),
        ("rules: [{then: {disconnect: during}}]", "There is no disconnect 'during'"),
        ("rules: [{then: {malformed: truncted}}]", "did you mean truncated?"),
        ("rules: [{then: {sca: rejct}}]", "did you mean reject?"),
        ("rules: [{then: {progress: [ACTC, PNDNG]}}]", "did you mean PDNG?"),
        ("rules: [{then: {progress: [{PDNG: -3s}]}}]", "Expected a duration"),
        ("rules: [{then: {fee: true}}]", "Expected an amount, such as"),
        ("rules: [{then: {fee: '-1.00'}}]", "Expected an amount, such as"),
        ("rules: [{then: {answer: {code: kid-wrong}}}]", "Expected a code of 3 to 64 capital letters"),
        ("as: {tpp: {name: ''}}", "Expected text that is not blank, found the text ''."),
        ("story: [{tpp: GET /v1/accounts, body: ' '}]", "Expected text that is not blank, found the text ' '."),
        ("rules: [{when: {path: {in: []}}, then: {delay: 1s}}]", "found an empty list."),
        ("rules: [{then: {answer: {status: 99}}}]", "a number of at least 200"),
        ("rules: [{then: {answer: {text: hello}}}]", "An answer requires status, code or json."),
        ('rules: [{then: {answer: {status: 500, headers: {X-A: "a\\r\\nb"}}}}]', "one line of ASCII text"),
        ("rules: [{when: {product: sepa}, then: {delay: 1s}}]", "There is no product 'sepa'"),
        ("rules: [{when: {status: 500}, then: {delay: 1s}}]", "only requests/count can match status"),
        ("rules: [{when: {headers: {A: [1]}}, then: {delay: 1s}}]", "several are written as {in: [...]}"),
        ("rules: [{times: {first: 0}, then: {delay: 1s}}]", "a number of at least 1"),
        ("rules: [{times: {first: 1, every: 2}, then: {delay: 1s}}]", "Expected one of first, every, after, at"),
        ("story: [{tpp: GET /v1/accounts, psu: approve x}]", "write two steps"),
        ("story: [{tpp: GET /v1/accounts, tamper: bitflipped}]", "did you mean bit-flipped?"),
        ("story: [{tpp: GET /v1/accounts, expect: {stats: 200}}]", "did you mean status?"),
        ("story: [{tpp: GET /v1/accounts, expect: {status: abc}}]", "Expected a status from 100 to 599, found"),
        ("story: [{tpp: GET /v1/accounts, expect: {status: '200'}}]", "(story[0].expect.status)"),
        ("story: [{tpp: GET /v1/accounts, expect: {seconds: 2}}]", "Expected a condition, such as {lt: 2}"),
        ("story: [{psu: approve}]", "such as approve ${payment}"),
        ("story: [{psu: withdraw}]", "Expected withdraw and the id of a consent, such as withdraw ${consent}."),
        ("rules: [{then: {delay: P1M}}]", "Expected a duration without months and years"),
        ("as: {nationalID: '1'}", "did you mean nationalId?"),
        ("as: {tpp: {name: x, flaw: expird}}", "There is no flaw 'expird'; did you mean expired?"),
        ("as: {tpp: {name: x, roles: []}}", "Expected a list of at least 1 entry, found an empty list."),
        (
            "as: {tpp: ACME & Co}",
            "Expected the name of a TPP, of letters, digits, blanks, dots, dashes and underscores",
        ),
        ("as: {tpp: {name: -x}}", "Expected the name of a TPP"),
        (f"as: {{tpp: {'x' * 58}}}", "Expected text of at most 57 characters"),
        ("as: {context: private}", "did you mean PRIVATE?"),
        ("sumary: x", "did you mean summary?"),
        (
            f"start: {{{', '.join(f'k{n}: 1' for n in range(1100))}}}",
            "no member 'k0'; expected one of add, change, clock",
        ),
        ("rules: [{when: {k: 1}, then: {delay: 1s}}]", "product, psu, query, service, tpp."),
    ],
)
def test_a_mistake_is_explained(member: str, problem: str) -> None:
    assert problem in explained(member)
    assert not VALIDATOR.is_valid(strict_yaml.read(f"scenario: shop\n{member}\n").value), "an editor marks it too"


@cases(
    "member, problem",
    [
        ("start: {clock: 2026-02-30T09:00:00Z}", "Expected a moment with its zone"),
        ("start: {clock: 2999-01-01T09:00:00Z}", "Expected a moment of the years 1990 to 2200"),
        ("rules: [{then: {delay: {min: 2s, max: 1s}}}]", "max is shorter than min."),
        ("rules: [{then: {delay: 2h}}]", "At most 1:00:00 was expected."),
        ("rules: [{then: {progress: [RJCT, PDNG]}}]", "RJCT is final; nothing follows it."),
        ("rules: [{then: {answer: {status: 204, text: hello}}}]", "An answer with status 204 has no body."),
        ("rules: [{then: {answer: {status: 304, json: {}}}}]", "An answer with status 304 has no body."),
        ("rules: [{then: {answer: {json: {}, text: hello}}}]", "text has no effect beside json"),
        ("rules: [{then: {answer: {status: 500, headers: {Content-Length: 5}}}}]", "set by the bank itself"),
        ("rules: [{then: {answer: {status: 500}, sca: reject}}]", "sca has no effect beside answer"),
        ("rules: [{then: {answer: {status: 401, json: {}}, sca: reject}}]", "sca has no effect beside answer"),
        ("rules: [{then: {answer: {status: 401}, fee: '1.00'}}]", "fee has no effect beside answer"),
        ("rules: [{when: {operation: getAccounts}, then: {fee: '1.00'}}]", "fee has no effect on getAccounts"),
        ("rules: [{when: {operation: putContactInformation}, then: {sca: reject}}]", "sca has no effect on putContact"),
        ("rules: [{when: {operation: getStuff*}, then: {delay: 1s}}]", "There is no operation 'getStuff*'"),
        ("rules: [{name: a, then: {delay: 1s}}, {name: a, then: {delay: 1s}}]", "two rules called 'a'"),
        ("story: [{tpp: GET accounts}]", "a path without blanks"),
        ("story: [{tpp: GET /v1/accounts, expect: {status: {in: [200, ok]}}}]", "(story[0].expect.status.in[1])"),
        ("story: [{tpp: GET /v1/accounts, expect: {status: {gt: 599}}}]", "(story[0].expect.status)"),
        ("story: [{tpp: GET /v1/accounts, expect: {lost: true, status: 503}}]", "nothing else to expect"),
        ("story: [{psu: withdraw latest}]", "Expected withdraw and the id of a consent, such as withdraw ${consent}."),
        ("story: [{psu: reject latest, accounts: [x]}]", "reject takes no accounts."),
        ("story: [{clock: advance -1s}]", "Expected advance and a duration"),
        ("story: [{clock: advance P300Y}]", "at most a hundred years"),
        ("rules: [{then: {delay: 99999999999d}}]", "Expected a duration of at most a hundred years"),
        ("story: [{clock: set noon}]", "Expected a moment with its zone"),
        ("story: [{tpp: 'GET /v1/a', save: {id: paymentId}}, {tpp: 'GET /v1/${ids}'}]", "did you mean id?"),
    ],
)
def test_a_mistake_that_a_schema_cannot_know_is_explained(member: str, problem: str) -> None:
    assert problem in explained(member)


def explained(member: str) -> str:
    lines = refused(f"scenario: shop\n{member}\n")
    assert all(line.startswith("shop.yaml:2:") for line in lines)
    return "\n".join(lines)


@cases(
    "text, line",
    [
        ("scenario: a\nscenario: b\n", 2),
        ("scenario: &x a\n", 1),
        ("scenario: a\nrules: *x\n", 2),
        ("scenario: !!str a\n", 1),
        ("scenario: a\n  b: [\n", 2),
        ("", 1),
    ],
)
def test_what_is_not_our_yaml_is_refused_with_its_line(text: str, line: int) -> None:
    assert refused(text)[0].startswith(f"shop.yaml:{line}:")


def test_the_status_of_an_answer_in_a_rule_hides_no_other_problem() -> None:
    rule = "{when: {status: 500, operation: createPaymnt, hour: 3}, then: {dely: 1s}}"
    assert [problem.rpartition("(")[2] for problem in refused(f"scenario: a\nrules: [{rule}]")] == [
        "rules[0].when.status)",
        "rules[0].when.operation)",
        "rules[0].when.hour)",
        "rules[0].then.dely)",
    ]


def test_a_file_over_a_mebibyte_is_refused() -> None:
    assert "1 MiB" in refused("scenario: a\nsummary: " + "x" * 1024 * 1024)[0]


def test_text_that_yaml_would_bend_stays_text() -> None:
    scenario = loader.from_text(
        "scenario: a\nstory:\n  - tpp: POST /v1/x\n    json: {country: NO, on: yes, bban: '0123', n: 1.50}\n", "a"
    )
    assert scenario.source["story"][0]["json"] == {"country": "NO", "on": "yes", "bban": "0123", "n": 1.5}


@cases("number", [2**64, float("inf"), float("nan")])
def test_a_number_that_no_document_holds_is_refused_in_a_dict_too(number: float) -> None:
    with pytest.raises(ScenarioRefused, match=r"This number is too large|Whole numbers are from"):
        loader.from_value({"scenario": "x", "rules": [{"then": {"answer": {"json": number}}}]})


def test_an_amount_is_text_or_a_number_as_in_fixtures() -> None:
    start = "start: {change: [{account: X, balance: 10, creditLine: 2.5}]}"
    scenario = loader.from_text(f"scenario: shop\n{start}\nrules: [{{then: {{fee: 12.50}}}}]\n", "shop.yaml")
    (change,) = scenario.start.change
    assert (change.members(), scenario.rules[0].then.fee) == ({"balance": "10", "creditLine": "2.5"}, "12.5")


def test_a_name_alone_is_the_tpp_that_the_story_described_last_under_it() -> None:
    late, pays = {"name": "late", "flaw": "expired"}, {"name": "pays", "roles": ["PISP"]}
    wanted: list[Any] = [late, "late", pays, "late", "pays", {"name": "late"}, "late", "other"]
    steps = [{"tpp": "GET /v1/accounts", "as": {"tpp": tpp}} for tpp in wanted]
    story = loader.from_value({"scenario": "x", "as": {"tpp": pays}, "story": [*steps[3:5], *steps]}).story
    wishes = [step.persona.described for step in story]
    assert [wish.flaw for wish in wishes] == [None, None, "expired", "expired", None, "expired", *[None] * 4]
    assert [wish.roles == ["PISP"] for wish in wishes] == [name == "pays" for name in [wish.name for wish in wishes]]


def test_of_a_long_name_the_beginning_is_told() -> None:
    (problem,) = refused(GOOD.replace("disconnect: after", f"{'d' * 500}: 1, delay: 1s"))
    assert problem.startswith(f"shop.yaml:14:12: There is no member '{'d' * 100}'")
    assert problem.endswith(f"(rules[0].then.{'d' * 100})")


@pytest.mark.parametrize(
    "part",
    [
        {"rules": [{"name": "r", "when": {"operation": {"in": [f"createPaymen{n}" for n in range(300)]}}}]},
        {"rules": [{"name": "r", "when": {f"operatio{n}": "x" for n in range(300)}}]},
        {"rules": [{"name": "r", "when": {"headers": {f"h{n}": {"gte": 1} for n in range(300)}}}]},
        {"story": [{"tpp": "POST /v1/payments", "json": [f"${{na{n}}}" for n in range(300)]}]},
        {"start": {"add": {"customers": [{"nationalI": "x"} for _ in range(300)]}}},
    ],
)
def test_no_guess_is_made_for_what_is_not_told(part: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[str] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, *_, **__: guesses.append(word) or [])
    with pytest.raises(ScenarioRefused) as caught:
        loader.from_value({"scenario": "shop", "summary": "A shop.", **part})
    assert len(caught.value.problems) == 100
    assert 1 < len(guesses) <= 100


def test_an_unknown_name_of_the_library_gets_a_guess() -> None:
    with pytest.raises(ScenarioRefused, match="There is no scenario 'insuficient-funds'; did you mean insufficient-"):
        loader.named("insuficient-funds")


NAMES = (
    *("scenario", "start", "from", "clock", "settings", "add", "change", "rules", "when", "times", "then", "story"),
    *("tpp", "psu", "json", "expect", "save", "as", "delay", "progress", "answer", "first", "body", "gt", "x"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(ScenarioRefused):
        assert loader.from_value(value).source == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ScenarioRefused):
        assert loader.from_text("scenario: a\nsummary: " + text, "a.yaml").name == "a"
