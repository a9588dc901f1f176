"""Lies about who signed what: parts of the Signature header, RFC 2047 wrapping, Date, Digest, certificates."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from emulator.client.signing import TAMPERINGS
from emulator.httpsig.signing import digest_value, wrap
from tests.hostile.case import BODIES, Case, Messages, Sent, replaced
from tests.known_state import SEPA
from tests.unit.signature.making import encoded_word

SIGNATURE, CERTIFICATE = "Signature", "TPP-Signature-Certificate"
AT_SIGNATURE: Messages = (("BAD_REQUEST", SIGNATURE),)
BESIDES: Messages = AT_SIGNATURE  # what was changed after signing does not fit the signature either
AT_CERTIFICATE: Messages = (("BAD_REQUEST", CERTIFICATE),)
Change = Callable[[str], str | None]


def _part(name: str, value: str | None) -> Change:
    """Another value for one parameter of the header, None leaves the parameter out."""

    def change(text: str) -> str:
        others = [part for part in _parts(text) if value is not None or not part.startswith(f"{name}=")]
        return ",".join(f'{name}="{value}"' if part.startswith(f"{name}=") else part for part in others)

    return change


def _parts(text: str) -> list[str]:
    pieces = text.split('"')
    return [f'{key.lstrip(",")}"{value}"' for key, value in zip(pieces[::2], pieces[1::2], strict=False)]


def _of_part(name: str, change: Callable[[str], str]) -> Change:
    """A change of one parameter's value."""
    return lambda text: _part(
        name, change(next(p for p in _parts(text) if p.startswith(f"{name}="))[len(name) + 2 : -1])
    )(text)


_HEADER: dict[str, Change] = {
    "nothing but commas": lambda text: ",,,,",
    "a word": lambda text: "valid",
    "JSON": lambda text: '{"keyId":"x"}',
    "a quote without end": lambda text: text[:-1],
    "100,000 commas": lambda text: "," * 100_000,
    "100,000 quotes": lambda text: '"' * 100_000,
    "100,000 backslashes": lambda text: 'keyId="' + "\\" * 100_000,
    "a parameter twice": lambda text: f'{text},algorithm="none"',
    "a parameter twice in other case": lambda text: f'{text},ALGORITHM="none"',
    "no quotes around the signature": lambda text: text.replace('signature="', "signature=")[:-1],
    "single quotes": lambda text: text.replace('"', "'"),
    "typographic quotes": lambda text: text.replace('"', "”"),
    "semicolons": lambda text: text.replace('",', '";'),
    "a NUL in the keyId": _part("keyId", "SN=1\0,CA=x"),
    "no keyId": _part("keyId", None),
    "no algorithm": _part("algorithm", None),
    "no signature": _part("signature", None),
    "an empty keyId": _part("keyId", ""),
    "a keyId of another form": _part("keyId", "https://tpp.example/key.pem"),
    "a serial of nobody": _of_part("keyId", lambda key: "SN=0," + key.partition(",")[2]),
    "a serial below nought": _of_part("keyId", lambda key: key.replace("SN=", "SN=-")),
    "a serial with a prefix": _of_part("keyId", lambda key: key.replace("SN=", "SN=0x")),
    "a serial in Arabic digits": _of_part("keyId", lambda key: "SN=١٢," + key.partition(",")[2]),
    "a serial of 100,000 digits": _of_part("keyId", lambda key: f"SN={'A' * 100_000}," + key.partition(",")[2]),
    "no issuer": _of_part("keyId", lambda key: key.partition(",")[0]),
    "an issuer with more in it": _of_part("keyId", lambda key: key + ",CN=Another CA"),
    "an issuer with less in it": _of_part("keyId", lambda key: key.rpartition(",")[0]),
    "an issuer with an escape cut off": _of_part("keyId", lambda key: key + "\\"),
    "an issuer of 10,000 escapes": _of_part("keyId", lambda key: key + "\\,x" * 10_000),
    "an issuer with a look-alike": _of_part("keyId", lambda key: key.replace("Bank", "Ваnk")),
    "an issuer with BER in it": _of_part("keyId", lambda key: key.partition("CA=")[0] + "CA=CN=#0403AAAA"),
    "an algorithm beside a good one": _part("algorithm", "rsa-sha256,none"),
    "an algorithm with a blank": _part("algorithm", "rsa-sha256 "),
    "an algorithm of an elliptic curve": _part("algorithm", "ecdsa-sha256"),
    "an algorithm of JOSE": _part("algorithm", "RS256"),
    "a shared secret": _part("algorithm", "hmac-sha256"),
    "no algorithm by name": _part("algorithm", "none"),
    "MD5": _part("algorithm", "rsa-md5"),
    "no headers listed": _part("headers", ""),
    "blanks for headers": _part("headers", "   "),
    "date alone": _part("headers", "date"),
    "a header of nobody": _of_part("headers", lambda names: names + " x-nobody"),
    "a header twice": _of_part("headers", lambda names: names + " date"),
    "capitals": _of_part("headers", str.upper),
    "commas between": _of_part("headers", lambda names: names.replace(" ", ",")),
    "created": _of_part("headers", lambda names: names + " (created)"),
    "10,000 headers": _of_part("headers", lambda names: "date " * 10_000),
    "a request target in capitals": _of_part("headers", lambda names: names.replace("(request-", "(Request-")),
    "headers left out": _part("headers", None),
    "an empty signature": _part("signature", ""),
    "a signature of noughts": _part("signature", base64.b64encode(bytes(256)).decode()),
    "a signature of ones": _part("signature", base64.b64encode(b"\xff" * 256).decode()),
    "a short signature": _part("signature", "AA=="),
    "a long signature": _part("signature", base64.b64encode(b"x" * 5000).decode()),
    "a signature in hex": _part("signature", "00" * 256),
    "a signature with a line break": _of_part("signature", lambda text: text[:9] + "\t" + text[9:]),
    "a signature with more behind its end": _of_part("signature", lambda text: text + "AAAA"),
    "a signature without its end": _of_part("signature", lambda text: text[:-4]),
    "URL-safe base64": _of_part("signature", lambda text: "_-" + text[2:]),
    "half of it escaped": _of_part("signature", lambda text: text.replace("=", "%3D")),
}
_WRAPPED: dict[str, Change] = {
    "a word cut off": lambda text: "=?utf-8?B?",
    "no charset": lambda text: "=??B?eA==?=",
    "koi8-r": lambda text: "=?koi8-r?B?eA==?=",
    "utf-7": lambda text: "=?utf-7?B?K0FEdy0=?=",
    "utf-16": lambda text: f"=?utf-16?B?{base64.b64encode(text.encode('utf-16')).decode()}?=",
    "a charset that runs": lambda text: "=?unicode_escape?Q?=5Cx41?=",
    "an encoding that is none": lambda text: "=?utf-8?Z?eA==?=",
    "base64 that is none": lambda text: "=?utf-8?B?%%%?=",
    "base64 without its end": lambda text: "=?utf-8?B?eA?=",
    "bytes that are not UTF-8": lambda text: "=?utf-8?B?/////w==?=",
    "Q with an escape cut off": lambda text: "=?utf-8?Q?=4?=",
    "Q with an escape that is none": lambda text: "=?utf-8?Q?=ZZ?=",
    "nothing in the word": lambda text: "=?utf-8?B??=",
    "wrapped twice": lambda text: wrap(wrap(text)),
    "two words of two charsets": lambda text: f"{wrap(text[:40])} {encoded_word(text[40:], charset='iso-8859-1')}",
    "plain text behind the word": lambda text: f"{wrap(text[:40])} {text[40:]}",
    "10,000 empty words": lambda text: "=?utf-8?B??= " * 10_000,
    "100,000 question marks": lambda text: "=?" + "?" * 100_000,
    "a NUL inside": lambda text: wrap(text + "\0"),
    "a line break inside": lambda text: wrap(text.replace('"headers', '"\r\nheaders', 1) + "\r\n x"),
}


def _header(theme: str, name: str, change: Change) -> Case:
    return Case(theme, name, 400, AT_SIGNATURE, spoil=replaced(SIGNATURE, change))


def _value(theme: str, name: str, header: str, value: str, messages: Messages) -> Case:
    """A payment with another value for a header, changed after signing."""
    return Case(theme, name, 400, messages, "POST", SEPA, {"json": BODIES[SEPA]}, replaced(header, lambda _: value))


def _doubled(name: str) -> Case:
    def spoil(sent: Sent) -> Sent:
        return [*sent, *((header, value) for header, value in sent if header == name)]

    return Case("signature", f"{name} sent twice", 400, (("BAD_REQUEST", name),), spoil=spoil)


_TAMPERED: dict[str, Messages] = {
    "no-signature": (("HTTP_HEADER_REQUIRED", SIGNATURE),),
    "no-certificate": (("HTTP_HEADER_REQUIRED", CERTIFICATE),),
    "no-date": (("HTTP_HEADER_REQUIRED", "Date"),),
    "no-digest": (("HTTP_HEADER_REQUIRED", "Digest"),),
    "old-date": (("BAD_REQUEST", "Date"),),
    "other-body": (("BAD_REQUEST", "Digest"), *BESIDES),
}
_DATES = {
    "no date": "yesterday",
    "a number": "1772438400",
    "the year 10000": "Mon, 02 Mar 10000 08:00:00 GMT",
    "the year 1": "Mon, 01 Jan 0001 00:00:00 GMT",
    "second 60": "Mon, 02 Mar 2026 08:00:60 GMT",
    "hour 24": "Mon, 02 Mar 2026 24:00:00 GMT",
    "29 February of no leap year": "Mon, 29 Feb 2027 08:00:00 GMT",
    "Arabic digits": "Mon, ٠٢ Mar ٢٠٢٦ ٠٨:٠٠:٠٠ GMT",
    "a zone past all zones": "Mon, 02 Mar 2026 08:00:00 +9959",
    "ISO 8601": "2026-03-02T08:00:00Z",
    "100,000 characters": "Mon, " * 20_000,
}
_DIGESTS = {
    "no algorithm": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "MD5": "MD5=1B2M2Y8AsgTpgAmY7PhCfg==",
    "an algorithm of nobody": "SHA-1024=AAAA",
    "base64 that is none": "SHA-256=???",
    "hex": "SHA-256=" + "e3" * 32,
    "an empty hash": "SHA-256=",
    "a short hash": "SHA-256=AAAA",
    "the hash of nothing": digest_value(b""),
    "the hash of nothing in SHA-512": digest_value(b"", "SHA-512"),
}


def certificate(
    key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey, *extensions: x509.ExtensionType
) -> str:
    """A certificate over a key that may not sign."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A liar")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1).public_key(key.public_key())
    )
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    certificate = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    return base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()


def changed(old: bytes, new: bytes) -> Change:
    """A certificate that begins well and holds bytes that nothing reads before they are needed."""
    return lambda text: base64.b64encode(base64.b64decode(text).replace(old, new, 1)).decode()


_SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)
_NAMED = certificate(_SMALL, x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"\x30\x02\xa5\x00"))
_BAD_CERTIFICATES: dict[str, Change] = {
    "no base64": lambda text: "????",
    "base64 of nothing": lambda text: "AAAA",
    "cut off": lambda text: text[: len(text) // 8 * 4],
    "cut off inside a quantum": lambda text: text[:-3],
    "more behind its end": lambda text: base64.b64encode(base64.b64decode(text) + b"more").decode(),
    "URL-safe base64": lambda text: "-_" + text[2:],
    "URL-encoded": lambda text: text.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D") + "%0A",
    "PEM without its end": lambda text: "-----BEGIN CERTIFICATE-----" + text,
    "base64 of PEM": lambda text: base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(),
    "a private key for a certificate": lambda text: "-----BEGIN PRIVATE KEY-----AAAA-----END PRIVATE KEY-----",
    "a path": lambda text: "file:///etc/passwd",
    "100,000 characters": lambda text: "A" * 100_000,
    "a length of 4 GiB": lambda text: base64.b64encode(b"\x30\x84\xff\xff\xff\xff" + b"\0" * 100).decode(),
    "an endless length": lambda text: base64.b64encode(b"\x30\x80" * 5000).decode(),
    "sequences in sequences": lambda text: base64.b64encode(b"\x30\x82\x10\x00" * 2000).decode(),
    "letters beyond ASCII": lambda text: "Å" + text[1:],
    "an issuer that is no text": changed(b"\x06\x03U\x04\x06\x13", b"\x06\x03U\x04\x06\x05"),
    "a version of nobody": changed(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09"),
    "a name of a kind that no certificate uses": lambda _: _NAMED,
}
_KEYS: dict[str, Change] = {
    "a key of an elliptic curve": lambda _: certificate(ec.generate_private_key(ec.SECP256R1())),
    "an Ed25519 key": lambda _: certificate(ed25519.Ed25519PrivateKey.generate()),
    "an RSA key of 1024 bits": lambda _: certificate(_SMALL),
}

HEADERS = (
    *(_header("signature", name, change) for name, change in _HEADER.items()),
    *(
        Case("signature", f"tampering: {name}", 400, _TAMPERED.get(name, AT_SIGNATURE), "POST",
             f"{SEPA}?allowLogicalDuplicate=false", {"json": BODIES[SEPA], "tamper": name})
        for name in TAMPERINGS
    ),
    *(_doubled(name) for name in (SIGNATURE, CERTIFICATE, "Date", "X-Request-ID", "PSU-ID", "TPP-Redirect-URI")),
    *(_value("dates", name, "Date", value, (("BAD_REQUEST", "Date"), *BESIDES)) for name, value in _DATES.items()),
    *(_value("digests", name, "Digest", value, (("BAD_REQUEST", "Digest"), *BESIDES))
      for name, value in _DIGESTS.items()),
)  # fmt: skip
WRAPPED = tuple(_header("RFC 2047", name, change) for name, change in _WRAPPED.items())
CERTIFICATES = (
    *(Case("certificates", name, 400, AT_CERTIFICATE, spoil=replaced(CERTIFICATE, change))
      for name, change in _BAD_CERTIFICATES.items()),
    *(Case("certificates", name, 400, (*AT_CERTIFICATE, *BESIDES), spoil=replaced(CERTIFICATE, certificate))
      for name, certificate in _KEYS.items()),
    Case("certificates", "expired", 400, AT_CERTIFICATE, flaw="expired"),
    Case("certificates", "not yet valid", 400, AT_CERTIFICATE, flaw="not-yet-valid"),
    Case("certificates", "no role at all", 403, (("FORBIDDEN", None),), flaw="no-roles"),
)  # fmt: skip
CASES = (*HEADERS, *WRAPPED, *CERTIFICATES)
