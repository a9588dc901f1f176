"""The common mistakes in a signing string: tables with a row for each, and the guesses that follow from them.

A row has a stable name, a phrase that continues "the signature was made over a signing string", and what the client
signed instead: one alternative, or a list of pairs of an argument for the phrase and an alternative. A row with None or
without pairs is a mistake that this request does not allow. To add a mistake, add a row, and a broken request to
`tests/unit/signature/test_diagnosis.py`.

The tables form groups: the request target, the values of headers, the choice of lines, their order, and the layout. Two
mistakes are combined only if they are of different groups, and applied in this order. Likelier mistakes stand first in
their table, because only the first ones of a group are combined.
"""

from __future__ import annotations

import itertools
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from emulator.api.signature.digest import other_bodies
from emulator.api.signature.rules import Inspection
from emulator.httpsig.signing import (
    CANDIDATES,
    HASHES,
    REQUEST_TARGET,
    SPELLING,
    DateUnreadable,
    digest_value,
    format_date,
    parse_date,
    request_target,
)

Lines = tuple[tuple[str, str], ...]
Change = Callable[[Lines], Lines]
Rows = Sequence[tuple[str, str, Any]]


class Layout(NamedTuple):
    """The text around names and values; the defaults are those of a right signing string."""

    colon: str = ": "
    joiner: str = "\n"
    before: str = ""
    after: str = ""
    encoding: str = "utf-8"


class Recipe(NamedTuple):
    """How a client may have built its signing string; a line without a name is its value alone.

    A named tuple, because hundreds are created for one invalid signature, and a frozen dataclass takes four times as
    long.
    """

    lines: Lines
    layout: Layout = Layout()

    def text(self) -> str:
        """The signing string by this recipe."""
        colon, joiner, before, after, _ = self.layout
        return before + joiner.join([f"{name}{colon}{value}" if name else value for name, value in self.lines]) + after

    def encoded(self) -> bytes:
        return self.text().encode(self.layout.encoding)


class Mistake(NamedTuple):
    """A row's name, its complete phrase, and one alternative: another layout or a change of the lines."""

    id: str
    phrase: str
    change: Layout | Change

    def apply(self, recipe: Recipe) -> Recipe:
        if isinstance(self.change, Layout):
            return Recipe(recipe.lines, self.change)
        return Recipe(self.change(recipe.lines), recipe.layout)


def each(change: Callable[[str, str], tuple[str, str]], *, target: bool = True) -> Change:
    """Every line changed; without `target`, all but that of the request target."""
    return lambda lines: tuple(
        [change(name, text) if target or name != REQUEST_TARGET else (name, text) for name, text in lines]
    )


def value(line: str, text: str) -> Change:
    return each(lambda name, old: (name, text if name == line else old))


def nameless(names: Collection[str]) -> Change:
    """The lines `names` reduced to their values."""
    return each(lambda name, text: ("" if name in names else name, text))


def spelt(spell: Callable[[str], str], target: Collection[str] = ()) -> list[tuple[str, Change]]:
    """The names of the headers in another case, and if there is a line of the request `target`, this name as well."""
    headers, whole = [each(lambda name, text: (spell(name), text), target=too) for too in (False, True)]
    return [("", headers), *([(f", {REQUEST_TARGET} too", whole)] if target else [])]


def ordered(names: Sequence[str]) -> Change:
    """The lines in the order of `names`, any others last."""
    rank = {name: at for at, name in enumerate(names)}
    return lambda lines: tuple(sorted(lines, key=lambda line: rank.get(line[0], len(rank))))


def chosen(request: Inspection, names: Sequence[str]) -> Change:
    """The lines `names`; one that is not there has the value of the request."""
    sent = {REQUEST_TARGET: request_target(request.method, request.target), **request.present}

    def lines_of(lines: Lines) -> Lines:
        values = sent | dict(lines)
        return tuple([(name, values[name]) for name in names])

    return lines_of


# Headers in which proxies pass on the original path, or the part of it that they have removed.
_BEFORE_PROXY = (
    *("X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Uri"),
    *("X-Original-URI", "X-Original-URL", "X-Envoy-Original-Path"),
)
_METHODS = ("get", "post", "put", "delete", "patch")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_MOST_PERMUTED = 4  # parameters of the query; 24 orders


def target_rows(request: Inspection) -> Rows:
    """Other texts after the method in the line (request-target)."""
    target, sent = request.target, request.present
    path, mark, query = target.partition("?")
    rest, at = mark + query, path.find("/v1/")
    prefixes = [path[:end] for end in (at, at + 3) if at >= 0 < end]
    proxies = [(name, text) for name in _BEFORE_PROXY if (text := sent.get(name.lower()))]
    known = [host for name in ("host", "x-forwarded-host") if (host := sent.get(name))]
    hosts = [form for host in known for form in (host, host.rpartition(":")[0] or host)]  # with and without its port
    bases = [(scheme, f"{scheme}://{host}") for host in hosts for scheme in ("https", "http")]
    parameters = query.split("&")
    few = bool(mark) and len(parameters) <= _MOST_PERMUTED
    orders = ["&".join(other) for other in itertools.permutations(parameters)][1:] if few else []
    read = parse_qsl(query, keep_blank_values=True)
    return (
        ("query-left-out", "without the query", path if mark else None),
        ("query-sorted", "with the query sorted", f"{path}?{'&'.join(sorted(parameters))}" if mark else None),
        ("query-order", "with the parameters of the query in another order: {}", [(q, f"{path}?{q}") for q in orders]),
        ("query-decoded", "with the query decoded", f"{path}?{unquote(query)}" if mark else None),
        ("query-encoded", "with the query encoded otherwise", f"{path}?{urlencode(read)}" if mark else None),
        ("query-encoded", "with the query encoded otherwise",
         f"{path}?{urlencode(read, quote_via=quote)}" if mark else None),
        ("query-mark", "with an empty query", None if mark else f"{target}?"),
        ("prefix-left-out", "without {} before the path", [(part, target.removeprefix(part)) for part in prefixes]),
        ("prefix-left-out", "without {} before the path and without the query",
         [(part, path.removeprefix(part)) for part in prefixes if mark]),
        ("prefix-added", "with /api-sandbox before the path",
         None if path.startswith("/api-sandbox/") else f"/api-sandbox{target}"),
        ("path-before-proxy", "with the path of {}, which a proxy has changed since",
         [(name, other) for name, text in proxies for other in (text.removesuffix("/") + target, text)]),
        ("whole-address", "with the whole {} address as target", [(scheme, base + target) for scheme, base in bases]),
        ("whole-address", "with the {} address without query as target",
         [(scheme, base + path) for scheme, base in bases]),
        ("host-in-target", "with the host before the path", [(host, host + target) for host in hosts]),
        ("target-decoded", "with the target decoded", unquote(target)),
        ("target-encoded", "with the target encoded", quote(target, safe="/?&=%")),
        ("target-encoded", "with the target encoded once more", quote(target, safe="/?&=")),
        ("slash-missing", "without the first slash of the path", target.removeprefix("/")),
        ("final-slash", "with a slash more or less at the end of the path",
         (path[:-1] if path.endswith("/") else f"{path}/") + rest),
        ("target-lower-case", "with the target in lower case", target.lower()),
        ("path-encoded", "with the path encoded", quote(path, safe="/") + rest),
        ("escapes-case", "with the escapes in upper case", _ESCAPE.sub(lambda escape: escape[0].upper(), target)),
        ("escapes-case", "with the escapes in lower case", _ESCAPE.sub(lambda escape: escape[0].lower(), target)),
    )  # fmt: skip


def method_rows(request: Inspection) -> Rows:
    """Other values of the whole line (request-target)."""
    target, lower, upper = request.target, request.method.lower(), request.method.upper()
    return (
        ("method-upper-case", "with the method in upper case", f"{upper} {target}"),
        ("method-missing", "without the method before the request target", target),
        ("method-missing", "with the path alone as request target", target.partition("?")[0]),
        ("method-colon", "with a colon after the method", f"{lower}: {target}"),
        ("method-no-blank", "without the blank after the method", f"{lower}{target}"),
        ("http-version", "with the HTTP version in the request target", f"{lower} {target} HTTP/1.1"),
        ("http-version", "with the request line as request target", f"{upper} {target} HTTP/1.1"),
        ("method-other", "with the method {}", [(name, f"{name} {target}") for name in _METHODS if name != lower]),
    )


def value_rows(request: Inspection, name: str) -> Rows:
    """Other values of the header `name`, which a phrase has as {name}."""
    text = request.present[name]
    sent = [other.strip(" \t") for written, other in request.headers if written.lower() == name]
    several = [sent] if name in request.repeated else []
    return (
        ("value-repeated", "with the last {name} of {}", [(len(all_), all_[-1]) for all_ in several]),
        ("value-repeated", "with the {} values of {name} joined by commas",
         [(len(all_), joiner.join(all_)) for all_ in several for joiner in (", ", ",")]),
        *(_OF_HEADER[name](request, text) if name in _OF_HEADER else ()),
        ("value-case", "with {name} in lower case", text.lower()),
        ("value-case", "with {name} in upper case", text.upper()),
        ("value-blanks", "with a blank at the end of {name}", text + " "),
        ("value-blanks", "with a blank before the value of {name}", " " + text),
        ("value-newline", "with a newline at the end of {name}", text + "\n"),
        ("value-empty", "with an empty {name}", ""),
        ("value-latin-1", "with {name} in ISO-8859-1 read as UTF-8",
         None if text.isascii() else text.encode().decode("latin-1")),
    )  # fmt: skip


_SECONDS_APART = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
_HOURS_APART = (1, 2, 3, -1, -2, -3, *range(4, 15), *range(-4, -13, -1))  # time zones, those of Europe first


def date_rows(_: Inspection, text: str) -> Rows:
    """Other values of Date, if it can be read and is not at an end of the calendar."""
    try:
        seconds, _note = parse_date(text)
        moment = datetime.fromtimestamp(seconds, UTC)
        apart = [(shift, format_date(moment + timedelta(seconds=shift))) for shift in _SECONDS_APART]
        local = [format_date(moment + timedelta(hours=shift)) for shift in _HOURS_APART]
    except (DateUnreadable, ValueError, OverflowError):
        return ()
    usual, digits = format_date(moment), f"{moment:%Y-%m-%dT%H:%M:%S}"
    written = (
        *(f"{digits}Z", f"{digits}.000Z", f"{digits}+00:00", digits.replace("T", " ")),
        *(usual.replace("GMT", zone) for zone in ("+0000", "-0000", "UTC")),
        *(usual.replace(", 0", ", "), moment.ctime(), f"{seconds:.0f}", f"{seconds * 1000:.0f}"),
    )
    return (
        ("date-read-twice", "with a date {} than the header Date: the clock was read twice",
         [(f"{abs(shift)} s {'later' if shift > 0 else 'earlier'}", other) for shift, other in apart]),
        ("date-local", "with the date {!r}, which is not the header Date: a local time called GMT?",
         [(other, other) for other in local]),
        ("date-format", "with the date written as {!r}, not as the header Date", [(other, other) for other in written]),
        ("date-format", "with the date as RFC 7231 writes it, not as the header Date", usual),
    )  # fmt: skip


def digest_rows(request: Inspection, text: str) -> Rows:
    name, _, value = text.partition("=")
    body = request.body or b""
    raw = [(algorithm, function(body).digest()) for algorithm, function in HASHES.items()]
    right = [(algorithm, digest_value(body, algorithm)) for algorithm in HASHES]
    return (
        ("digest-without-name", "with the hash alone as digest, without SHA-256=", value),
        ("digest-name-case", "with the algorithm of the digest in lower case", f"{name.lower()}={value}"),
        ("digest-name-case", "with the algorithm of the digest in upper case", f"{name.upper()}={value}"),
        ("digest-blank", "with a blank in the digest", f"{name}= {value}"),
        ("digest-of-body", "with the {} digest of the body, not with the header Digest",
         [(algorithm, other) for algorithm, other in right if other != text]),
        ("digest-hexadecimal", "with the digest in hexadecimal", [("", f"{kind}={it.hex()}") for kind, it in raw]),
        ("digest-hexadecimal", "with the digest in hexadecimal, without its name", [("", it.hex()) for _, it in raw]),
        ("digest-url-safe", "with the digest in URL-safe base64",
         [("", f"{kind}={urlsafe_b64encode(it).decode()}") for kind, it in raw]),
        ("digest-of-other-bytes", "with the digest of {}",
         [(phrase, digest_value(other)) for phrase, other in other_bodies(body)]),
    )  # fmt: skip


def host_rows(request: Inspection, text: str) -> Rows:
    host = text.rpartition(":")[0] or text
    proxied = request.present.get("x-forwarded-host") or None
    return (
        ("host", "with the host without its port", host),
        ("host", "with the host of X-Forwarded-Host, which a proxy has changed since", proxied),
        ("host", "with the port {} after the host", [(port, f"{host}:{port}") for port in ("80", "443", "8080")]),
    )


def content_type_rows(_: Inspection, text: str) -> Rows:
    """The content type with and without a charset."""
    plain = text.partition(";")[0].rstrip(" ")
    other = [plain, *(plain + mark + name for name in ("utf-8", "UTF-8") for mark in ("; charset=", ";charset="))]
    phrase = "with the content-type {}: the library that sends it writes another charset or none"
    return [("content-type", phrase, [(written, written) for written in other])]


def redirect_uri_rows(_: Inspection, text: str) -> Rows:
    """Other values of TPP-Redirect-URI."""
    return (
        ("redirect-uri-decoded", "with TPP-Redirect-URI decoded", unquote(text)),
        ("redirect-uri-encoded", "with TPP-Redirect-URI encoded", quote(text, safe="")),
        ("redirect-uri-slash", "with a slash more at the end of TPP-Redirect-URI", text + "/"),
        ("redirect-uri-slash", "with a slash less at the end of TPP-Redirect-URI", text.removesuffix("/")),
    )


_OF_HEADER: dict[str, Callable[[Inspection, str], Rows]] = {
    "date": date_rows,
    "digest": digest_rows,
    "host": host_rows,
    "content-type": content_type_rows,
    "tpp-redirect-uri": redirect_uri_rows,
}
ALL_VALUES: Rows = (
    ("values-lower-case", "with the values in lower case", each(lambda name, text: (name, text.lower()))),
    ("values-upper-case", "with the values in upper case", each(lambda name, text: (name, text.upper()), target=False)),
    ("values-quoted", "with the values in quotes", each(lambda name, text: (name, f'"{text}"'), target=False)),
)
_MOST_FURTHER = 40  # headers of the request that are tried as additional lines


def choice_rows(request: Inspection) -> Rows:
    """A missing or an additional line."""
    names, sent = request.names, [name.lower() for name, _ in request.headers]
    further = [name for name in (REQUEST_TARGET, *request.present) if name not in names and name != "signature"]
    nothing_listed = request.header is not None and request.header.headers is None
    candidates = [[name for name in order if name in CANDIDATES and name in sent] for order in (CANDIDATES, sent)]
    return (
        ("headers-not-listed", "of several lines, while a Signature without the parameter headers covers date alone",
         [("", chosen(request, other)) for order in candidates if nothing_listed
          for other in (order, [REQUEST_TARGET, *order], [*order, REQUEST_TARGET])]),
        ("line-left-out", "without {}, which is listed",
         [(left, chosen(request, [name for name in names if name != left])) for left in names if len(names) > 1]),
        ("line-not-listed", "that also holds {}, which is not listed",
         [(name, chosen(request, other)) for name in further[:_MOST_FURTHER]
          for other in ([*names, name], [name, *names])]),
    )  # fmt: skip


_MOST_LINES_PERMUTED = 6  # as a payment has; 720 orders


def order_rows(request: Inspection) -> Rows:
    """The lines in another order than listed."""
    names = list(request.names)
    pseudo = [name for name in names if name == REQUEST_TARGET]
    sent = [lower for name, _ in request.headers if (lower := name.lower()) in names]
    documented = [name for name in CANDIDATES if name in names]
    rest = [name for name in names if name not in CANDIDATES and name != REQUEST_TARGET]
    rows = (
        ("order-of-request", "the order of the request's headers", pseudo + sent),
        ("order-of-request", "the order of the request's headers", sent + pseudo),
        ("order-reversed", "the reverse of the order listed", names[::-1]),
        ("order-alphabetical", "alphabetical order", sorted(names)),
        ("order-documented", "the order of the documentation", pseudo + documented + rest),
        ("order-documented", "the order of the documentation", documented + rest + pseudo),
    )
    end = ", not in the order listed"
    return [
        (id_, f"in {which}{'' if id_ == 'order-reversed' else end}", ordered(other))
        for id_, which, other in rows
        if other != names
    ]


def any_order_rows(request: Inspection) -> Rows:
    """Every order of a few lines; of more lines, each one in every other position."""
    names = request.names
    orders = itertools.permutations(names) if len(names) <= _MOST_LINES_PERMUTED else _one_moved(names)
    phrase = "in another order than listed: {}"
    return [("order", phrase, [(" ".join(other), chosen(request, other)) for other in orders])]


def _one_moved(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for at, name in enumerate(names):
        others = names[:at] + names[at + 1 :]
        for place in range(len(names)):
            yield (*others[:place], name, *others[place:])


def layout_rows(request: Inspection) -> Rows:
    """The text around names and values, and the spelling of the names."""
    sent = {name.lower(): name for name, _ in request.headers}
    listed = {name.lower(): name for name in ((request.header and request.header.headers) or "").split()}
    target = {REQUEST_TARGET} & set(request.names)
    return (
        ("no-blank-after-colon", "without the blank after the colons", Layout(colon=":")),
        ("final-newline", "that ends in a newline", Layout(after="\n")),
        ("crlf", "with CRLF in place of newlines", Layout(joiner="\r\n")),
        ("crlf", "with CRLF after each line", Layout(joiner="\r\n", after="\r\n")),
        ("lines-put-together", "with {} after each line and without the blank after the colons",
         [(kind, Layout(":", end, after=end)) for kind, end in (("a newline", "\n"), ("CRLF", "\r\n"))]),
        ("names-as-sent", "with the names in the case of the request's headers{}",
         spelt(lambda name: sent.get(name, name))),
        ("names-as-listed", "with the names in the case of the parameter headers{}",
         spelt(lambda name: listed.get(name, name))),
        ("names-as-documented", "with the names in the documentation's case{}",
         spelt(lambda name: SPELLING.get(name, name))),
        ("names-in-title-case", "with the names in title case{}", spelt(str.title, target)),
        ("names-in-upper-case", "with the names in upper case{}", spelt(str.upper, target)),
        ("target-without-brackets", "with request-target without its brackets",
         each(lambda name, text: (name.strip("()") if name in target else name, text)) if target else None),
        ("target-without-name", "with the request target without its name", nameless(target) if target else None),
        ("values-only", "of the values without their names", nameless(set(request.names))),
        ("literal-backslash-n", "with a backslash and an n in place of newlines", Layout(joiner="\\n")),
        ("trailing-blanks", "with a blank at the end of each line", Layout(joiner=" \n", after=" ")),
        ("trailing-blanks", "with a blank before each newline", Layout(joiner=" \n")),
        ("joined-by-blanks", "with blanks in place of newlines", Layout(joiner=" ")),
        ("joined-by-commas", "with commas in place of newlines", Layout(joiner=",")),
        ("joined-by-commas", "with commas and blanks in place of newlines", Layout(joiner=", ")),
        ("not-joined", "without newlines", Layout(joiner="")),
        ("two-blanks", "with two blanks after the colons", Layout(colon=":  ")),
        ("blank-before-colon", "with a blank before the colons", Layout(colon=" : ")),
        ("equals-sign", "with = in place of the colons", Layout(colon="=")),
        ("leading-newline", "that begins with a newline", Layout(before="\n")),
        ("byte-order-mark", "that begins with a byte order mark", Layout(before="\ufeff")),
        ("quoted", "in quotes", Layout(before='"', after='"')),
        ("utf-16", "in UTF-16", Layout(encoding="utf-16-le")),
    )  # fmt: skip


_PAIRED = 12  # mistakes of a group that are combined with those of another


def groups(request: Inspection) -> list[list[Mistake]]:
    """The mistakes that a client may have made with this request, by group."""
    method, named = request.method.lower(), REQUEST_TARGET in request.names
    targets = mistakes(target_rows(request), lambda text: value(REQUEST_TARGET, f"{method} {text}")) if named else []
    methods = mistakes(method_rows(request), lambda text: value(REQUEST_TARGET, text)) if named else []
    values = [
        mistakes(value_rows(request, name), partial(value, name), name)
        for name in request.names
        if name != REQUEST_TARGET
    ]
    return [
        [*targets, *methods],
        [*itertools.chain(*values), *mistakes(ALL_VALUES)],
        mistakes(choice_rows(request)),
        mistakes(order_rows(request)),
        mistakes(layout_rows(request)),
    ]


def mistakes(rows: Rows, change: Callable[[Any], Any] = lambda one: one, header: str = "") -> list[Mistake]:
    """The rows as mistakes; `change` makes a change of an alternative."""
    return [
        Mistake(name, phrase.format(argument, name=header), change(one))
        for name, phrase, alternatives in rows
        if alternatives is not None
        for argument, one in (alternatives if isinstance(alternatives, list) else [("", alternatives)])
    ]


def guesses(request: Inspection) -> Iterator[tuple[tuple[Mistake, ...], Recipe]]:
    """What a client may have signed, with the mistakes that lead to it, in the order in which they were applied.

    First the right signing string, then each mistake alone, every order of the lines, and pairs of mistakes.
    """
    own = Recipe(tuple(request.lines(request.target)))
    yield (), own
    by_group = groups(request)
    # The layout comes first, so that a final newline is attributed to the text and not to the last value.
    for mistake in itertools.chain(*reversed(by_group), mistakes(any_order_rows(request))):
        yield (mistake,), mistake.apply(own)
    likeliest = [list({one.id: one for one in reversed(group)}.values())[::-1][:_PAIRED] for group in by_group]
    for first, second in sorted(itertools.combinations(range(len(by_group)), 2), key=lambda pair: -pair[1]):
        for one in likeliest[first]:
            half = one.apply(own)
            for other in likeliest[second]:
                yield (one, other), other.apply(half)
