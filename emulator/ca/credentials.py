"""A certificate with its private key, as files and texts hold them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12


@dataclass(slots=True)
class Credentials:
    """What a TPP (or the bank, for its answers) signs with.

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
        """The certificate as PEM text."""
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
    """`certificate` as PEM text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """`key` as PKCS #8 PEM without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
