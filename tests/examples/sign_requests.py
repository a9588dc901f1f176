#!/usr/bin/env python3
"""One signed request with requests or httpx; signing takes `cryptography` and the standard library.

    python sign_requests.py GET http://127.0.0.1:8080/v1/accounts \
        --certificate .bank-emulator/tpps/demo/certificate.pem --key .bank-emulator/tpps/demo/key.pem
    python sign_requests.py POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers --body '{...}' ...

After the first SCA the redirect carries psu-id and tpp-session-id: -H 'PSU-ID: ...' -H 'TPP-Session-ID: ...'.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import uuid
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

# Each of these that a request carries must be signed.
SIGNED = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")


def signed(
    method: str, url: str, body: bytes, headers: dict[str, str], certificate_pem: bytes, key_pem: bytes
) -> dict[str, str]:
    """`headers` with what every request needs, and the signature over them."""
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    key = serialization.load_pem_private_key(key_pem, password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("an RSA key is needed")

    sent = {
        "Date": formatdate(usegmt=True),
        "X-Request-ID": str(uuid.uuid4()),
        "TPP-Session-ID": str(uuid.uuid4()),
        "TPP-Redirect-URI": "https://tpp.example/callback",
        "PSU-IP-Address": "192.0.2.1",
        "x-accept-fix": "amount-as-string",
        "TPP-Signature-Certificate": base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode(),
        **headers,
    }
    if body:  # over exactly the bytes that are sent
        sent["Content-Type"] = "application/json"
        sent["Digest"] = "SHA-256=" + base64.b64encode(hashlib.sha256(body).digest()).decode()

    # One line for each signed header; (request-target) ties the signature to this address.
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    values = {name.lower(): value for name, value in sent.items()}
    lines = {"(request-target)": f"{method.lower()} {target}"} | {n: values[n] for n in SIGNED if n in values}
    text = "\n".join(f"{name}: {value}" for name, value in lines.items())
    signature = base64.b64encode(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()

    # The serial number in upper-case hex, the issuer as RFC 2253 writes it (RFC 4514 is its successor).
    key_id = f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"
    header = f'keyId="{key_id}",algorithm="rsa-sha256",headers="{" ".join(lines)}",signature="{signature}"'
    if not header.isascii():  # as a MIME word
        header = f"=?utf-8?B?{base64.b64encode(header.encode()).decode()}?="
    return sent | {"Signature": header}


def send(library: str, method: str, url: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    """Status and text of the answer. The body goes out as the bytes that were signed, not as `json=`."""
    if library == "httpx":
        import httpx

        answer = httpx.request(method, url, headers=headers, content=body)
        return answer.status_code, answer.text

    import requests

    response = requests.request(method, url, headers=headers, data=body, timeout=30)
    return response.status_code, response.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("url")
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--body", default="")
    parser.add_argument("-H", "--header", action="append", default=[], metavar="'Name: value'")
    parser.add_argument("--with", dest="library", choices=["requests", "httpx"], default="requests")
    asked = parser.parse_args()

    extra = {name.strip(): value.strip() for name, _, value in (text.partition(":") for text in asked.header)}
    body = asked.body.encode()
    method = asked.method.upper()
    headers = signed(method, asked.url, body, extra, asked.certificate.read_bytes(), asked.key.read_bytes())
    status, text = send(asked.library, method, asked.url, headers, body)
    print(text)
    print(f"HTTP {status}")


if __name__ == "__main__":
    main()
