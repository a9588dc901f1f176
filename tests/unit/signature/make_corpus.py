"""Makes `corpus.jsonl`: 500 requests that are signed wrongly, each with what the bank says of it.

    python -m tests.unit.signature.make_corpus          # new requests and verdicts, with the same keys
    python -m tests.unit.signature.make_corpus verdicts # the same requests, with the verdicts of today's code

A request is one of `CLIENTS` (what is sent) with one of the mistakes below (what is signed, or how the headers are
written). The first line of the file has the keys and certificates, so that every run makes the same signatures.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.x509 import load_pem_x509_certificate

from emulator.api.signature import SignaturePolicy, SignatureRefused, check
from emulator.ca import CertificateAuthority
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import CANDIDATES, digest_value, signing_string, wrap
from tests.unit.signature.making import BODY, NOW, STANDING, TARGET

CORPUS = Path(__file__).with_name("corpus.jsonl")
SIZE = 500
TARGET_LINE = "(request-target)"

Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Client:
    """What a client sends, before it makes a mistake; `further` headers are signed beside the candidates."""

    name: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    further: tuple[str, ...] = ()
    with_target: bool = True
    hash: str = "SHA-256"

    def sent(self) -> list[tuple[str, str]]:
        return [*self.headers, *([("Digest", digest_value(self.body, self.hash))] if self.body else [])]

    def lines(self) -> Lines:
        sent: dict[str, str] = {}
        for name, value in self.sent():
            sent.setdefault(name.lower(), value)
        target = [(TARGET_LINE, f"{self.method.lower()} {self.target}")] if self.with_target else []
        return target + [(name, sent[name]) for name in (*CANDIDATES, *self.further) if name in sent]


def but(headers: tuple[tuple[str, str], ...], *changed: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    names = {name for name, _ in changed}
    return (*(pair for pair in headers if pair[0] not in names), *changed)


PROXIED = but(
    STANDING,
    ("X-Forwarded-Prefix", "/psd2"),
    ("X-Forwarded-Host", "bank.example:443"),
    ("Content-Type", "application/json; charset=utf-8"),
)
INDENTED = json.dumps({"name": "Blåbær/AS", "tags": [1, 2]}, indent=2, ensure_ascii=False).encode()
CLIENTS = (
    Client("payment", "POST", TARGET, STANDING, BODY),
    Client(
        "transactions",
        "GET",
        "/v1/accounts/enc!!a%2Fb=/transactions?dateFrom=2026-01-01&bookingStatus=both&limit=5",
        STANDING,
        further=("host",),
    ),
    Client("proxied", "POST", "/v1/signing-baskets", PROXIED, b'{"paymentIds": ["a/b"]}', ("host", "content-type")),
    Client("cancel", "DELETE", "/banks/ci/v1/payments/sepa-credit-transfers/4711?reason=a%20b+c", STANDING),
    Client("sandbox", "PUT", "/api-sandbox/v1/sandbox/customers/1", STANDING, INDENTED, hash="SHA-512"),
    Client("no target", "GET", "/v1/accounts", STANDING, with_target=False),
    Client("twice", "GET", "/v1/accounts", (*STANDING, ("X-Request-ID", "second")), further=("host",)),
    Client("blåbær", "GET", "/v1/accounts?b=%c3%b8&a=", (*STANDING, ("X-Name", "Blåbær")), further=("x-name",)),
    Client("old date", "GET", "/v1/accounts", but(STANDING, ("Date", "Mon Mar  2 08:00:00 2026"))),
)

# What is signed: functions of the client and its lines. None, or the right lines: this client cannot make the mistake.

Change = Callable[[Client, Lines], Lines | None]


def target(text: Callable[[Client], str]) -> Change:
    return lambda client, lines: [(name, text(client) if name == TARGET_LINE else value) for name, value in lines]


def path(change: Callable[[str], str], *, query: bool = True) -> Change:
    def text(client: Client) -> str:
        left, mark, right = client.target.partition("?")
        return f"{client.method.lower()} {change(left)}{mark + right if query else ''}"

    return target(text)


def queried(change: Callable[[str], str]) -> Change:
    def text(client: Client) -> str:
        left, mark, right = client.target.partition("?")
        return f"{client.method.lower()} {left}{mark}{change(right)}"

    return target(text)


def whole(change: Callable[[str], str]) -> Change:
    return target(lambda client: f"{client.method.lower()} {change(client.target)}")


def value(line: str, change: Callable[[str], str]) -> Change:
    return lambda _, lines: [(name, change(text) if name == line else text) for name, text in lines]


def constant(line: str, text: str) -> Change:
    return value(line, lambda _: text)


def each(change: Callable[[str, str], tuple[str, str]]) -> Change:
    return lambda _, lines: [change(name, text) for name, text in lines]


def only(name: str, change: Change) -> Change:
    return lambda client, lines: change(client, lines) if client.name == name else None


def digest(body: Callable[[bytes], bytes]) -> Change:
    return lambda client, lines: value("digest", lambda _: digest_value(body(client.body)))(client, lines)


def written(**options: Any) -> Change:
    return digest(lambda body: json.dumps(json.loads(body or b"0"), **options).encode())


def order(key: Callable[[Client], Callable[[str], Any]]) -> Change:
    return lambda client, lines: sorted(lines, key=lambda line: key(client)(line[0]))


def as_sent(client: Client) -> Callable[[str], int]:
    names = [name.lower() for name, _ in client.sent()]
    return lambda name: -1 if name == TARGET_LINE else names.index(name)


def further(name: str, *, first: bool = False) -> Change:
    def change(client: Client, lines: Lines) -> Lines | None:
        sent = {other.lower(): text for other, text in client.sent()} | {TARGET_LINE: f"get {client.target}"}
        if name not in sent or name in dict(lines):
            return None
        return [(name, sent[name]), *lines] if first else [*lines, (name, sent[name])]

    return change


def case(spell: Callable[[str], str], *, target_too: bool = False) -> Change:
    return each(lambda name, text: (name if name == TARGET_LINE and not target_too else spell(name), text))


SPELT = {name.lower(): name for name, _ in STANDING} | {"digest": "Digest"}
CHANGES: dict[str, Change] = {
    "query left out": path(str, query=False),
    "query sorted": queried(lambda query: "&".join(sorted(query.split("&")))),
    "query in another order": queried(lambda query: "&".join(query.split("&")[::-1])),
    "query decoded": queried(unquote),
    "query plus": queried(lambda query: query.replace("%20", "+")),
    "query percent": queried(lambda query: query.replace("+", "%20")),
    "empty query": whole(lambda text: text if "?" in text else text + "?"),
    "no /v1": whole(lambda text: text.replace("/v1", "", 1)),
    "no prefix": whole(lambda text: text[text.index("/v1") :]),
    "no prefix nor query": whole(lambda text: text[text.index("/v1/") + 3 :].partition("?")[0]),
    "prefix": whole(lambda text: "/api-sandbox" + text),
    "before proxy": only("proxied", whole(lambda text: "/psd2" + text)),
    "https": whole(lambda text: "https://127.0.0.1:8080" + text),
    "http": whole(lambda text: "http://127.0.0.1" + text),
    "public": only("proxied", whole(lambda text: "https://bank.example" + text)),
    "https without query": path(lambda text: "https://127.0.0.1:8080" + text, query=False),
    "host": whole(lambda text: "127.0.0.1:8080" + text),
    "decoded": whole(unquote),
    "encoded": whole(lambda text: quote(text, safe="/?&=%")),
    "encoded again": whole(lambda text: quote(text, safe="/?&=")),
    "path encoded": path(lambda text: quote(text, safe="/")),
    "escapes lower": whole(lambda text: text.replace("%2F", "%2f").replace("%C3%B8", "%c3%b8")),
    "escapes upper": whole(lambda text: text.replace("%2f", "%2F").replace("%c3%b8", "%C3%B8")),
    "no slash": whole(lambda text: text[1:]),
    "final slash": path(lambda text: text + "/"),
    "lower case": whole(str.lower),
    "method in upper case": target(lambda client: f"{client.method} {client.target}"),
    "no method": target(lambda client: client.target),
    "path alone": target(lambda client: client.target.partition("?")[0]),
    "method with colon": target(lambda client: f"{client.method.lower()}: {client.target}"),
    "method without blank": target(lambda client: client.method.lower() + client.target),
    "version": whole(lambda text: text + " HTTP/1.1"),
    "request line": target(lambda client: f"{client.method} {client.target} HTTP/1.1"),
    "method get": target(lambda client: f"get {client.target}"),
    "method patch": target(lambda client: f"patch {client.target}"),
    "date 1 s later": constant("date", "Mon, 02 Mar 2026 08:00:01 GMT"),
    "date 5 s earlier": constant("date", "Mon, 02 Mar 2026 07:59:55 GMT"),
    "local date": constant("date", "Mon, 02 Mar 2026 09:00:00 GMT"),
    "date of the day before": constant("date", "Sun, 01 Mar 2026 20:00:00 GMT"),
    "ISO date": constant("date", "2026-03-02T08:00:00Z"),
    "ISO date with milliseconds": constant("date", "2026-03-02T08:00:00.000Z"),
    "ISO date with zone": constant("date", "2026-03-02T08:00:00+00:00"),
    "date as a database has it": constant("date", "2026-03-02 08:00:00"),
    "date with zone": constant("date", "Mon, 02 Mar 2026 08:00:00 +0000"),
    "date in UTC": constant("date", "Mon, 02 Mar 2026 08:00:00 UTC"),
    "date with one digit": constant("date", "Mon, 2 Mar 2026 08:00:00 GMT"),
    "asctime": constant("date", "Mon Mar  2 08:00:00 2026"),
    "fixdate": constant("date", "Mon, 02 Mar 2026 08:00:00 GMT"),
    "seconds": constant("date", "1772438400"),
    "milliseconds": constant("date", "1772438400000"),
    "hash alone": value("digest", lambda text: text.partition("=")[2]),
    "digest name in lower case": value("digest", lambda text: text[:7].lower() + text[7:]),
    "blank in digest": value("digest", lambda text: text.replace("=", "= ", 1)),
    "other digest": lambda client, lines: value("digest", lambda _: digest_value(client.body, "SHA-512"))(
        client, lines
    ),
    "SHA-256 digest": digest(bytes),
    "hexadecimal digest": lambda client, lines: constant(
        "digest", f"SHA-256={hashlib.sha256(client.body).hexdigest()}"
    )(client, lines),
    "hexadecimal": lambda client, lines: constant("digest", hashlib.sha256(client.body).hexdigest())(client, lines),
    "URL-safe digest": value("digest", lambda text: text.replace("+", "-").replace("/", "_")),
    "digest of nothing": digest(lambda _: b""),
    "digest with newline": digest(lambda body: body + b"\n"),
    "digest with CRLF": digest(lambda body: body.replace(b"\n", b"\r\n")),
    "digest of UTF-16": digest(lambda body: body.decode().encode("utf-16-le")),
    "digest of compact JSON": written(separators=(",", ":"), ensure_ascii=False),
    "digest of indented JSON": written(indent=4),
    "digest of sorted JSON": written(indent=2, sort_keys=True, ensure_ascii=False),
    "digest of PHP's JSON": digest(
        lambda body: json.dumps(json.loads(body or b"0"), separators=(",", ":")).replace("/", "\\/").encode()
    ),
    "host without port": constant("host", "127.0.0.1"),
    "other port": constant("host", "127.0.0.1:443"),
    "public host": only("proxied", constant("host", "bank.example:443")),
    "no charset": constant("content-type", "application/json"),
    "other charset": constant("content-type", "application/json;charset=UTF-8"),
    "redirect decoded": value("tpp-redirect-uri", unquote),
    "redirect encoded": value("tpp-redirect-uri", lambda text: quote(text, safe="")),
    "redirect with slash": value("tpp-redirect-uri", lambda text: text + "/"),
    "psu-id in upper case": value("psu-id", str.upper),
    "date in lower case": value("date", str.lower),
    "blank after psu-id": value("psu-id", lambda text: text + " "),
    "blank before x-request-id": value("x-request-id", lambda text: " " + text),
    "newline after digest": value("digest", lambda text: text + "\n"),
    "empty psu-id": constant("psu-id", ""),
    "last of two": only("twice", constant("x-request-id", "second")),
    "both": only("twice", value("x-request-id", lambda text: text + ", second")),
    "both without blank": only("twice", value("x-request-id", lambda text: text + ",second")),
    "Latin-1": value("x-name", lambda text: text.encode().decode("latin-1")),
    "values in lower case": each(lambda name, text: (name, text.lower())),
    "values in upper case": each(lambda name, text: (name, text if name == TARGET_LINE else text.upper())),
    "values in quotes": each(lambda name, text: (name, text if name == TARGET_LINE else f'"{text}"')),
    "without psu-id": lambda _, lines: [line for line in lines if line[0] != "psu-id"],
    "without the target": lambda _, lines: [line for line in lines if line[0] != TARGET_LINE],
    "host too": further("host"),
    "host first": further("host", first=True),
    "x-accept-fix too": further("x-accept-fix"),
    "target too": further(TARGET_LINE, first=True),
    "as sent": order(as_sent),
    "reversed": lambda _, lines: lines[::-1],
    "alphabetical": order(lambda _: str),
    "target last": order(lambda _: lambda name: name == TARGET_LINE),
    "shuffled": order(lambda _: lambda name: hashlib.sha256(name.encode()).digest()),
    "third line last": lambda _, lines: [*lines[:2], *lines[3:], lines[2]],
    "names as sent": case(lambda name: SPELT.get(name, name)),
    "names in title case": case(str.title),
    "all names in title case": case(str.title, target_too=True),
    "names in upper case": case(str.upper),
    "all names in upper case": case(str.upper, target_too=True),
    "no brackets": each(lambda name, text: (name.strip("()"), text)),
}
LAYOUTS: dict[str, Callable[[Lines], str | bytes]] = {
    "no blank": lambda lines: "\n".join(f"{name}:{text}" for name, text in lines),
    "final newline": lambda lines: signing_string(lines) + "\n",
    "CRLF": lambda lines: signing_string(lines).replace("\n", "\r\n"),
    "CRLF everywhere": lambda lines: "".join(f"{name}: {text}\r\n" for name, text in lines),
    "put together": lambda lines: "".join(f"{name}:{text}\n" for name, text in lines),
    "put together with CRLF": lambda lines: "".join(f"{name}:{text}\r\n" for name, text in lines),
    "backslash n": lambda lines: signing_string(lines).replace("\n", "\\n"),
    "blank at each end": lambda lines: "\n".join(f"{name}: {text} " for name, text in lines),
    "blank before newlines": lambda lines: signing_string(lines).replace("\n", " \n"),
    "blanks": lambda lines: signing_string(lines).replace("\n", " "),
    "commas": lambda lines: signing_string(lines).replace("\n", ","),
    "commas and blanks": lambda lines: signing_string(lines).replace("\n", ", "),
    "not joined": lambda lines: signing_string(lines).replace("\n", ""),
    "two blanks": lambda lines: "\n".join(f"{name}:  {text}" for name, text in lines),
    "blank before colon": lambda lines: "\n".join(f"{name} : {text}" for name, text in lines),
    "equals": lambda lines: "\n".join(f"{name}={text}" for name, text in lines),
    "leading newline": lambda lines: "\n" + signing_string(lines),
    "byte order mark": lambda lines: "\ufeff" + signing_string(lines),
    "quotes": lambda lines: f'"{signing_string(lines)}"',
    "UTF-16": lambda lines: signing_string(lines).encode("utf-16-le"),
    "values": lambda lines: "\n".join(text for _, text in lines),
    "target without name": lambda lines: "\n".join(
        text if name == TARGET_LINE else f"{name}: {text}" for name, text in lines
    ),
    "hash": lambda lines: hashlib.sha256(signing_string(lines).encode()).digest(),
    "hexadecimal hash": lambda lines: hashlib.sha256(signing_string(lines).encode()).hexdigest(),
    "base64 hash": lambda lines: base64.b64encode(hashlib.sha256(signing_string(lines).encode()).digest()),
    "nothing": lambda _: "",
    "something else": lambda _: "something else",
    "the digest": lambda lines: dict(lines).get("digest", "-"),
}
PAIRS = (
    ("query left out", "final newline"),
    ("method in upper case", "no blank"),
    ("no /v1", "CRLF"),
    ("https", "put together"),
    ("reversed", "final newline"),
    ("alphabetical", "CRLF"),
    ("without psu-id", "final newline"),
    ("host too", "commas"),
    ("date 1 s later", "final newline"),
    ("hexadecimal digest", "blanks"),
    ("names as sent", "final newline"),
    ("psu-id in upper case", "UTF-16"),
    ("redirect encoded", "backslash n"),
)
LINE_PAIRS = (
    ("query left out", "alphabetical"),
    ("method in upper case", "date 1 s later"),
    ("path alone", "without psu-id"),
    ("digest of nothing", "as sent"),
    ("prefix", "names as sent"),
    ("psu-id in upper case", "reversed"),
)


@dataclass(frozen=True)
class Written:
    """How the headers are written: `parameters` of Signature that differ, changes of header lines and of the check."""

    parameters: dict[str, str | None] | None = None
    headers: dict[str, str | None] | None = None
    finish: Callable[[str], str] = str
    sign: str = "SHA256"
    more: dict[str, Any] | None = None


def signature(change: Callable[[str], str]) -> Written:
    return Written(finish=lambda header: header.replace((value := header.rsplit('"', 2)[1]), change(value)))


def hexadecimal(text: str) -> str:
    return base64.b64decode(text).hex()


def digests(body: bytes) -> Iterator[tuple[str, str]]:
    raw = hashlib.sha256(body).digest()
    good = base64.b64encode(raw).decode()
    for name, text in {
        "hexadecimal": raw.hex(),
        "base64 of hexadecimal": base64.b64encode(raw.hex().encode()).decode(),
        "unpadded": good.rstrip("="),
        "twice": base64.b64encode(good.encode()).decode(),
        "quoted": f"'{good}'".replace("'", '"'),
        "colons": f":{good}:",
        "repr": f"b'{good}'",
        "URL-safe": good.replace("+", "-").replace("/", "_"),
        "URL-safe unpadded": good.replace("+", "-").replace("/", "_").rstrip("="),
        "no base64": "x",
        "short": "AAAA",
        "other bytes": base64.b64encode(bytes(32)).decode(),
        "SHA-1": base64.b64encode(hashlib.sha1(body).digest()).decode(),
        "MD5": base64.b64encode(hashlib.md5(body).digest()).decode(),
        "SHA-384": base64.b64encode(hashlib.sha384(body).digest()).decode(),
        "SHA-512": base64.b64encode(hashlib.sha512(body).digest()).decode(),
    }.items():
        yield name, f"SHA-256={text}"
    yield "SHA-256 as SHA-512", f"SHA-512={good}"
    value = json.loads(body)
    compact = json.dumps(value, separators=(",", ":"))
    for name, other in {
        "nothing": b"",
        "newline": body + b"\n",
        "CRLF": body + b"\r\n",
        "newlines as CRLF": body.replace(b"\n", b"\r\n"),
        "byte order mark": b"\xef\xbb\xbf" + body,
        "base64": base64.b64encode(body),
        "UTF-16": body.decode().encode("utf-16-le"),
        "ISO-8859-1": body.decode().encode("latin-1"),
        "compact": compact.encode(),
        "compact UTF-8": json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(),
        "PHP": compact.replace("/", "\\/").encode(),
        "blanks": json.dumps(value).encode(),
        "indented by 2": json.dumps(value, indent=2).encode(),
        "indented by 4 with newline": json.dumps(value, indent=4).encode() + b"\n",
        "tabs": json.dumps(value, indent="\t", ensure_ascii=False).encode(),
        "Java": json.dumps(value, indent=2, separators=(",", " : ")).encode(),
        "sorted": json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
        "indented with CRLF": json.dumps(value, indent=2).replace("\n", "\r\n").encode(),
        "string": json.dumps(body.decode()).encode(),
        "other": b"else",
    }.items():
        yield f"of {name}", digest_value(other)
    yield "nothing known", "MD5=x"
    yield "two", f"SHA-512=x, {digest_value(body)}"


WRITTEN: dict[str, Written] = {
    "no signature": Written(headers={"Signature": None}),
    "Authorization": Written(headers={"Signature": None, "Authorization": "Signature x"}),
    "no certificate": Written(headers={"TPP-Signature-Certificate": None}),
    "no date": Written(headers={"Date": None}),
    "X-Date": Written(headers={"Date": None, "X-Date": "Mon, 02 Mar 2026 08:00:00 GMT"}),
    "no digest": Written(headers={"Digest": None}),
    "empty signature header": Written(headers={"Signature": ""}),
    "bad certificate": Written(headers={"TPP-Signature-Certificate": "AAAA"}),
    "certificate of another": Written(headers={"TPP-Signature-Certificate": "@other"}),
    "certificate of the CA": Written(headers={"TPP-Signature-Certificate": "@ca"}),
    "expired": Written(more={"after": 400 * 86400}),
    "not valid yet": Written(more={"after": -400 * 86400}),
    "late": Written(more={"after": 301}),
    "an hour early": Written(more={"after": -3600}),
    "unread date": Written(headers={"Date": "2026-03-02"}),
    "no such day": Written(headers={"Date": "Tue, 02 Mar 2026 08:00:00 GMT"}),
    "word": Written(finish=lambda header: f"Signature {header}"),
    "no quotes": Written(finish=lambda header: header.replace('"', "")),
    "unclosed": Written(finish=lambda header: header[:-1]),
    "semicolons": Written(finish=lambda header: header.replace('",', '";')),
    "RFC 9421": Written(finish=lambda header: 'sig1=("date");keyid="x"'),
    "keyId twice": Written(finish=lambda header: f'keyId="x",{header}'),
    "no keyId": Written({"keyId": None}),
    "no algorithm": Written({"algorithm": None}),
    "no signature parameter": Written({"signature": None}),
    "algorithm none": Written({"algorithm": "none"}),
    "hs2019": Written({"algorithm": "hs2019"}),
    "rsa-sha1": Written({"algorithm": "rsa-sha1"}, sign="SHA1"),
    "hmac": Written({"algorithm": "hmac-sha256"}),
    "RSA-SHA256": Written({"algorithm": "RSA-SHA256"}),
    "ecdsa": Written({"algorithm": "ecdsa-sha256"}),
    "names with commas": Written({"headers": "(request-target),date,digest"}),
    "names in upper case": Written({"headers": "(request-target) Date Digest"}),
    "names twice": Written({"headers": "date date"}),
    "no names": Written({"headers": ""}),
    "created": Written({"headers": "(created) date"}),
    "request-target": Written({"headers": "request-target date digest x-request-id psu-id tpp-redirect-uri"}),
    "unknown name": Written({"headers": "(request-target) date digest x-request-id psu-id tpp-redirect-uri x-none"}),
    "date alone": Written({"headers": "date"}),
    "without headers": Written({"headers": None}),
    "lower-case serial": Written({"keyId": "SN=@serial-lower,CA=@issuer"}),
    "decimal serial": Written({"keyId": "SN=@serial-decimal,CA=@issuer"}),
    "serial with 0x": Written({"keyId": "SN=0x@serial,CA=@issuer"}),
    "other serial": Written({"keyId": "SN=1,CA=@issuer"}),
    "subject": Written({"keyId": "SN=@serial,CA=@subject"}),
    "other issuer": Written({"keyId": "SN=@serial,CA=CN=x"}),
    "percent": Written({"keyId": "SN=@serial,CA=@issuer-percent"}),
    "no form": Written({"keyId": "demo"}),
    "blank": Written({"keyId": "SN=@serial, CA=@issuer"}),
    "empty signature": signature(lambda _: ""),
    "hexadecimal signature": signature(hexadecimal),
    "URL-safe signature": signature(lambda text: text.replace("+", "-").replace("/", "_")),
    "unpadded signature": signature(lambda text: text.rstrip("=")),
    "signature with blanks": signature(lambda text: f"{text[:76]} {text[76:]}"),
    "repr of signature": signature(lambda text: f"b'{text}'"),
    "URL-encoded signature": signature(lambda text: quote(text, safe="")),
    "signature twice encoded": signature(lambda text: base64.b64encode(text.encode()).decode()),
    "short signature": signature(lambda text: text[:60]),
    "altered signature": signature(lambda text: "A" * 8 + text[8:]),
    "wrapped and wrong": Written(finish=lambda header: wrap(header.replace("rsa-sha256", "none"))),
    "badly wrapped": Written(finish=lambda header: f"=?utf-8?X?{header}?="),
    "other key": Written(sign="other key"),
    "SHA-1": Written(sign="SHA1"),
    "SHA-512": Written(sign="SHA512"),
    "MD5": Written(sign="MD5"),
    "PSS": Written(sign="PSS"),
    "encrypted": Written(sign="encrypted"),
    "untrusted": Written(headers={"TPP-Signature-Certificate": "@other"}, more={"trust": "sandbox-ca"}),
}


def keys() -> dict[str, Any]:
    """The keys and certificates of the corpus that is there, or new ones."""
    if CORPUS.exists():
        with CORPUS.open(encoding="utf-8") as lines:
            first: dict[str, Any] = json.loads(next(lines))
        return first
    authority = CertificateAuthority(None, clock=lambda: NOW)
    issued = {name: authority.issue(name, organization_identifier=f"PSDNO-SBX-{name}") for name in ("signer", "other")}
    return {
        "key": {name: one.key_pem.decode() for name, one in issued.items()},
        "certificate": {name: one.certificate_header for name, one in issued.items()}
        | {"ca": base64.b64encode(authority.certificate.public_bytes(serialization.Encoding.DER)).decode()},
    }


def requests(first: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`SIZE` requests: every mistake of the first client, and then of one other client, of another, and so on."""
    every = list(all_requests(first))
    clients: dict[str, list[int]] = {}
    for at, one in enumerate(every):
        clients.setdefault(one["name"].partition(": ")[2], []).append(at)
    ranks: dict[int, int] = {}
    for number, positions in enumerate(clients.values()):
        others = [at for at in positions if not every[at]["name"].startswith(CLIENTS[0].name)]
        ranks |= dict.fromkeys(positions, 0) | {
            at: 1 + (place + number) % len(others) for place, at in enumerate(others)
        }
    yield from [every[at] for at in sorted(sorted(ranks, key=lambda at: (ranks[at], at))[:SIZE])]


def all_requests(first: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for client in CLIENTS:
        right = client.lines()
        for name, change in CHANGES.items():
            lines = change(client, right)
            if lines is not None and lines != right:
                yield request(first, client, name, text=signing_string(lines))
        for name, layout in LAYOUTS.items():
            yield request(first, client, name, text=layout(right))
        for one, other in PAIRS:
            if (lines := CHANGES[one](client, right)) is not None:
                yield request(first, client, f"{one} + {other}", text=LAYOUTS[other](lines))
        for one, other in LINE_PAIRS:
            if (lines := CHANGES[one](client, right)) and (lines := CHANGES[other](client, lines)):
                yield request(first, client, f"{one} + {other}", text=signing_string(lines))
        yield request(first, client, "PSS + final newline", Written(sign="PSS"), text=signing_string(right) + "\n")
        yield request(first, client, "SHA-1 + no blank", Written(sign="SHA1"), text=LAYOUTS["no blank"](right))
        if client.body:
            yield request(first, client, "body signed", text=client.body)
            for name, digest in digests(client.body):
                if digest == dict(right)["digest"]:
                    continue
                headers = {"Digest": digest}
                lines = [(line, digest if line == "digest" else text) for line, text in right]
                yield request(first, client, f"digest {name}", Written(headers=headers), text=signing_string(lines))
        if client is CLIENTS[0]:
            for name, written in WRITTEN.items():
                yield request(first, client, name, written, text=signing_string(right))


def request(
    first: dict[str, Any], client: Client, name: str, how: Written = Written(), *, text: str | bytes
) -> dict[str, Any]:
    certificate = _certificate(first, "signer")
    key_id = key_id_for(certificate)
    serial, issuer = certificate.serial_number, certificate.issuer.rfc4514_string()
    data = text.encode() if isinstance(text, str) else text
    names = [line for line, _ in client.lines()]
    parameters: dict[str, str | None] = {
        "keyId": key_id,
        "algorithm": "rsa-sha512" if client.hash == "SHA-512" else "rsa-sha256",
        "headers": " ".join(names),
        "signature": base64.b64encode(_sign(first, how.sign, client.hash, data)).decode(),
    } | (how.parameters or {})
    for word, other in {
        "@serial-lower": f"{serial:x}",
        "@serial-decimal": str(serial),
        "@serial": f"{serial:X}",
        "@issuer-percent": issuer.replace(" ", "%20"),
        "@issuer": issuer,
        "@subject": certificate.subject.rfc4514_string(),
    }.items():
        if parameters["keyId"] is not None:
            parameters["keyId"] = parameters["keyId"].replace(word, other)
    header = how.finish(",".join(f'{name}="{value}"' for name, value in parameters.items() if value is not None))
    changed = dict(how.headers or {})
    signature = changed.pop("Signature", header)
    return {
        "name": f"{client.name}: {name}",
        **({"changed": changed} if changed else {}),
        "signature": None if signature is None else signature.replace(key_id, "@key"),
        **(how.more or {}),
    }


def _certificate(first: dict[str, Any], name: str) -> Any:
    der = first["certificate"][name]
    return load_pem_x509_certificate(f"-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n".encode())


@cache
def _key(pem: str) -> Any:
    return serialization.load_pem_private_key(pem.encode(), None)


def _sign(first: dict[str, Any], how: str, usual: str, data: bytes) -> bytes:
    key = _key(first["key"]["other" if how == "other key" else "signer"])
    if how == "encrypted":
        numbers = key.private_numbers()
        block = b"\0\1" + b"\xff" * (256 - 3 - 32) + b"\0" + hashlib.sha256(data).digest()
        return pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n).to_bytes(256, "big")
    if how == "PSS":  # without salt, so that every run makes the same signature
        return bytes(key.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 0), hashes.SHA256()))
    name = usual.replace("-", "") if how in ("SHA256", "other key") else how
    return bytes(key.sign(data, padding.PKCS1v15(), getattr(hashes, name)()))


def verdict(first: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """What the bank says of a request of the corpus: its messages and the mistake that it found, or only its notes."""
    client = next(one for one in CLIENTS if one.name == request["name"].partition(":")[0])
    pairs: list[tuple[str, str | None]] = [*client.sent(), ("TPP-Signature-Certificate", "@signer")]
    changed = request.get("changed", {})
    more = [(name, text) for name, text in changed.items() if name not in dict(pairs)]
    pairs = [(name, changed.get(name, text)) for name, text in pairs]
    pairs += [*more, ("Signature", request["signature"])]
    key_id = key_id_for(_certificate(first, "signer"))
    headers = [
        (name, first["certificate"].get(text[1:], text.replace("@key", key_id)))
        for name, text in pairs
        if text is not None
    ]
    trust = request.get("trust", "any")
    try:
        verified = check(
            client.method,
            client.target,
            headers,
            client.body,
            digest_required=bool(client.body),
            policy=SignaturePolicy(trust=trust),
            instant=NOW.timestamp() + request.get("after", 0),
            trusted_ca=_certificate(first, "ca") if trust == "sandbox-ca" else None,
        )
    except SignatureRefused as refused:
        shown = refused.diagnosis()
    else:
        shown = {"notes": verified.notes}
    likely, place = shown.get("likelySent"), shown.get("firstDifference")
    if likely is not None and "hash" in shown:  # the search has found what was signed, not only something near it
        encoding = "utf-16-le" if shown["mistake"].endswith("utf-16") else "utf-8"
        name = shown["hash"]["algorithm"].replace("-", "")
        assert hashlib.new(name, likely.encode(encoding)).hexdigest() == shown["hash"]["signed"]
    verdict_parts = {
        "messages": [
            [message["code"], message["path"], re.sub(r"[0-9]+ tried", "some tried", message["text"])]
            for message in shown.get("messages", [])
        ],
        "mistake": shown.get("mistake"),
        "place": place and [place["line"], place["column"], place["sent"]],
        "hash": shown.get("hash", {}).get("algorithm"),
        "notes": list(shown.get("notes", [])),
    }
    return {name: value for name, value in verdict_parts.items() if value}


def main() -> None:
    first = keys()
    if "verdicts" in sys.argv[1:]:
        with CORPUS.open(encoding="utf-8") as lines:
            every = [{**json.loads(line), "verdict": None} for line in list(lines)[1:]]
    else:
        every = list(requests(first))
    rows = [first, *({**one, "verdict": verdict(first, one)} for one in every)]
    CORPUS.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(every)} requests")


if __name__ == "__main__":
    main()
