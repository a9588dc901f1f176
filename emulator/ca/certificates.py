"""Certificates as objects: their content, the flaws that tests ask for, and signing.

TPP certificates have the form of eIDAS seals (ETSI TS 119 495). Nothing here reads or writes files.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from emulator.ca.qcstatements import psd2_statements

DAY = timedelta(days=1)
VALID_FOR = timedelta(days=3 * 365)
TOLERANCE = timedelta(hours=1)  # clocks of test machines differ: certificates are valid an hour before they are issued
TPP_KEY_BITS = 2048

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


def distinguished_name(*, common: str, organization: str, identifier: str | None = None) -> x509.Name:
    """A Norwegian name in the usual encoded order: C, O, organizationIdentifier, CN."""
    parts = [(NameOID.COUNTRY_NAME, "NO"), (NameOID.ORGANIZATION_NAME, organization)]
    if identifier is not None:
        parts.append((NameOID.ORGANIZATION_IDENTIFIER, identifier))
    parts.append((NameOID.COMMON_NAME, common))
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])


CA_NAME = distinguished_name(organization="Bank Emulator", common="Bank Emulator Sandbox CA")
BANK_NAME = distinguished_name(organization="Bank Emulator", common="Bank Emulator")


@dataclass(slots=True)
class Credentials:
    """The certificate and key that a TPP (or the bank, for its answers) signs with.

    `key_pem` is PKCS #8 without a password. `issuer` is the certificate of the CA that issued it, None for
    credentials that were read from files.
    """

    name: str
    certificate: x509.Certificate
    key_pem: bytes = field(repr=False)
    issuer: x509.Certificate | None = None
    _key: rsa.RSAPrivateKey | None = field(default=None, repr=False)

    @property
    def key(self) -> rsa.RSAPrivateKey:
        """The private key, read from its PEM text at the first use."""
        if self._key is None:
            key = serialization.load_pem_private_key(self.key_pem, None, unsafe_skip_rsa_key_validation=True)
            if not isinstance(key, rsa.RSAPrivateKey):
                raise ValueError(f"the key of {self.name} is not an RSA key")
            self._key = key
        return self._key

    @property
    def certificate_pem(self) -> str:
        return pem(self.certificate)

    @property
    def certificate_header(self) -> str:
        """The value of TPP-Signature-Certificate: base64 DER on one line."""
        return base64.b64encode(self.certificate.public_bytes(serialization.Encoding.DER)).decode()

    def keystore(self, password: str) -> bytes:
        """A PKCS #12 keystore with key, certificate and, when known, the CA's certificate."""
        return pkcs12.serialize_key_and_certificates(
            self.name.encode(),
            self.key,
            self.certificate,
            [self.issuer] if self.issuer is not None else None,
            serialization.BestAvailableEncryption(password.encode()),
        )


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """`key` as PKCS #8 PEM without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class IssueRefused(ValueError):
    """The requested certificate cannot be issued; `text` is a sentence, `member` the part of the request at fault."""

    def __init__(self, text: str, member: str) -> None:
        super().__init__(text)
        self.member = member


@dataclass(frozen=True, slots=True)
class Issuer:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class CertificateContent:
    """A TPP certificate before it is signed; `issuer_name` None means the sandbox CA."""

    name: str
    organization: str
    organization_identifier: str
    roles: frozenset[str]
    not_before: datetime
    not_after: datetime
    serial: int
    issuer_name: x509.Name | None = None


def _special_characters(content: CertificateContent) -> CertificateContent:
    """Every character that RFC 2253 escapes, letters beyond ASCII, and an attribute type without a short name."""
    issuer = distinguished_name(
        organization='Ærlig, "Sikker" + Trygg; <Prøve>',
        identifier="NTRNO-000000000",
        common="#1 Øving\\CA = Test",
    )
    return replace(content, organization=f"{content.organization}, Søn & Døtre", issuer_name=issuer)


_CHANGES: Mapping[str, Callable[[CertificateContent], CertificateContent]] = {
    "expired": lambda content: replace(
        content, not_before=content.not_before - VALID_FOR, not_after=content.not_before - DAY
    ),
    "not-yet-valid": lambda content: replace(content, not_before=content.not_before + 30 * DAY),
    "unknown-ca": lambda content: replace(
        content, issuer_name=distinguished_name(organization="Unknown", common="Unknown CA")
    ),
    "no-roles": lambda content: replace(content, roles=frozenset()),
    # The first byte is below 16: some tools print a leading zero, others do not.
    "leading-zero-serial": lambda content: replace(content, serial=int.from_bytes(b"\x0a" + os.urandom(15), "big")),
    "special-characters": _special_characters,
}
FLAWS = tuple(_CHANGES)


def flawed(content: CertificateContent, flaw: str | None) -> CertificateContent:
    """`content` with `flaw` (a name of FLAWS) applied; raise IssueRefused for an unknown one."""
    if flaw is None:
        return content
    if flaw not in _CHANGES:
        raise IssueRefused(f"There is no flaw {flaw!r}; the flaws are {', '.join(FLAWS)}.", "flaw")
    return _CHANGES[flaw](content)


def new_ec_key() -> ec.EllipticCurvePrivateKey:
    """A P-256 key; takes well under a millisecond."""
    return ec.generate_private_key(ec.SECP256R1())


def new_rsa_key() -> rsa.RSAPrivateKey:
    """An RSA key of 2048 bits; takes 40 to 100 ms."""
    return rsa.generate_private_key(public_exponent=65537, key_size=TPP_KEY_BITS)


def self_signed_ca(name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    """A CA certificate for `key`, valid for ten years."""
    builder = _builder(name, name, key.public_key(), (now - TOLERANCE, now + timedelta(days=3650)))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signing=False), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256())


def tpp_certificate(content: CertificateContent, key: rsa.RSAPublicKey, issuer: Issuer) -> x509.Certificate:
    """The certificate with `content` for `key`, in the form of an eIDAS seal (ETSI TS 119 495)."""
    subject = distinguished_name(
        organization=content.organization,
        identifier=content.organization_identifier,
        common=content.name,
    )
    names = (subject, issuer.certificate.subject)
    builder = _builder(*names, key, (content.not_before, content.not_after), serial=content.serial)
    builder = _leaf(builder, key, issuer).add_extension(psd2_statements(content.roles), critical=False)
    return builder.sign(issuer.key, hashes.SHA256())


def answer_certificate(key: rsa.RSAPublicKey, issuer: Issuer, now: datetime) -> x509.Certificate:
    """The certificate with which the bank signs its answers."""
    validity = (now - TOLERANCE, now + VALID_FOR)
    builder = _builder(BANK_NAME, issuer.certificate.subject, key, validity)
    return _leaf(builder, key, issuer).sign(issuer.key, hashes.SHA256())


def tls_certificate(
    key: ec.EllipticCurvePublicKey, hosts: Sequence[str], issuer: Issuer, now: datetime
) -> x509.Certificate:
    """A server certificate that names every one of `hosts`: DNS names and IP addresses."""
    subject = distinguished_name(organization="Bank Emulator", common="Bank Emulator TLS")
    # Browsers and Apple's systems accept server certificates of at most 825 days.
    builder = _builder(subject, issuer.certificate.subject, key, (now - TOLERANCE, now + timedelta(days=820)))
    builder = builder.add_extension(x509.SubjectAlternativeName(list(_alternative_names(hosts))), critical=False)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = _leaf(builder, key, issuer).add_extension(usage, critical=False)
    return builder.sign(issuer.key, hashes.SHA256())


def _alternative_names(hosts: Iterable[str]) -> Iterable[x509.GeneralName]:
    for host in dict.fromkeys(hosts):
        try:
            yield x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            yield x509.DNSName(host.encode("idna").decode() if not host.isascii() else host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PublicKey,
    validity: tuple[datetime, datetime],
    *,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number() if serial is None else serial)
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
    )


def _leaf(builder: x509.CertificateBuilder, key: PublicKey, issuer: Issuer) -> x509.CertificateBuilder:
    issuer_key = issuer.key.public_key()
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signing=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _usage(*, signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signing,
        content_commitment=signing,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=not signing,
        crl_sign=not signing,
        encipher_only=False,
        decipher_only=False,
    )
