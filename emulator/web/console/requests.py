"""Pages for the request log, with the explanation of invalid signatures, and for the conformance report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from shlex import quote
from typing import Any

from emulator.api.log import LARGE_BODY, Exchange, curl_words
from emulator.api.messages import Response
from emulator.web.console.screen import Screen, quote_segment


def listing(screen: Screen) -> Response:
    asked = {name: screen.query.get(name) for name in ("operation", "status", "tpp", "paymentId", "q")}
    exchanges = list(screen.service.log.newest())
    matching = [exchange for exchange in exchanges if _matches(exchange, asked)]
    part = screen.part(len(matching), asked)
    return screen.page(
        "requests",
        exchanges=[exchange.summary() for exchange in matching[part.offset : part.end]],
        part=part,
        asked=asked,
        operations=sorted({exchange.operation for exchange in exchanges if exchange.operation}),
        tpps=sorted({exchange.tpp for exchange in exchanges if exchange.tpp}),
        total=len(exchanges),
    )


def _matches(exchange: Exchange, asked: Mapping[str, str]) -> bool:
    """Whether an exchange passes the filter; a status is one such as `404`, or `4xx` for the whole class."""
    status, sent = asked["status"], str(exchange.status)
    return (
        (not asked["operation"] or exchange.operation == asked["operation"])
        and (not asked["tpp"] or exchange.tpp == asked["tpp"])
        and (not status or sent == status or (status[1:] == "xx" and sent[0] == status[0]))
        and (not asked["paymentId"] or exchange.payment_id == asked["paymentId"])
        and asked["q"].lower() in exchange.request.target.lower()
    )


def repeat(screen: Screen) -> Response:
    repeated = screen.ask("POST", f"requests/{quote_segment(screen.params['id'])}/repeat")
    return screen.go("requests", repeated["id"], done="repeated")


def one(screen: Screen) -> Response:
    exchange = screen.service.log.get(screen.params["id"])
    if exchange is None:
        return screen.missing("request")
    detail = exchange.detail()
    request = detail["request"]
    signature = detail.get("signature")
    return screen.page(
        "request",
        exchange=detail,
        request_body=_pretty(request["body"]),
        response_body=_pretty(detail.get("response", {}).get("body", "")),
        # of a larger body only a part is shown
        curl=curl_command(
            request["method"], exchange.request.base + request["target"], request["headers"], request["body"]
        )
        if exchange.sizes[0] <= LARGE_BODY
        else None,
        signature=signature,
        cause=_cause(signature),
        sides=side_by_side(signature),
        key_id=_key_id(signature),
    )


def _pretty(body: str) -> str:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


def _cause(signature: dict[str, Any] | None) -> str:
    if signature is None or signature["valid"]:
        return ""
    return str(signature.get("signatureCause") or signature.get("cause") or "")


def _key_id(signature: dict[str, Any] | None) -> dict[str, Any] | None:
    """The comparison with the expected keyId, if the one sent differs."""
    key_id: dict[str, Any] = (signature or {}).get("keyId") or {}
    return key_id if "firstDifference" in key_id else None


def side_by_side(signature: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The bank's signing string and the one that was most likely signed, line by line.

    Each row has `bank` and `sent` (None where a side has no such line) and `differs`; the first row that differs also
    has the common prefix `same` and the remainders `bank_rest` and `sent_rest`.
    """
    if signature is None or "likelySent" not in signature:
        return []
    ours, theirs = signature["signingString"].split("\n"), signature["likelySent"].split("\n")
    place = signature.get("firstDifference") or {}
    rows: list[dict[str, Any]] = []
    for number, (bank, sent) in enumerate(zip_longest(ours, theirs), 1):
        is_first = number == place.get("line")
        row: dict[str, Any] = {"bank": bank, "sent": sent, "differs": bank != sent, "first": is_first}
        if is_first:
            same = place["column"] - 1
            row |= {
                "same": (bank or sent or "")[:same],
                "bank_rest": _visible((bank or "")[same:]),
                "sent_rest": _visible((sent or "")[same:]),
            }
        rows.append(row)
    return rows


def _visible(text: str) -> str:
    """White space at a difference as visible characters."""
    return text.replace("\r", "␍").replace("\t", "⇥").replace(" ", "·") if text.strip() == "" else text


def curl_command(method: str, url: str, headers: Iterable[Iterable[str]], body: str) -> str:
    """The curl command, one header per line; its signature is accepted for as long as its Date is."""
    return " \\\n  ".join(curl_words(method, quote(url), headers, body))


# The order: failures, then checks without evidence, then the rest.
_GROUPS = (
    ("Failed", ("fail",)),
    ("Warnings", ("warn",)),
    ("Not seen: these have no result", ("not-seen", "skipped")),
    ("Passed", ("pass",)),
)
_WORDS = {"fail": "failed", "warn": "warning", "not-seen": "not seen", "skipped": "skipped", "pass": "passed"}


def conformance(screen: Screen) -> Response:
    from emulator.conformance.report import NO_OCCASION  # it imports all that reads the files of checks

    report = screen.ask("GET", "conformance")
    groups = [(title, [row for row in report["checks"] if row["verdict"] in verdicts]) for title, verdicts in _GROUPS]
    return screen.page("conformance", groups=groups, summary=report["summary"], words=_WORDS, no_occasion=NO_OCCASION)
