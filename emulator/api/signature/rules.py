"""The rules of the signature gate, and what they read and write; `check.RULES` has their order."""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import floor
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

from emulator.api.certificates import CertificateUnreadable, TppCertificate, read_certificate
from emulator.bank.errors import Code, Message
from emulator.bank.settings import Settings
from emulator.httpsig.keyid import compare_key_id, key_id_for
from emulator.httpsig.signing import (
    CANDIDATES,
    HASHES,
    REQUEST_TARGET,
    SPELLING,
    DateUnreadable,
    HeaderUnreadable,
    SignatureHeader,
    is_wrapped,
    parse,
    parse_date,
    parse_digest,
    request_target,
    signing_string,
    unwrap,
)

DEMANDED = ("signature", "tpp-signature-certificate", "date")
ALGORITHMS = {"rsa-sha256": "SHA-256", "rsa-sha512": "SHA-512"}
PADDING = PKCS1v15()
SIGNATURE_HASHES: dict[str, SHA256 | SHA512] = {"SHA-256": SHA256(), "SHA-512": SHA512()}

_CERTIFICATE = "TPP-Signature-Certificate"
_SENT_ONCE = frozenset({"signature", "tpp-signature-certificate", "date", "digest"})
# The headers that other profiles of HTTP signatures use instead.
_ELSEWHERE = {"signature": "Authorization", "date": "X-Date", "digest": "Content-Digest"}
_REFUSED_ALGORITHMS = {
    "none": "a request must be signed",
    "hs2019": "it belongs to a later draft and does not name a hash",
    "rsa-sha1": "SHA-1 can be forged",
}
LONGEST_TEXT = 512  # characters of a tppMessages text
_LONGEST_LIST = 4096
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}:?){128,}")  # a signature has at least 128 bytes
_FURTHEST_ZONE = 14  # hours from GMT
_TRANSIT = 60  # seconds of transit time or clock error


class Terms(NamedTuple):
    """The bank's requirements; `instant` is real time in seconds since 1970, `trusted_ca` the sandbox CA.

    Of the settings count `profile`, `trust` and `date_skew`.
    """

    digest_required: bool
    settings: Settings
    instant: float
    trusted_ca: x509.Certificate | None

    @property
    def lenient(self) -> bool:
        """Whether spellings are accepted that only `--profile lenient` allows."""
        return self.settings.profile == "lenient"


@dataclass(slots=True)
class Inspection:
    """One request at the gate, and what the rules have read from it.

    `present` maps lower-case header names to the first value, stripped of blanks. `body` is None if a capture does not
    contain it. `names` are the listed header names. `signing_string` is None if one of them is absent, `signature` if
    it could not be decoded; `hash_name` is `SHA-256` or `SHA-512`. `valid`: whether the signature is valid; None if it
    cannot be checked. `outside` is the part of the public address's path that a proxy removes from the target.
    """

    method: str
    target: str
    headers: Collection[tuple[str, str]]
    body: bytes | None
    present: dict[str, str]
    repeated: frozenset[str]
    faults: list[Message] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    certificate: TppCertificate | None = None
    header: SignatureHeader | None = None
    names: tuple[str, ...] = ()
    signing_string: str | None = None
    signature: bytes | None = None
    hash_name: str = ""
    valid: bool | None = None
    outside: str = ""

    def refuse(self, path: str, text: str, *, code: Code = "BAD_REQUEST") -> None:
        """Add a fault: the header at `path` is wrong, for the reason `text`, of which 512 characters are shown."""
        sentence = f"{text}." if len(text) < LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
        self.faults.append(Message(code, sentence, path[:100]))

    def lines(self, target: str) -> list[tuple[str, str]]:
        """The signed lines of a request to `target`, as names and values; without listed headers that are absent."""
        return [
            (name, request_target(self.method, target) if name == REQUEST_TARGET else self.present[name])
            for name in self.names
            if name == REQUEST_TARGET or name in self.present
        ]


def check_present(inspection: Inspection, terms: Terms) -> None:
    """Signature, TPP-Signature-Certificate and Date are present, and Digest if required; none is sent twice."""
    for name in (*DEMANDED, *(["digest"] if terms.digest_required else [])):
        if not inspection.present.get(name):
            form = ": SHA-256=<base64 of the SHA-256 hash of the body>" if name == "digest" else ""
            other = _ELSEWHERE.get(name, "")
            hint = f"; {other} is not read instead" if other.lower() in inspection.present else ""
            text = f"The header {SPELLING[name]} is required{form}{hint}"
            inspection.refuse(SPELLING[name], text, code="HTTP_HEADER_REQUIRED")
    for name in sorted(inspection.repeated & _SENT_ONCE):
        inspection.refuse(SPELLING[name], f"The header {SPELLING[name]} appears more than once")


def check_certificate(inspection: Inspection, terms: Terms) -> None:
    """The certificate can be parsed, its key may sign, it is valid now, and its issuer is trusted."""
    text = inspection.present.get("tpp-signature-certificate")
    if not text:
        return
    try:
        certificate = inspection.certificate = read_certificate(text)
    except CertificateUnreadable as error:
        inspection.refuse(_CERTIFICATE, f"The certificate cannot be used: {error}")
        return
    inspection.notes += certificate.notes
    if certificate.key_fault is not None:
        inspection.refuse(_CERTIFICATE, f"The certificate cannot be used: {certificate.key_fault}")
    if terms.instant > certificate.not_after:
        end = f"{certificate.certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
        inspection.refuse(_CERTIFICATE, f"The certificate has expired: it was valid until {end}")
    elif terms.instant < certificate.not_before:
        start = f"{certificate.certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
        inspection.refuse(_CERTIFICATE, f"The certificate is not valid yet: it is valid from {start}")
    trusted_ca = terms.trusted_ca
    if terms.settings.trust == "sandbox-ca" and (trusted_ca is None or not certificate.issued_by(trusted_ca)):
        inspection.refuse(_CERTIFICATE, _untrusted(certificate.certificate.issuer, trusted_ca))


def _untrusted(issuer: x509.Name, trusted_ca: x509.Certificate | None) -> str:
    if trusted_ca is not None and issuer == trusted_ca.subject:
        return (
            "The certificate names the sandbox CA as its issuer, but was signed by another key "
            "(of the CA of another state directory?)"
        )
    return f"The certificate is not issued by the sandbox CA but by {issuer.rfc4514_string()}"


def check_parameters(inspection: Inspection, terms: Terms) -> None:
    """The Signature header can be unwrapped and parsed, and each parameter is usable."""
    text = inspection.present.get("signature")
    if not text:
        return
    try:
        header = inspection.header = parse(_unwrapped(text, inspection, terms))
    except HeaderUnreadable as error:
        inspection.refuse("Signature", f"The header Signature cannot be read: {error}")
        return
    inspection.notes += header.notes
    if header.key_id is None:
        inspection.refuse("Signature", "The parameter keyId is missing: SN=<serial>,CA=<issuer>")
    _read_algorithm(inspection, header.algorithm, terms)
    if header.headers is None:
        inspection.names = ("date",)
    else:
        inspection.names, trouble = _listed(header.headers[: _LONGEST_LIST + 1])
        if trouble is not None:
            inspection.refuse("Signature", trouble)
    _read_signature(inspection, header.signature)


def _unwrapped(text: str, inspection: Inspection, terms: Terms) -> str:
    if is_wrapped(text):
        return unwrap(text)
    if not text.isascii():
        if terms.lenient:
            inspection.notes.append("Signature: characters beyond ASCII without RFC 2047 wrapping")
        else:
            sentence = "The header Signature is not ASCII; it must be wrapped as =?utf-8?B?<base64>?="
            inspection.refuse("Signature", sentence)
    return text


def _read_algorithm(inspection: Inspection, algorithm: str | None, terms: Terms) -> None:
    hash_name = ALGORITHMS.get(algorithm or "")
    if hash_name is not None:
        inspection.hash_name = hash_name
        return
    if algorithm is None:
        inspection.refuse("Signature", "The parameter algorithm is missing: rsa-sha256")
        return
    lower = algorithm.lower()
    if lower in ALGORITHMS:
        inspection.hash_name = ALGORITHMS[lower]
        if terms.lenient:
            inspection.notes.append(f"Signature: the algorithm is spelt {algorithm}")
            return
        inspection.refuse("Signature", f'The algorithm must be written in lower case: "{lower}"')
        return
    reason = _REFUSED_ALGORITHMS.get(lower) or ("a shared secret proves nothing" if lower.startswith("hmac") else None)
    why = f" ({reason})" if reason else ""
    inspection.refuse("Signature", f'The algorithm "{algorithm[:60]}" is not accepted{why}; use rsa-sha256')


def _listed(text: str) -> tuple[tuple[str, ...], str | None]:
    """The names in a headers parameter, and the problem with them, or None."""
    if len(text) > _LONGEST_LIST:
        return (), f"The headers parameter is longer than {_LONGEST_LIST} characters"
    spaced = text.replace(",", " ").replace(";", " ")
    names = tuple(spaced.lower().split())
    if not names:
        return (), "The headers parameter is empty"
    if spaced != text:
        return names, "The headers parameter must separate names by blanks"
    upper = [name for name in text.split() if name != name.lower()]
    if upper:
        return names, f"The headers parameter must list names in lower case: {', '.join(upper)}"
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        return names, f"The headers parameter lists {', '.join(twice)} twice"
    pseudo = [name for name in names if name.startswith("(") and name != REQUEST_TARGET]
    if pseudo:
        return names, f"The headers parameter lists {', '.join(pseudo)}, which draft 10 does not know"
    return names, None


def _read_signature(inspection: Inspection, text: str | None) -> None:
    if text is None:
        inspection.refuse("Signature", "The parameter signature is missing")
        return
    if not _HEXADECIMAL.fullmatch(text):  # hexadecimal digits are also valid base64, of other bytes
        with suppress(ValueError):
            inspection.signature = binascii.a2b_base64(text, strict_mode=True) or None
    if inspection.signature is None:
        inspection.refuse("Signature", f"The parameter signature is not base64{_encoding_trouble(text)}")


def _encoding_trouble(text: str) -> str:
    if not text:
        return ": it is empty"
    if _HEXADECIMAL.fullmatch(text):
        return ": it is in hexadecimal"
    if text.startswith("b'"):
        return ": it is Python's repr of bytes; call decode() on them"
    if any(character.isspace() for character in text):
        return ": it contains blanks or line breaks"
    if "-" in text or "_" in text:
        return ": it is URL-safe base64, use the alphabet with + and /"
    if "%" in text:
        return ": it is URL-encoded"
    if len(text) % 4 and text.replace("+", "").replace("/", "").isalnum():
        return ": its padding is missing"
    return ""


def check_key_id(inspection: Inspection, terms: Terms) -> None:
    """keyId matches the certificate's serial number and issuer."""
    certificate, header = inspection.certificate, inspection.header
    if certificate is None or header is None or header.key_id is None:
        return
    verdict = compare_key_id(header.key_id, certificate.certificate, lenient=terms.lenient)
    inspection.notes += verdict.notes
    if verdict.fault is None:
        return
    expected = key_id_for(certificate.certificate)
    text = f"The KeyID is not matching the certificate: {verdict.fault}; expected {expected}"
    if len(text) > LONGEST_TEXT:  # the expected keyId is more important than the reason
        text = f"The KeyID is not matching {expected}"[:LONGEST_TEXT]
    inspection.faults.append(Message("BAD_REQUEST", text, "Signature"))


def check_coverage(inspection: Inspection, _: Terms) -> None:
    """Every candidate header is listed, and every listed header is present once; builds the signing string."""
    if inspection.header is None or not inspection.names:
        return
    present, names = inspection.present, inspection.names
    unlisted = [name for name in CANDIDATES if name in present and name not in names]
    if unlisted:
        text = f"The request has {', '.join(unlisted)}, which the headers parameter does not list"
        if inspection.header.headers is None:
            text += " (without a headers parameter only date is signed)"
        inspection.refuse("Signature", text)
    lines = inspection.lines(inspection.target)
    if inspection.repeated:
        for name in names:
            if name in inspection.repeated and name not in _SENT_ONCE:
                path = SPELLING.get(name, name)
                inspection.refuse(path, f"The signed header {path} appears more than once")
    if len(lines) == len(names):
        inspection.signing_string = signing_string(lines)
        return
    # A missing date has been reported as a missing header.
    absent = [name for name in dict.fromkeys(names) if name[0] != "(" and name not in present and name != "date"]
    reported = {(entry.path or "").lower() for entry in inspection.faults}
    for name in absent:
        if name not in reported:
            hint = f": the pseudo header is {REQUEST_TARGET}" if "request-target" in name else ""
            text = f"The headers parameter lists {name}, but the request has no such header{hint}"
            inspection.refuse("Signature", text)


def check_digest(inspection: Inspection, _: Terms) -> None:
    """A Digest must be that of the raw bytes of the body, whether or not it is required."""
    text, body = inspection.present.get("digest"), inspection.body
    if not text or body is None:
        return
    known = [(name, value) for name, value in dict.fromkeys(parse_digest(text)) if name in HASHES]
    if not known:
        text = f"The Digest has neither SHA-256 nor SHA-512 (write SHA-256=<base64>): {text[:60]!r}"
        inspection.refuse("Digest", text)
    for name, value in known:
        if value != b64encode(HASHES[name](body).digest()).decode():
            from emulator.api.signature.digest import explain_digest  # only a refused request needs it

            inspection.refuse("Digest", explain_digest(name, value, body))
            return


def check_date(inspection: Inspection, terms: Terms) -> None:
    """Date can be parsed (RFC 7231) and is within the allowed skew of real time."""
    text = inspection.present.get("date")
    if not text:
        return
    try:
        seconds, note = parse_date(text)
    except DateUnreadable as error:
        inspection.refuse("Date", f"The header Date cannot be read: {error}")
        return
    if note is not None:
        inspection.notes.append(note)
    # A Date has whole seconds, so fractions of the current time are ignored.
    difference, skew = seconds - floor(terms.instant), terms.settings.date_skew
    if abs(difference) > skew:
        side = "behind" if difference < 0 else "ahead of"
        apart = f"{abs(difference):.0f} s {side} real time (bank time does not count)"
        hours = round(difference / 3600)  # of a time zone, so that the clock may be correct
        whole = abs(difference - hours * 3600) <= _TRANSIT and 0 < abs(hours) <= _FURTHEST_ZONE
        hint = " (whole hours: a local time called GMT?)" if whole else ""
        inspection.refuse("Date", f"The header Date is {apart}, at most {skew} s are allowed{hint}")


def check_signature(inspection: Inspection, _: Terms) -> None:
    """The signature over the bank's signing string is valid; `diagnosis` explains an invalid one."""
    certificate, text, signature = inspection.certificate, inspection.signing_string, inspection.signature
    hash_name = inspection.hash_name
    if certificate is None or certificate.key is None or text is None or signature is None or not hash_name:
        return
    for reading, encoded, notes in _readings(inspection, text):
        if verifies(certificate.key, signature, encoded, hash_name):
            inspection.signing_string = reading
            inspection.notes += notes
            inspection.valid = True
            return
    inspection.valid = False


def _readings(inspection: Inspection, text: str) -> Iterator[tuple[str, bytes, list[str]]]:
    """The accepted forms: a signing string, its bytes, and notes for the request log."""
    yield text, text.encode(), []
    if not text.isascii():
        with suppress(UnicodeEncodeError):
            yield text, text.encode("latin-1"), ["Signature: made over ISO-8859-1 bytes"]
    if inspection.outside:
        with_prefix = signing_string(inspection.lines(inspection.outside + inspection.target))
        note = f"Signature: made over the public address, with {inspection.outside} before the path"
        yield with_prefix, with_prefix.encode(), [note]


def verifies(key: rsa.RSAPublicKey, signature: bytes, message: bytes, hash_name: str) -> bool:
    """Whether `signature` over `message` is valid for `key`, by RSASSA-PKCS1-v1_5 with SHA-256 or SHA-512."""
    try:
        key.verify(signature, message, PADDING, SIGNATURE_HASHES[hash_name])
    except InvalidSignature:
        return False
    return True
