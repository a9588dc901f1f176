"""The HTTP status of each code (errors.md#all-codes)."""

from __future__ import annotations

from typing import get_args

from emulator.api.render import refusal
from emulator.bank.errors import STATUS, BankError, Code

TABLE = {
    400: "BAD_REQUEST FORMAT_ERROR HTTP_HEADER_REQUIRED QUERY_PARAMETER_REQUIRED KID_MISSING KID_INVALID "
    "PAYMENT_FAILED EXECUTION_DATE_INVALID REFERENCE_MIX_INVALID SCA_INVALID",
    401: "SCA_NOT_FOUND SCA_EXPIRED CONSENT_UNKNOWN CONSENT_INVALID CONSENT_EXPIRED PSU_CREDENTIALS_INVALID",
    403: "FORBIDDEN PRODUCT_INVALID",
    404: "NOT_FOUND RESOURCE_UNKNOWN PRODUCT_UNKNOWN",
    409: "CONFLICT",
    429: "ACCESS_EXCEEDED",
    500: "SYSTEM_ERROR",
}


def test_each_code_has_the_status_of_its_table() -> None:
    expected = {code: status for status, codes in TABLE.items() for code in codes.split()}
    assert {code: refusal(BankError(code, "")).status for code in STATUS} == expected


def test_an_id_in_a_body_is_no_missing_resource() -> None:
    assert refusal(BankError("RESOURCE_UNKNOWN", "", in_body=True)).status == 400


def test_where_the_api_room_says_another_status_that_one_counts() -> None:
    assert refusal(BankError("BAD_REQUEST", "", status=405)).status == 405


def test_every_code_has_its_status() -> None:
    assert set(STATUS) == set(get_args(Code))
