"""The usual mistakes in the `(request-target)` line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlencode

from emulator.api.signature.evidence import Evidence
from emulator.api.signature.recipe import Mistake, value
from emulator.httpsig.message import REQUEST_TARGET

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
# Where proxies tell the path that they were asked for, or the part of it that they took off.
_BEFORE_PROXY = (
    *("X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Uri"),
    *("X-Original-URI", "X-Original-URL", "X-Envoy-Original-Path"),
)
_MOST_PERMUTED = 4  # parameters of the query; 24 orders
_METHODS = ("get", "post", "put", "delete", "patch")


def target_mistakes(found: Evidence) -> Iterator[Mistake]:
    """Other spellings of method, path and query."""
    if REQUEST_TARGET not in found.names:
        return
    method, target = found.method.lower(), found.target
    path = target.partition("?")[0]
    for name, phrase, text in other_targets(found):
        yield Mistake(name, phrase, value(REQUEST_TARGET, f"{method} {text}"))
    for name, phrase, text in (
        ("method-upper-case", "with the method in upper case", f"{found.method.upper()} {target}"),
        ("method-missing", "without the method before the request target", target),
        ("method-missing", "with the path alone as request target", path),
        ("method-colon", "with a colon after the method", f"{method}: {target}"),
        ("method-no-blank", "without the blank after the method", f"{method}{target}"),
        ("http-version", "with the HTTP version in the request target", f"{method} {target} HTTP/1.1"),
        ("http-version", "with the request line as request target", f"{found.method.upper()} {target} HTTP/1.1"),
    ):
        yield Mistake(name, phrase, value(REQUEST_TARGET, text))
    for other in _METHODS:
        if other != method:
            yield Mistake("method-other", f"with the method {other}", value(REQUEST_TARGET, f"{other} {target}"))


def other_targets(found: Evidence) -> Iterator[tuple[str, str, str]]:
    """Other spellings of path and query: a stable name, a phrase and the text."""
    target = found.target
    path, mark, query = target.partition("?")
    if mark:
        yield "query-left-out", "without the query", path
        yield from _query_orders(path, query.split("&"))
        yield "query-decoded", "with the query decoded", f"{path}?{unquote(query)}"
        encoded = urlencode(parse_qsl(query, keep_blank_values=True))
        yield "query-encoded", "with the query encoded otherwise", f"{path}?{encoded}"
        yield "query-encoded", "with the query encoded otherwise", f"{path}?{encoded.replace('+', '%20')}"
    else:
        yield "query-mark", "with an empty query", f"{target}?"
    for prefix in _prefixes(path):
        shorter = target.removeprefix(prefix)
        yield "prefix-left-out", f"without {prefix} before the path", shorter
        if mark:
            phrase = f"without {prefix} before the path and without the query"
            yield "prefix-left-out", phrase, path.removeprefix(prefix)
    if not path.startswith("/api-sandbox/"):
        yield "prefix-added", "with /api-sandbox before the path", f"/api-sandbox{target}"
    for name in _BEFORE_PROXY:
        told = found.present.get(name.lower())
        if told:
            phrase = f"with the path of {name}, which a proxy has changed since"
            yield "path-before-proxy", phrase, told.removesuffix("/") + target
            yield "path-before-proxy", phrase, told
    for host in _hosts(found):
        for scheme in ("https", "http"):
            yield "whole-address", f"with the whole {scheme} address as target", f"{scheme}://{host}{target}"
            yield "whole-address", f"with the {scheme} address without query as target", f"{scheme}://{host}{path}"
        yield "host-in-target", "with the host before the path", host + target
    yield "target-decoded", "with the target decoded", unquote(target)
    yield "target-encoded", "with the target encoded", quote(target, safe="/?&=%")
    yield "target-encoded", "with the target encoded once more", quote(target, safe="/?&=")
    yield "slash-missing", "without the first slash of the path", target.removeprefix("/")
    slashed = f"{path.removesuffix('/')}{'' if path.endswith('/') else '/'}{mark}{query}"
    yield "final-slash", "with a slash more or less at the end of the path", slashed
    yield "target-lower-case", "with the target in lower case", target.lower()
    yield "path-encoded", "with the path encoded", f"{quote(path, safe='/')}{mark}{query}"
    yield "escapes-case", "with the escapes in upper case", _ESCAPE.sub(lambda found: found[0].upper(), target)
    yield "escapes-case", "with the escapes in lower case", _ESCAPE.sub(lambda found: found[0].lower(), target)


def _query_orders(path: str, parameters: list[str]) -> Iterator[tuple[str, str, str]]:
    """The parameters of the query sorted, and where they are few in every order."""
    yield "query-sorted", "with the query sorted", f"{path}?{'&'.join(sorted(parameters))}"
    if len(parameters) <= _MOST_PERMUTED:
        for other in itertools.islice(itertools.permutations(parameters), 1, None):
            query = "&".join(other)
            yield "query-order", f"with the parameters of the query in another order: {query}", f"{path}?{query}"


def _hosts(found: Evidence) -> Iterator[str]:
    """How a client may know the bank's host: as sent, before a proxy, and without its port."""
    for name in ("host", "x-forwarded-host"):
        if host := found.present.get(name):
            yield host
            yield host.rpartition(":")[0] or host


def _prefixes(path: str) -> Iterator[str]:
    """What stands before /v1, and that with /v1."""
    at = path.find("/v1/")
    if at > 0:
        yield path[:at]
    if at >= 0:
        yield path[: at + 3]
