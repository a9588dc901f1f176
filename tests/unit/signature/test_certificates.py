"""TPP-Signature-Certificate: its forms, whose it is, which roles it gives, and when it is refused."""

from __future__ import annotations

import base64
import contextlib
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from emulator.api import certificates
from emulator.api.certificates import CertificateUnreadable, identity, read_certificate
from emulator.bank.settings import Settings
from emulator.ca import CertificateAuthority, Credentials, qcstatements
from emulator.ca.certificates import new_rsa_key
from emulator.ca.qcstatements import psd2_statements
from emulator.httpsig.keyid import compare_key_id
from emulator.httpsig.signing import wrap
from tests.cases import cases
from tests.unit.signature.making import NOW, Making

PEM_NOTE = "TPP-Signature-Certificate: PEM text in place of base64 DER on one line"
CHAIN_NOTE = "TPP-Signature-Certificate: several certificates, the first is used as the TPP's"
ISSUER_KEY = ec.generate_private_key(ec.SECP256R1())
DER = serialization.Encoding.DER
QC = qcstatements.OID


Subject = list[tuple[x509.ObjectIdentifier, str]]


class Foreign:
    """A key of which only the public half is known, as large as somebody may make it up."""

    def __init__(self, bits: int, exponent: int) -> None:
        self._numbers = rsa.RSAPublicNumbers(exponent, (1 << bits) - 1)

    def public_key(self) -> rsa.RSAPublicKey:
        return self._numbers.public_key()


def certificate_of(key: Any, subject: Subject, *extensions: x509.ExtensionType) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(kind, text) for kind, text in subject])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7)
    builder = builder.not_valid_before(NOW - timedelta(days=1)).not_valid_after(NOW + timedelta(days=1))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(ISSUER_KEY, hashes.SHA256())


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def der(credentials: Credentials) -> bytes:
    return credentials.certificate.public_bytes(DER)


def header(certificate: x509.Certificate) -> str:
    return b64(certificate.public_bytes(DER))


def requested(key: rsa.RSAPrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    return x509.CertificateSigningRequestBuilder(name).sign(key, hashes.SHA256()).public_bytes(DER)


def test_der_in_base64_and_every_form_of_pem_are_read(credentials: Credentials) -> None:
    pem = credentials.certificate_pem
    for text, notes in (
        (credentials.certificate_header, ()),
        (pem, (PEM_NOTE,)),
        (pem.replace("\n", "\r\n"), (PEM_NOTE,)),
        (pem.replace("\n", " "), (PEM_NOTE,)),
        (pem.replace("\n", ""), (PEM_NOTE,)),
        (f"Bag Attributes subject=CN=x {pem}", (PEM_NOTE,)),
        (pem + pem, (PEM_NOTE, CHAIN_NOTE)),
    ):
        read = read_certificate(text)
        assert read.certificate == credentials.certificate
        assert read.notes == notes


def test_a_certificate_seen_before_is_not_read_again(credentials: Credentials) -> None:
    assert read_certificate(credentials.certificate_header) is read_certificate(credentials.certificate_header[:])


def test_what_is_remembered_is_bounded() -> None:
    for number in range(400):
        with pytest.raises(CertificateUnreadable):
            read_certificate(f"x{number}")
    assert certificates._read.cache_info().currsize <= 256


@cases(
    "change, reason",
    [
        (lambda c: "x!", "it is not base64"),
        (lambda c: c.certificate_header[:-1], "its base64 is truncated or lacks its padding"),
        (lambda c: c.certificate_header[:400], "it is truncated: its base64 encodes 300 bytes, the certificate has "),
        (lambda c: c.certificate_header.replace("+", "%2B").replace("/", "%2F") + "%0A",
         "it is URL-encoded; send the base64 as it is"),
        (lambda c: wrap(c.certificate_header),
         "it is wrapped per RFC 2047, which is allowed for Signature only; send the base64 as it is"),
        (lambda c: "-_" + c.certificate_header.replace("+", "-").replace("/", "_"),
         "it is URL-safe base64; send the base64 alphabet with + and /"),
        (lambda c: base64.b64encode(c.certificate_pem.encode()).decode(),
         "it is base64 of PEM text; send the base64 of the DER (the lines inside the PEM)"),
        (lambda c: quote(c.certificate_pem),
         "it is URL-encoded; send the PEM text as it is, or base64 DER on one line"),
        (lambda c: c.certificate_pem.replace("\n", "\\n"),
         "its line ends are written as a backslash and an n; send real line ends, or none"),
        (lambda c: c.certificate_pem.split("-----END")[0],
         "it is PEM text without -----BEGIN CERTIFICATE----- and -----END CERTIFICATE-----"),
        (lambda c: c.certificate_pem.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
         "it is PEM text labelled TRUSTED CERTIFICATE, not CERTIFICATE."),
        (lambda c: c.certificate_pem.replace("CERTIFICATE", "RSA PRIVATE KEY"),
         "it is PEM text labelled RSA PRIVATE KEY, not CERTIFICATE."),
        (lambda c: str(base64.b64encode(der(c))), "it is Python's repr of bytes; call decode() on them."),
        (lambda c: "A" * 40_000, "it is longer than 32768 characters"),
        (lambda c: b64(der(c) + b"x"), "1 byte after the certificate (another one?); send only the TPP's."),
        (lambda c: der(c).hex(), "it is in hexadecimal; send the base64 of the DER."),
        (lambda c: der(c).hex(":"), "it is in hexadecimal; send the base64 of the DER."),
        (lambda c: b64(c.key.public_key().public_bytes(DER, serialization.PublicFormat.SubjectPublicKeyInfo)),
         "it is a public key, not a certificate."),
        (lambda c: b64(c.key.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())),
         "it is a private key, which must never be sent, not a certificate."),
        (lambda c: b64(c.keystore("secret")), "it is a PKCS #12 keystore, not a certificate."),
        (lambda c: b64(pkcs7.serialize_certificates([c.certificate], DER)),
         "it is a PKCS #7 bundle, not a certificate."),
        (lambda c: b64(requested(c.key)), "it is a certificate request, not a certificate."),
        (lambda c: b64(b"something else"), "its base64 does not encode DER."),
        (lambda c: b64(b"\x30\x03\x02\x01\x07"), "it is not a readable X.509 certificate."),
    ],
)  # fmt: skip
def test_what_is_no_certificate_says_why(making: Making, change: Any, reason: str) -> None:
    (only,) = making.but(certificate=change(making.credentials)).faults()
    assert (only.code, only.path) == ("BAD_REQUEST", "TPP-Signature-Certificate")
    assert only.text.startswith(f"The certificate cannot be used: {reason}")


@cases(
    "key, reason",
    [
        (ISSUER_KEY, "the certificate has an EC key; rsa-sha256 needs an RSA key of at least 2048 bits"),
        (ed25519.Ed25519PrivateKey.generate(),
         "the certificate does not have an RSA key; rsa-sha256 needs an RSA key of at least 2048 bits"),
        (rsa.generate_private_key(65537, 1024),
         "the certificate's RSA key has 1024 bits, at least 2048 are needed"),
        (Foreign(60_000, 65537), "the certificate's RSA key has 60000 bits, at most 8192 are allowed"),
        (Foreign(4096, (1 << 64) + 1), "the exponent of the certificate's RSA key has more than 64 bits"),
    ],
)  # fmt: skip
def test_a_key_that_may_not_sign_is_refused(making: Making, key: Any, reason: str) -> None:
    certificate = header(certificate_of(key, [(NameOID.COMMON_NAME, "x")]))
    faults = making.but(certificate=certificate, key_id="SN=7,CA=CN=x").faults()
    assert faults == [("BAD_REQUEST", "TPP-Signature-Certificate", f"The certificate cannot be used: {reason}.")]


@cases(
    "subject, tpp_id, name",
    [
        ([(NameOID.ORGANIZATION_NAME, "Firm"), (NameOID.ORGANIZATION_IDENTIFIER, "PSDNO-SBX-9"),
          (NameOID.COMMON_NAME, "Seal")],
         "PSDNO-SBX-9", "Seal"),
        ([(NameOID.COUNTRY_NAME, "NO"), (NameOID.ORGANIZATION_NAME, "Firm, AS"), (NameOID.COMMON_NAME, "Seal")],
         r"CN=Seal,O=Firm\, AS,C=NO", "Seal"),
        ([(NameOID.COUNTRY_NAME, "NO"), (NameOID.ORGANIZATION_NAME, "Firm")], "O=Firm,C=NO", "Firm"),
        ([(NameOID.COUNTRY_NAME, "NO")], "C=NO", "C=NO"),
        ([(NameOID.COMMON_NAME, "A\u030as")], "CN=\u00c5s", "\u00c5s"),  # composed, as requests name it
    ],
)  # fmt: skip
def test_the_identity_is_the_organization_identifier_else_the_subject(
    subject: list[tuple[x509.ObjectIdentifier, str]], tpp_id: str, name: str
) -> None:
    tpp = identity(certificate_of(ISSUER_KEY, subject))
    assert (tpp.id, tpp.name, tpp.roles) == (tpp_id, name, frozenset({"PISP", "AISP"}))


def test_a_certificate_that_names_nobody_is_refused(making: Making) -> None:
    nameless = header(certificate_of(new_rsa_key(), []))
    (only,) = making.but(certificate=nameless).faults()
    assert only.text == "The certificate cannot be used: its subject is empty, so it does not identify a TPP."


def _element(tag: int, content: bytes) -> bytes:
    """One DER element."""
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


@cases("roles", [[], ["PISP"], ["AISP"], ["PISP", "AISP"]])
def test_roles_come_from_the_psd2_statement(roles: list[str]) -> None:
    assert psd2_statements(roles).oid == QC
    assert qcstatements.psd2_roles(psd2_statements(roles).value) == frozenset(roles)
    certificate = certificate_of(ISSUER_KEY, [(NameOID.COMMON_NAME, "x")], psd2_statements(roles))
    assert identity(certificate).roles == frozenset(roles)


@cases("size", [1, 100, 300, 70_000])
def test_statements_of_any_size_may_stand_before_that_of_psd2(size: int) -> None:
    """As in a real certificate, with addresses of disclosure statements: lengths of one byte and of several."""
    statement = _element(0x30, bytes.fromhex("060604008e460105") + _element(0x04, b"x" * size))
    psd2 = psd2_statements(["AISP"]).value
    whole = _element(0x30, statement + psd2[psd2.index(0x30, 1) :])
    assert qcstatements.psd2_roles(whole) == {"AISP"}
    with pytest.raises(qcstatements.StatementsUnreadable):
        qcstatements.psd2_roles(whole[:-1])


@cases(
    "statement",
    [
        "0606040081982702",  # the PSD2 statement without what it states
        "06060400819827020c00",
        "06060400819827023000",
        "060604008198270230020c00",
        "0c00",
        "",
    ],
)
def test_statements_of_another_form_are_unreadable(statement: str) -> None:
    with pytest.raises(qcstatements.StatementsUnreadable):
        qcstatements.psd2_roles(_element(0x30, _element(0x30, bytes.fromhex(statement))))


def test_statements_without_psd2_give_both_roles() -> None:
    seal = bytes.fromhex("3015301306060400 8e460106 3009060704008e46010602".replace(" ", ""))
    certificate = certificate_of(ISSUER_KEY, [(NameOID.COMMON_NAME, "x")], x509.UnrecognizedExtension(QC, seal))
    assert identity(certificate).roles == frozenset({"PISP", "AISP"})


def test_roles_of_others_are_not_the_banks() -> None:
    """PSP_AS and PSP_IC: a statement that lists only those gives neither role."""
    listed = psd2_statements(["PISP"]).value.replace(bytes.fromhex("04008198270102"), bytes.fromhex("04008198270101"))
    assert qcstatements.psd2_roles(listed) == frozenset()


def test_a_broken_statement_is_refused(making: Making) -> None:
    broken = psd2_statements(["PISP"]).value[:-3]
    key = new_rsa_key()
    certificate = header(certificate_of(key, [(NameOID.COMMON_NAME, "x")], x509.UnrecognizedExtension(QC, broken)))
    (only,) = making.but(certificate=certificate).faults()
    text = "The certificate cannot be used: its QCStatements extension does not conform to ETSI TS 119 495."
    assert only.text == text


@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda tail: psd2_statements(["PISP"]).value[:40] + tail))
def test_no_bytes_break_the_reading_of_statements(der: bytes) -> None:
    with contextlib.suppress(qcstatements.StatementsUnreadable):
        roles = qcstatements.psd2_roles(der)
        assert roles is None or roles <= {"PISP", "AISP"}


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_no_text_breaks_the_reading_of_certificates(raw: bytes) -> None:
    for text in (raw.decode("latin-1"), base64.b64encode(raw).decode(), f"-----BEGIN CERTIFICATE-----{raw.hex()}"):
        with pytest.raises(CertificateUnreadable):
            read_certificate(text)


@given(st.integers(0, 2000), st.integers(0, 255))
def test_no_altered_byte_breaks_the_reading_of_certificates(position: int, byte: int) -> None:
    der = bytearray(ALTERED)
    der[position % len(der)] = byte
    with contextlib.suppress(CertificateUnreadable):
        read = read_certificate(base64.b64encode(der).decode())
        compare_key_id("SN=1,CA=CN=x", read.certificate, lenient=True)


ALTERED = certificate_of(new_rsa_key(), [(NameOID.COMMON_NAME, "x")], psd2_statements(["PISP"])).public_bytes(
    serialization.Encoding.DER
)


@cases(
    "flaw, text",
    [
        ("expired", "The certificate has expired: it was valid until 2026-03-01 07:00:00 UTC."),
        ("not-yet-valid", "The certificate is not valid yet: it is valid from 2026-04-01 07:00:00 UTC."),
    ],
)
def test_a_certificate_outside_its_dates_is_refused(authority: CertificateAuthority, flaw: str, text: str) -> None:
    bad = Making(authority.issue(flaw, flaw=flaw))
    assert bad.faults() == [("BAD_REQUEST", "TPP-Signature-Certificate", text)]


@cases("seconds, good", [(0, True), (1, False)])
def test_a_certificate_is_valid_through_its_last_second(credentials: Credentials, seconds: int, good: bool) -> None:
    from emulator.httpsig.signing import format_date

    end = credentials.certificate.not_valid_after_utc + timedelta(seconds=seconds)
    late = Making(credentials, now=end).with_header("Date", format_date(end))
    if good:
        assert late.check()
    else:
        assert [path for _, path, _ in late.faults()] == ["TPP-Signature-Certificate"]


def test_any_issuer_is_trusted_unless_the_sandbox_ca_is_demanded(authority: CertificateAuthority) -> None:
    own, ca = Settings(trust="sandbox-ca"), authority.certificate
    good, unknown = authority.issue("known"), authority.issue("stranger", flaw="unknown-ca")
    assert Making(good, settings=own, trusted_ca=ca).check()
    assert Making(unknown).check()
    refused = Making(unknown, settings=own, trusted_ca=ca).faults()
    text = "The certificate is not issued by the sandbox CA but by CN=Unknown CA,O=Unknown,C=NO."
    assert refused == [("BAD_REQUEST", "TPP-Signature-Certificate", text)]


def test_an_issuer_with_the_sandbox_cas_name_is_not_the_sandbox_ca(authority: CertificateAuthority) -> None:
    impostor = CertificateAuthority(None, clock=lambda: NOW).issue("impostor")
    own = Settings(trust="sandbox-ca")
    [only] = Making(impostor, settings=own, trusted_ca=authority.certificate).faults()
    assert only.text == (
        "The certificate names the sandbox CA as its issuer, but was signed by another key (of the CA of another state "
        "directory?)."
    )
    assert Making(impostor, settings=own, trusted_ca=None).faults()
    assert Making(impostor).check()


def test_a_serial_with_a_leading_zero_is_taken_with_and_without_it(authority: CertificateAuthority) -> None:
    zero = Making(authority.issue("zero", flaw="leading-zero-serial"))
    serial = f"{zero.credentials.certificate.serial_number:032X}"
    assert serial.startswith("0A")
    issuer = "CN=Bank Emulator Sandbox CA,O=Bank Emulator,C=NO"
    for written in (serial, serial[1:], "00" + serial):
        assert zero.but(key_id=f"SN={written},CA={issuer}").check().notes == ()


def test_no_roles_means_neither(authority: CertificateAuthority) -> None:
    assert Making(authority.issue("none", flaw="no-roles")).check().tpp.roles == frozenset()


def test_two_certificates_one_after_the_other_are_called_so(making: Making) -> None:
    (only,) = making.but(certificate=b64(der(making.credentials) * 2)).faults()
    more = f"{len(der(making.credentials))} bytes after the certificate (another one?); send only the TPP's"
    assert only.text == f"The certificate cannot be used: {more}."
