"""Which operation a method and path mean."""

from __future__ import annotations

import pytest

from emulator.api.operation import Call, Operation, Reply, Route
from emulator.api.router import MethodRefused, Router, split_target
from emulator.bank.errors import BankError
from tests.cases import cases


def _handler(call: Call) -> Reply[None]:
    return Reply(200, None)


def _row(name: str, method: str, path: str) -> Operation:
    return Operation(
        id=name, method=method, path=path, summary="", description="", handler=_handler, column="details", answers={}
    )


ROWS = (
    _row("list", "GET", "/v1/accounts"),
    _row("one", "GET", "/v1/accounts/{id}"),
    _row("special", "GET", "/v1/accounts/special"),
    _row("below", "GET", "/v1/accounts/{id}/balances"),
    _row("create", "POST", "/v1/{service}/{product}"),
)
router = Router(ROWS, Route.of, values={"service": ("payments", "bulk-payments")})


@cases(
    "method, path, operation, params",
    [
        ("GET", "/v1/accounts", "list", {}),
        ("GET", "/v1/accounts/abc", "one", {"id": "abc"}),
        ("GET", "/v1/accounts/special", "special", {}),
        ("GET", "/v1/accounts/special/balances", "below", {"id": "special"}),
        ("GET", "/v1/accounts/enc!!a_b=", "one", {"id": "enc!!a_b="}),
        ("GET", "/v1/accounts/enc%21%21a_b%3D", "one", {"id": "enc!!a_b="}),
        ("GET", "/v1/accounts/a%2Fb", "one", {"id": "a/b"}),
        ("POST", "/v1/bulk-payments/x", "create", {"service": "bulk-payments", "product": "x"}),
    ],
)
def test_a_path_finds_its_operation_and_decoded_parameters(
    method: str, path: str, operation: str, params: dict[str, str]
) -> None:
    match = router.find(method, path)
    assert (match.operation.id, match.params) == (operation, params)


@cases(
    "path",
    [
        "",
        "/",
        "/v1",
        "/v1/accounts/",
        "//v1/accounts",
        "/v1/account",
        "/v1/periodic/x",
        "/v1/accounts/%ff",
        "/v1/accounts/a%zz",
    ],
)
def test_an_address_that_is_not_there_is_not_found(path: str) -> None:
    with pytest.raises(BankError) as refused:
        router.find("GET", path)
    assert refused.value.code == "NOT_FOUND"


def test_a_wrong_method_names_the_allowed_ones() -> None:
    with pytest.raises(MethodRefused) as refused:
        router.find("PATCH", "/v1/accounts/abc")
    assert (refused.value.status, refused.value.headers) == (405, [("Allow", "GET, HEAD, OPTIONS")])


def test_head_is_answered_by_the_row_for_get_and_the_methods_of_a_path_are_named() -> None:
    assert router.find("HEAD", "/v1/accounts/abc").operation.id == "one"
    assert router.methods("/v1/accounts/abc") == ["GET", "HEAD", "OPTIONS"]
    assert router.methods("/v1/payments/x") == ["OPTIONS", "POST"]
    with pytest.raises(MethodRefused):
        router.find("HEAD", "/v1/payments/x")


def test_two_rows_at_one_address_stop_the_start() -> None:
    with pytest.raises(ValueError, match="share the address"):
        Router((*ROWS, _row("again", "GET", "/v1/accounts/{id}")), Route.of)


@cases(
    "target, parts",
    [("/v1/a?b=c?d", ("/v1/a", "b=c?d")), ("http://bank.example:80/v1/a?x", ("/v1/a", "x")), ("*", ("*", ""))],
)
def test_a_target_splits_into_path_and_query(target: str, parts: tuple[str, str]) -> None:
    assert split_target(target) == parts
