"""Signs the shop's requests to the bank, with `cryptography` and the standard library."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from email.utils import formatdate

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

# The bank demands that each of these is signed when a request carries it.
SIGNED = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")


class Signer:
    """Signs with a certificate and its RSA key, both PEM."""

    def __init__(self, certificate_pem: str, key_pem: str) -> None:
        certificate = x509.load_pem_x509_certificate(certificate_pem.encode())
        key = serialization.load_pem_private_key(key_pem.encode(), password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError("the bank takes RSA keys only")
        self._key = key
        self._key_id = f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"
        self._certificate = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()

    def sign(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """`headers` with Date, Digest, certificate and signature. `target` is path and query as they are sent."""
        complete = {
            "Date": formatdate(usegmt=True),
            "TPP-Signature-Certificate": self._certificate,
            **headers,
        }
        if body:
            complete["Digest"] = "SHA-256=" + base64.b64encode(hashlib.sha256(body).digest()).decode()
        values = {name.lower(): value for name, value in complete.items()}
        lines = {"(request-target)": f"{method.lower()} {target}"}
        lines |= {name: values[name] for name in SIGNED if name in values}
        text = "\n".join(f"{name}: {value}" for name, value in lines.items())
        signature = base64.b64encode(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()
        complete["Signature"] = (
            f'keyId="{self._key_id}",algorithm="rsa-sha256",headers="{" ".join(lines)}",signature="{signature}"'
        )
        return complete
