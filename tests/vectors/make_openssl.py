"""Record `openssl.json`: requests whose keys, certificates, names, hashes and signatures the openssl command made.

Run by hand with `python tests/vectors/make_openssl.py`; needs openssl 3. Python only puts the pieces together.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

# The certificates begin now, so the requests are dated a little later.
MADE = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=5)
DATE = MADE.strftime("%a, %d %b %Y %H:%M:%S GMT")
NOW = MADE.isoformat()
BODY = (
    '{"instructedAmount":{"amount":"100.00","currency":"NOK"},"creditorName":"Kari Nordmann",'
    '"creditorAccount":{"bban":"99901111117","currency":"NOK"},"debtorAccount":{"bban":"99901111125","currency":"NOK"}}'
)
REQUEST_ID = "5b3f9d2e-6d1c-4f0e-9f43-1c8c6a7e0b11"


def openssl(*arguments: str, data: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


class Signer:
    """A key with its certificate, made by openssl in `folder`."""

    def __init__(self, folder: Path, *, subject: str, serial: str, bits: int = 2048, issuer: str | None = None) -> None:
        self.key = folder / "key.pem"
        self.certificate = folder / "certificate.pem"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}", "-out", str(self.key))
        if issuer is None:
            openssl(
                "req", "-x509", "-key", str(self.key), "-subj", subject, "-utf8", "-multivalue-rdn",
                "-set_serial", f"0x{serial}", "-days", "7300", "-out", str(self.certificate),
            )  # fmt: skip
            return
        ca_key, ca = folder / "ca-key.pem", folder / "ca.pem"
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(ca_key))
        openssl("req", "-x509", "-key", str(ca_key), "-subj", issuer, "-utf8", "-days", "7300", "-out", str(ca))
        request = folder / "request.pem"
        openssl("req", "-new", "-key", str(self.key), "-subj", subject, "-utf8", "-out", str(request))
        openssl(
            "x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-set_serial", f"0x{serial}",
            "-days", "7300", "-out", str(self.certificate),
        )  # fmt: skip

    def show(self, *options: str) -> str:
        return openssl("x509", "-in", str(self.certificate), "-noout", *options).decode().strip().partition("=")[2]

    def header(self) -> str:
        return openssl("base64", "-A", data=openssl("x509", "-in", str(self.certificate), "-outform", "DER")).decode()

    def sign(self, text: str, hash_name: str) -> str:
        raw = openssl("dgst", f"-{hash_name}", "-sign", str(self.key), data=text.encode())
        return openssl("base64", "-A", data=raw).decode()


def digest(body: str, hash_name: str) -> str:
    return openssl("base64", "-A", data=openssl("dgst", f"-{hash_name}", "-binary", data=body.encode())).decode()


def vector(
    name: str,
    signer: Signer,
    *,
    key_id: str,
    method: str = "GET",
    target: str = "/v1/accounts",
    extra: list[tuple[str, str]] | None = None,
    names: str = "date x-request-id tpp-redirect-uri",
    hash_name: str = "sha256",
    body: str = "",
    wrap: bool = False,
    certificate: str | None = None,
) -> dict[str, Any]:
    headers = [
        ("Host", "127.0.0.1:8080"),
        ("Date", DATE),
        ("X-Request-ID", REQUEST_ID),
        ("TPP-Redirect-URI", "https://tpp.example/callback?a=b"),
        *(extra or []),
    ]
    if body:
        headers.append(("Digest", f"SHA-{hash_name[3:]}={digest(body, hash_name)}"))
    values = {header.lower(): value for header, value in headers}
    values["(request-target)"] = f"{method.lower()} {target}"
    text = "\n".join(f"{listed}: {values[listed]}" for listed in names.split(" "))
    signature = signer.sign(text, hash_name)
    header = f'keyId="{key_id}",algorithm="rsa-{hash_name}",headers="{names}",signature="{signature}"'
    if wrap:
        header = f"=?utf-8?B?{openssl('base64', '-A', data=header.encode()).decode()}?="
    headers += [("TPP-Signature-Certificate", certificate or signer.header()), ("Signature", header)]
    return {
        "name": name,
        "method": method,
        "target": target,
        "headers": headers,
        "body": body,
        "now": NOW,
        "signingString": text,
    }


def build(folder: Path) -> list[dict[str, Any]]:
    def signer(name: str, **options: Any) -> Signer:
        place = folder / name
        place.mkdir()
        return Signer(place, **options)

    plain = signer("plain", subject="/C=NO/O=Example TPP/CN=Example Seal", serial="5A3F00C1D2E4")
    plain_id = f"SN={plain.show('-serial')},CA={plain.show('-issuer', '-nameopt', 'RFC2253')}"
    seal = signer(
        "seal",
        subject="/C=NO/O=Example TPP/organizationIdentifier=PSDNO-SBX-12345/CN=Example Seal",
        issuer='/C=NO/O=Ærlig, "Test" \\+ Sønner; <AS>/organizationIdentifier=NTRNO-000000000/OU=a/OU=b/CN=#Prøve CA',
        serial="0A11BB",
    )
    seal_serial = seal.show("-serial")
    multi = signer("multi", subject="/C=NO/O=Example+OU=Unit/emailAddress=x@example.org/CN=Many", serial="7F01")
    large = signer("large", subject="/C=NO/L=Oslo/ST=Oslo/O=Large/OU=first/OU=second/CN=Large", serial="10", bits=4096)
    pem_line = plain.certificate.read_text().strip().replace("\n", " ")
    pem_tight = plain.certificate.read_text().replace("\n", "")
    target = "/v1/payments/instant-norwegian-domestic-credit-transfers-straks?allowLogicalDuplicate=false"
    post: dict[str, Any] = {"method": "POST", "target": target, "body": BODY}
    psu = [("PSU-ID", "0f8fad5b-d9cb-469f-a165-70867728950e")]
    everything = "(request-target) host date digest x-request-id psu-id tpp-redirect-uri"
    names = "date digest x-request-id tpp-redirect-uri"

    blanks = ("esc_2253", "utf8", "sname", "sep_comma_plus_space")

    def issuer(*options: str) -> str:
        return f"SN={seal_serial},CA={seal.show('-issuer', '-nameopt', ','.join(options))}"

    return [
        vector("get", plain, key_id=plain_id),
        vector("post with digest and query", plain, key_id=plain_id, names=everything, extra=psu, **post),
        vector("sha-512", plain, key_id=plain_id, names=names, hash_name="sha512", **post),
        vector("pem with blanks", plain, key_id=plain_id, certificate=pem_line),
        vector("pem without line breaks", plain, key_id=plain_id, certificate=pem_tight),
        vector("rfc2253 with hexadecimal escapes", seal, key_id=issuer("RFC2253")),
        vector("unknown type as oid with der", seal, key_id=issuer("RFC2253", "oid", "dump_all", "dump_der")),
        vector("letters beyond ascii, wrapped", seal, key_id=issuer("RFC2253", "-esc_msb"), wrap=True),
        vector("certificate order", seal, key_id=issuer("RFC2253", "-dn_rev")),
        vector("certificate order with blanks", seal, key_id=issuer(*blanks), wrap=True),
        vector("lower-case serial", plain, key_id=plain_id.replace("5A3F00C1D2E4", "5a3f00c1d2e4")),
        vector("serial without leading zero", seal, key_id=issuer("RFC2253").replace("SN=0A11BB", "SN=A11BB")),
        vector("multi-valued name", multi, key_id=f"SN=7F01,CA={multi.show('-issuer', '-nameopt', 'RFC2253')}"),
        vector("4096 bits", large, key_id=f"SN=10,CA={large.show('-issuer', '-nameopt', 'RFC2253')}"),
        vector("tool order", large, key_id="SN=10,CA=CN=Large,O=Large,OU=first,second,L=Oslo,S=Oslo,C=NO"),
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        vectors = build(Path(temporary))
    file = Path(__file__).with_name("openssl.json")
    recorded = {"madeBy": openssl("version").decode().strip(), "vectors": vectors}
    file.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(vectors)} vectors in {file.name}")
