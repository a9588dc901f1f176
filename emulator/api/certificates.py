"""Reading TPP-Signature-Certificate: key, identity, roles, validity and trust (signature.md#the-certificate)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography import exceptions, x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from emulator.bank.errors import counted
from emulator.bank.formats import composed
from emulator.ca import qcstatements
from emulator.httpsig.keyid import ORGANIZATION_IDENTIFIER, der_content

BOTH_ROLES = frozenset({"PISP", "AISP"})
SMALLEST_KEY = 2048  # bits
LARGEST_KEY, LARGEST_EXPONENT = 8192, 64  # bits; verification with larger ones would take too long
LONGEST_TEXT = 32_768  # characters; an eIDAS certificate has about 3,000

_QC_STATEMENTS = qcstatements.OID
_ORGANIZATION_IDENTIFIER = x509.ObjectIdentifier(ORGANIZATION_IDENTIFIER)
_NO_CERTIFICATE = (
    exceptions.UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_LABEL = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----")
_BASE64 = re.compile(r"[A-Za-z0-9+/]++={0,2}")


@dataclass(frozen=True, slots=True)
class AuthenticatedTpp:
    """A TPP as its certificate identifies it.

    `id` is the organizationIdentifier, else the subject's RFC 2253 name; `name` is for people;
    `roles` contains `PISP`, `AISP`, both or none (signature.md#roles).
    """

    id: str
    name: str
    roles: frozenset[str]


class CertificateUnreadable(ValueError):
    """The header has no certificate that the bank can use; the argument says why."""


@dataclass(slots=True, eq=False)
class TppCertificate:
    """A parsed certificate.

    If its key may not sign, `key` is None and `key_fault` says why. The dates are seconds since 1970;
    `notes` list what the bank accepted although it is not base64 DER on one line.
    """

    certificate: x509.Certificate
    tpp: AuthenticatedTpp
    key: rsa.RSAPublicKey | None
    key_fault: str | None
    not_before: float
    not_after: float
    notes: tuple[str, ...] = ()

    def issued_by(self, authority: x509.Certificate) -> bool:
        """Whether `authority` signed this certificate."""
        try:
            self.certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, exceptions.InvalidSignature, exceptions.UnsupportedAlgorithm):
            return False
        return True


def read_certificate(text: str) -> TppCertificate:
    """The certificate in a TPP-Signature-Certificate value; raise CertificateUnreadable.

    Reads base64 DER on one line, and PEM with or without line breaks. Results are cached by text.
    """
    if len(text) > LONGEST_TEXT:
        raise CertificateUnreadable(f"it is longer than {LONGEST_TEXT} characters")
    outcome = _read(text)
    if isinstance(outcome, str):
        raise CertificateUnreadable(outcome)
    return outcome


def identity(certificate: x509.Certificate) -> AuthenticatedTpp:
    """The certificate's holder: id, name and roles; raise CertificateUnreadable.

    Texts are composed (NFC), as those of requests are, which may contain the id.
    """
    subject = certificate.subject
    identifiers = subject.get_attributes_for_oid(_ORGANIZATION_IDENTIFIER)
    tpp_id = str(identifiers[0].value) if identifiers else subject.rfc4514_string()
    if not tpp_id:
        raise CertificateUnreadable("its subject is empty, so it does not identify a TPP")
    names = subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME) or subject.get_attributes_for_oid(
        x509.NameOID.ORGANIZATION_NAME
    )
    name = str(names[0].value) if names else tpp_id
    return AuthenticatedTpp(composed(tpp_id), composed(name), _roles(certificate))


@lru_cache(maxsize=256)
def _read(text: str) -> TppCertificate | str:
    """The certificate, or the reason why it cannot be used; both are cached."""
    try:
        der, notes = _der(text)
        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError:
            return why_no_certificate(der)
        key, key_fault = _signing_key(certificate)
        certificate.issuer.rfc4514_string()  # parsed lazily; raises here what the check of the keyId would raise later
        dates = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        return TppCertificate(certificate, identity(certificate), key, key_fault, *dates, notes)
    except CertificateUnreadable as error:
        return str(error)
    except (*_NO_CERTIFICATE, ValueError, TypeError) as error:
        return f"it is not a readable X.509 certificate{_detail(error)}"
    except KeyError as error:  # raised by cryptography before 50 for a text of an unknown ASN.1 type
        return f"it is not a readable X.509 certificate (a text has the unknown type {error})"


def _detail(error: Exception) -> str:
    """The library's message, unless it shows the state of its parser."""
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    return "" if "ParseError" in message else f" ({message[:150]})"


def _der(text: str) -> tuple[bytes, tuple[str, ...]]:
    """The bytes that `text` encodes, and notes if it is not base64 DER on one line."""
    notes: tuple[str, ...] = ()
    if "-----" in text:
        text, notes = _inside_pem(text)
    compact = "".join(text.split())
    if _HEXADECIMAL.fullmatch(compact):  # which may also be valid base64
        raise CertificateUnreadable("it is in hexadecimal; send the base64 of the DER")
    if not _BASE64.fullmatch(compact):
        raise CertificateUnreadable(why_no_base64(compact))
    if len(compact) % 4:
        raise CertificateUnreadable("its base64 is truncated or lacks its padding")
    return base64.b64decode(compact), notes


def _inside_pem(text: str) -> tuple[str, tuple[str, ...]]:
    """The base64 of the first certificate in PEM text, which may be surrounded by other text (RFC 7468)."""
    begin = text.find(_BEGIN)
    end = text.find(_END, begin)
    if begin < 0 and "%20" in text:
        raise CertificateUnreadable("it is URL-encoded; send the PEM text as it is, or base64 DER on one line")
    if begin < 0 and (other := _LABEL.search(text)):
        raise CertificateUnreadable(f"it is PEM text labelled {other[1]}, not CERTIFICATE")
    if begin < 0 or end < 0:
        raise CertificateUnreadable(f"it is PEM text without {_BEGIN} and {_END}")
    notes = ["TPP-Signature-Certificate: PEM text in place of base64 DER on one line"]
    if text.count(_BEGIN) > 1:
        notes.append("TPP-Signature-Certificate: several certificates, the first is used as the TPP's")
    return text[begin + len(_BEGIN) : end], tuple(notes)


def _signing_key(certificate: x509.Certificate) -> tuple[rsa.RSAPublicKey | None, str | None]:
    try:
        key = certificate.public_key()
    except (ValueError, exceptions.UnsupportedAlgorithm):
        return None, "the certificate's key is of a kind that the bank cannot read; RSA is needed"
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < SMALLEST_KEY:
            return None, f"the certificate's RSA key has {key.key_size} bits, at least {SMALLEST_KEY} are needed"
        if key.key_size > LARGEST_KEY:
            return None, f"the certificate's RSA key has {key.key_size} bits, at most {LARGEST_KEY} are allowed"
        if key.public_numbers().e.bit_length() > LARGEST_EXPONENT:
            return None, f"the exponent of the certificate's RSA key has more than {LARGEST_EXPONENT} bits"
        return key, None
    kind = "has an EC key" if isinstance(key, ec.EllipticCurvePublicKey) else "does not have an RSA key"
    return None, f"the certificate {kind}; rsa-sha256 needs an RSA key of at least {SMALLEST_KEY} bits"


def _roles(certificate: x509.Certificate) -> frozenset[str]:
    """The roles in the PSD2 QCStatement; both roles for a certificate without that statement (signature.md#roles)."""
    try:
        extension = certificate.extensions.get_extension_for_oid(_QC_STATEMENTS)
    except x509.ExtensionNotFound:
        return BOTH_ROLES
    try:
        roles = qcstatements.psd2_roles(extension.value.public_bytes())
    except qcstatements.StatementsUnreadable:
        raise CertificateUnreadable("its QCStatements extension does not conform to ETSI TS 119 495") from None
    return BOTH_ROLES if roles is None else roles


# Other things that clients send instead of a certificate

_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}:?)++")
_SEQUENCE = 0x30
# The first bytes inside the outermost SEQUENCE: PKCS #8 and #1, SEC 1, PKCS #12, PKCS #7.
_BEGINNINGS = {
    bytes.fromhex("020100"): "a private key, which must never be sent",
    bytes.fromhex("020101"): "a private key, which must never be sent",
    bytes.fromhex("020103"): "a PKCS #12 keystore",
    bytes.fromhex("06092a864886f70d0107"): "a PKCS #7 bundle",
}
_LOADERS: tuple[tuple[str, Callable[[bytes], Any]], ...] = (
    ("a public key", load_der_public_key),
    ("a certificate request", x509.load_der_x509_csr),
)


def why_no_base64(text: str) -> str:
    """Why a text without blanks is not base64."""
    if "%2B" in text or "%2F" in text or "%0A" in text or "%3D" in text:
        return "it is URL-encoded; send the base64 as it is"
    if text.startswith("=?"):
        return "it is wrapped per RFC 2047, which is allowed for Signature only; send the base64 as it is"
    if _BASE64.fullmatch(text.replace("-", "+").replace("_", "/")):
        return "it is URL-safe base64; send the base64 alphabet with + and /"
    if text.startswith("b'"):
        return "it is Python's repr of bytes; call decode() on them"
    if "\\n" in text:
        return "its line ends are written as a backslash and an n; send real line ends, or none"
    return "it is not base64"


def why_no_certificate(der: bytes) -> str:
    """Why bytes are not an X.509 certificate."""
    if der.startswith(b"-----BEGIN"):
        return "it is base64 of PEM text; send the base64 of the DER (the lines inside the PEM)"
    if len(der) < 2 or der[0] != _SEQUENCE:
        return "its base64 does not encode DER"
    start, end = der_content(der)
    for beginning, name in _BEGINNINGS.items():
        if der.startswith(beginning, start):
            return f"it is {name}, not a certificate"
    if len(der) < end:
        return f"it is truncated: its base64 encodes {len(der)} bytes, the certificate has {end}"
    if len(der) > end:
        return f"{counted(len(der) - end, 'byte')} after the certificate (another one?); send only the TPP's"
    for name, load in _LOADERS:
        with suppress(ValueError, TypeError, exceptions.UnsupportedAlgorithm):
            load(der)
            return f"it is {name}, not a certificate"
    return "it is not a readable X.509 certificate"
