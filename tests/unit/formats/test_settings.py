"""What settings take: every setting has its row, whose words and schema say what its check lets pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from emulator.bank.errors import BankError
from emulator.bank.feed import EFFECTS
from emulator.bank.settings import TAKES, Settings, from_text, merged
from tests.cases import cases

MATCHES: tuple[Any, ...] = (
    *({}, {"creditorName": "A*"}, {"creditorNam": "A"}, {"account": {"in": ["NO1", 2]}}, {"status": None}, "x", None),
    *({"transactionAmount": {"amount": {"lt": bound}}} for bound in (-100, "-100.00", "much", None)),
    *({"transactionAmount": "100.00"}, {"transactionAmount": {"sum": 1}}, {"creditorAccount": {"iban": "NO*"}}),
    *({"debtorName": ["A"]}, {"debtorName": {}}, {"debtorName": {"like": "A"}}, {"debtorName": {"absent": True}}),
)
VALUES: tuple[Any, ...] = (
    *(
        "documented",
        "lenient",
        "relative",
        "any",
        "sandbox-ca",
        "unfiltered",
        "immediate",
        "execution",
        "norway",
        "warn",
        "rough",
        "renewed",
    ),
    *(None, True, False, "true", "", [], {}, ["time"], {"time": 1}, 0, 1, -1, 300, 10**9, 10**9 + 1, 0.5, "300"),
    *({"polls": polls} for polls in (1, 1000, 0, 1001, True, "2")),
    {"polls": 2, "time": 1},
    *("500000.00", "0.01", "0.00", "000.00", "1", "1.0", "1.000", ".50", "-1.00", "1e2.00", "١.٠٠"),
    *("9" * 17 + ".99", "9" * 18 + ".99"),
    *([{"effect": effect}] for effect in (*EFFECTS, "old-id", 1, None)),
    *([{"effect": "late", "days": days}] for days in (1, 60, 0, 61, True, "3", 1.5)),
    *([{"effect": "new-id", "chance": chance}] for chance in (0, 0.5, 1, -0.1, 1.1, "1", True)),
    *([{"effect": "amend", "percent": percent}] for percent in (-99, 0, 100, -100, 101)),
    *([{"effect": "amend", "text": text}] for text in ("x", " ", "x" * 141, 3)),
    *([{"effect": effect, "hours": 6}] for effect in EFFECTS),
    *([{"effect": "vanish", "when": when}] for when in MATCHES),
    [{"effect": "new-id"}, {"effect": "vanish"}],
    [{"effect": "new-id"}] * 51,
    [[]],
)


def test_every_setting_takes_its_default() -> None:
    assert merged(Settings(), Settings().as_document()) == Settings()


@cases("name", TAKES)
def test_what_a_setting_takes_is_what_its_schema_lets_pass(name: str) -> None:
    takes = TAKES[name]
    fits = Draft202012Validator(takes.schema)
    taken = [value for value in VALUES if takes.fits(value)]
    assert taken == [value for value in VALUES if fits.is_valid(value)]
    assert taken
    typed = [value if isinstance(value, str) else json.dumps(value) for value in taken]
    assert [from_text(name, text) for text in typed] == taken
    with pytest.raises(BankError, match=f"The setting {name} must be "):
        merged(Settings(), {name: "sideways"})
