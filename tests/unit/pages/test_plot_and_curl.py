"""The balance plot, the curl command and the marked difference: what the console computes itself."""

from __future__ import annotations

import shlex
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.api.signature.diagnosis import first_difference
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, TRANSACTION
from emulator.web.console import plot
from emulator.web.console.requests import curl_command, side_by_side

FIRST = date(2026, 1, 1)


def days(*balances: str) -> list[tuple[date, Decimal]]:
    return [(FIRST + timedelta(days=n), Decimal(balance)) for n, balance in enumerate(balances)]


def test_balances_are_worked_out_backwards_from_what_is_booked(bank: Bank) -> None:
    today = bank.clock.today()
    for back, amount in ((0, "-50.00"), (2, "100.00"), (200, "7.00")):
        day = (today - timedelta(days=back)).isoformat()
        entry = {"id": f"t{back}", "accountId": "a-1", "shelf": "a-1|booked", "order": f"{day}|x", "amount": amount}
        bank.documents.put(TRANSACTION, entry)
    account = bank.documents.get(ACCOUNT, "a-1") or {}
    balances = plot.closing_balances(bank, account, TRANSACTION)
    assert [str(balance) for _, balance in balances[-4:]] == ["950.00", "1050.00", "1050.00", "1000.00"]
    assert len(balances) == plot.DAYS + 1
    assert balances[-1][0] == today


def test_of_very_many_bookings_only_the_days_that_the_newest_cover_are_drawn(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = bank.clock.today()
    for number in range(30):
        day = (today - timedelta(days=number // 3)).isoformat()
        order = f"{day}|{99 - number}"
        entry = {"id": f"t{number}", "accountId": "a-1", "shelf": "a-1|booked", "order": order, "amount": "1.00"}
        bank.documents.put(TRANSACTION, entry)
    account = bank.documents.get(ACCOUNT, "a-1") or {}
    whole = plot.closing_balances(bank, account, TRANSACTION)
    monkeypatch.setattr(plot, "MOST_READ", 11)
    part = plot.closing_balances(bank, account, TRANSACTION)
    assert part == whole[-len(part) :]
    assert part[0][0] == today - timedelta(days=3)


def test_a_balance_holds_until_the_day_on_which_it_changes() -> None:
    drawn = plot.draw(days("100", "100", "200"))
    assert drawn.line.count("V") == 1
    assert drawn.line.index("V") > drawn.line.rindex("H")


def test_a_balance_below_zero_shows_where_zero_is() -> None:
    assert plot.draw(days("-10", "10")).zero is not None
    assert plot.draw(days("5", "10")).zero is None


@given(st.lists(st.integers(-(10**14), 10**14), min_size=1, max_size=92))
def test_every_balance_lies_inside_the_picture(cents: list[int]) -> None:
    drawn = plot.draw([(FIRST + timedelta(days=n), Decimal(value) / 100) for n, value in enumerate(cents)])
    assert 2 <= len(drawn.rows) <= 8
    assert all(plot.TOP - 0.1 <= down <= plot.HEIGHT - plot.BOTTOM + 0.1 for down, _ in drawn.rows)
    for part in drawn.line.replace("M", " ").replace("H", " H").replace("V", " V").split():
        if part.startswith("V"):
            assert plot.TOP - 0.1 <= float(part[1:]) <= plot.HEIGHT - plot.BOTTOM + 0.1


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=60))
def test_a_body_survives_the_shell(body: str) -> None:
    words = shlex.split(curl_command("POST", "http://bank/v1?a=b&c='", [["X", body]], body))
    words = [word for word in words if word != "\n"]
    assert words[:6] == ["curl", "-g", "--path-as-is", "-X", "POST", "http://bank/v1?a=b&c='"]
    assert words[7] == (f"X: {body}" if body else "X;")
    if body:
        assert words[-2:] == ["--data-raw", body]


def test_headers_that_curl_makes_itself_are_left_out() -> None:
    command = curl_command("GET", "http://bank/", [["Host", "x"], ["Content-Length", "1"], ["Accept", "*/*"]], "")
    assert "Host" not in command
    assert "Content-Length" not in command
    assert "Accept: */*" in command


def test_the_first_difference_is_marked() -> None:
    for bank, sent, same, rests in (
        ("a: 1\nb: 2", "a: 1\nb: 3", "b: ", ("2", "3")),
        ("a: 1", "a: 1\n", "", ("", "")),
        ("a: 1 ", "a: 1", "a: 1", ("·", "")),
        ("a: 1\nb: 2", "b: 2\na: 1", "", ("a: 1", "b: 2")),
    ):
        rows = side_by_side(
            {"signingString": bank, "likelySent": sent, "firstDifference": first_difference(bank, sent)}
        )
        [first] = [row for row in rows if row["first"]]
        assert (first["same"], (first["bank_rest"], first["sent_rest"])) == (same, rests)


def test_without_a_likely_string_nothing_is_compared() -> None:
    assert side_by_side(None) == []
    assert side_by_side({"valid": True, "signingString": "a"}) == []
