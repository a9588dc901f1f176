"""Where the customer's browser goes after SCA (sca.md#redirect-after-success)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from emulator.bank.authentication import sca
from tests.cases import cases

PSU = "0b9f9b6e-7f0a-4f0e-9a3e-3f6f1f4c2a11"


def success(uri: str, agreement: str | None = None) -> str:
    session: Any = {"psuId": PSU, "agreement": agreement, "tppSessionId": "s 1", "context": "PRIVATE"}
    return sca.success_redirect(uri, session)


def test_success_appends_the_four_parameters_in_order() -> None:
    assert success("https://tpp.example/done", "a1") == (
        f"https://tpp.example/done?psu-id={PSU}&psu-corporate-id=a1&tpp-session-id=s%201&context=PRIVATE"
    )


@cases("own", ["a=1&&b=2", "&a=1", "a=1&", "&", "=x&=", "a=1&;b?c/d", "A=%zz&%41=+%20", "flag&psu-idx=1"])
@cases("app", ["https://tpp.example/done", "HTTPS://TPP.example", "tpp-app://done", "tpp-app:///done"])
def test_every_part_of_the_tpps_own_address_is_kept_as_it_was_sent(app: str, own: str) -> None:
    assert success(f"{app}?{own}").startswith(f"{app}?{own}&psu-id={PSU}&tpp-session-id=")
    reserved = success(f"{app}?psu%2did=1&{own}&context=x&psu-id")
    assert reserved.startswith(f"{app}?{own}&psu-id={PSU}&tpp-session-id=")


@cases("reserved", ["psu-id=forged", "psu%2Did=forged", "context=CORPORATE", "tpp-session-id="])
def test_a_reserved_name_in_the_tpps_query_is_replaced(reserved: str) -> None:
    pairs = parse_qsl(urlsplit(success(f"https://tpp.example/?{reserved}&keep=1")).query)
    assert pairs == [("keep", "1"), ("psu-id", PSU), ("tpp-session-id", "s 1"), ("context", "PRIVATE")]


@cases("reserved", ["status=200", "code=OK", "mess%61ge=hello", "system="])
def test_a_name_of_the_other_outcome_is_taken_out_of_the_tpps_query(reserved: str) -> None:
    pairs = parse_qsl(urlsplit(success(f"https://tpp.example/?{reserved}&keep=1")).query)
    assert pairs == [("keep", "1"), ("psu-id", PSU), ("tpp-session-id", "s 1"), ("context", "PRIVATE")]


@cases("reserved", ["psu-id=forged", "psu-corporate-id=x", "tpp-session-id=1", "context=PRIVATE"])
def test_a_failure_leaves_nothing_that_looks_like_a_success(reserved: str) -> None:
    failed = sca.failure_redirect(f"https://tpp.example/?{reserved}&keep=1", sca.ScaFailure(401, "SCA_INVALID", "No"))
    assert parse_qsl(urlsplit(failed).query) == [
        ("keep", "1"), ("status", "401"), ("code", "SCA_INVALID"), ("message", "No"),
    ]  # fmt: skip


@cases("uri", ["tpp-app://done", "tpp-app:///done", "com.example.app:/done/here"])
def test_app_addresses_keep_their_form(uri: str) -> None:
    assert success(uri).startswith(uri + "?psu-id=")


def test_failure_names_the_system_only_for_server_errors() -> None:
    declined = sca.failure_redirect("https://t.example/", sca.ScaFailure(401, "SCA_INVALID", "It & was declined."))
    assert declined == "https://t.example/?status=401&code=SCA_INVALID&message=It%20%26%20was%20declined."
    broken = sca.failure_redirect("https://t.example/", sca.ScaFailure(500, "SYSTEM_ERROR", "x", "core"))
    assert broken == "https://t.example/?system=core&status=500&code=SYSTEM_ERROR&message=x"
