"""Making and signing certificates: the CA's own, those of TPPs, TLS, and the one that signs the bank's answers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from emulator.ca.flaws import VALID_FOR, Issuer, Plan, distinguished_name
from emulator.ca.statements import psd2_statements

CA_NAME = distinguished_name(country="NO", organization="Bank Emulator", common="Bank Emulator Sandbox CA")
BANK_NAME = distinguished_name(country="NO", organization="Bank Emulator", common="Bank Emulator")
# Clocks of test machines differ: what is issued now is valid an hour ago.
TOLERANCE = timedelta(hours=1)
TPP_KEY_BITS = 2048

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


def new_ec_key() -> ec.EllipticCurvePrivateKey:
    """A P-256 key, made in well under a millisecond."""
    return ec.generate_private_key(ec.SECP256R1())


def new_rsa_key() -> rsa.RSAPrivateKey:
    """An RSA key of 2048 bits, made in 40 to 100 ms."""
    return rsa.generate_private_key(public_exponent=65537, key_size=TPP_KEY_BITS)


def self_signed_ca(name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    """A CA certificate for `key`, valid for ten years."""
    builder = _builder(name, name, key.public_key(), (now - TOLERANCE, now + timedelta(days=3650)))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signing=False), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256())


def tpp_certificate(plan: Plan, key: rsa.RSAPublicKey, issuer: Issuer) -> x509.Certificate:
    """The certificate of `plan` over `key`, an eIDAS seal in form (ETSI TS 119 495)."""
    subject = distinguished_name(
        country="NO",
        organization=plan.organization,
        identifier=plan.organization_identifier,
        common=plan.name,
    )
    names = (subject, issuer.certificate.subject)
    builder = _builder(*names, key, (plan.not_before, plan.not_after), serial=plan.serial)
    builder = _leaf(builder, key, issuer).add_extension(psd2_statements(plan.roles), critical=False)
    return builder.sign(issuer.key, hashes.SHA256())


def answer_certificate(key: rsa.RSAPublicKey, issuer: Issuer, now: datetime) -> x509.Certificate:
    """The certificate with which the bank signs its answers (SPEC 5.2 rule 7)."""
    validity = (now - TOLERANCE, now + VALID_FOR)
    builder = _builder(BANK_NAME, issuer.certificate.subject, key, validity)
    return _leaf(builder, key, issuer).sign(issuer.key, hashes.SHA256())


def tls_certificate(
    key: ec.EllipticCurvePublicKey, hosts: Sequence[str], issuer: Issuer, now: datetime
) -> x509.Certificate:
    """A server certificate that names every one of `hosts`: DNS names and IP addresses."""
    subject = distinguished_name(country="NO", organization="Bank Emulator", common="Bank Emulator TLS")
    # Browsers and Apple's systems take server certificates of at most 825 days.
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
