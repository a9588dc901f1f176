"""The certificate and key that a TPP signs with."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from emulator.httpsig.keyid import key_id_for

Pem = str | bytes | Path


class HoldsKey(Protocol):
    """Anything with a certificate and its key, such as the authority's Credentials."""

    @property
    def certificate(self) -> x509.Certificate: ...
    @property
    def key(self) -> RSAPrivateKey: ...


class Identity:
    """A TPP's certificate and key, with the two header texts that do not change from request to request.

    `header` is the value of TPP-Signature-Certificate, `key_id` that of the keyId (SPEC 5.2).
    """

    def __init__(self, certificate: x509.Certificate, key: RSAPrivateKey) -> None:
        self.certificate = certificate
        self.key = key
        self.key_id = key_id_for(certificate)
        self.header = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()

    @classmethod
    def of(cls, holder: HoldsKey) -> Identity:
        """The identity of `holder`; an Identity is returned as it is."""
        return holder if isinstance(holder, Identity) else cls(holder.certificate, holder.key)

    @classmethod
    def from_pem(cls, certificate: Pem, key: Pem, *, password: str | None = None) -> Identity:
        """From PEM text or the paths of PEM files; raise ValueError when they hold something else."""
        try:
            loaded = serialization.load_pem_private_key(_content("key", key), password.encode() if password else None)
        except TypeError as error:  # a password that is missing, or one too many
            raise ValueError(str(error)) from None
        if not isinstance(loaded, RSAPrivateKey):
            raise ValueError("the signing key must be an RSA key")
        read = x509.load_pem_x509_certificate(_content("certificate", certificate))
        if read.public_key() != loaded.public_key():
            raise ValueError("the key is not that of the certificate")
        return cls(read, loaded)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Identity:
        """From a folder such as `.bank-emulator/tpps/demo`, which holds certificate.pem and key.pem."""
        return cls.from_pem(Path(folder) / "certificate.pem", Path(folder) / "key.pem")


def _content(name: str, pem: Pem) -> bytes:
    """The bytes of PEM text, whatever file they come from; ValueError by `name` for another encoding."""
    if isinstance(pem, str):
        pem = pem.encode() if "-----BEGIN" in pem else Path(pem)
    content = pem.read_bytes() if isinstance(pem, Path) else pem
    if b"-----BEGIN" not in content:  # DER, PKCS #12 or UTF-16, of which the library says little
        raise ValueError(f"the {name} is no PEM text: it has no line -----BEGIN")
    return content
