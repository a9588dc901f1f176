"""Good input to begin with, so that made-up bytes get past the first checks."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from emulator.assemble import authority_for
from emulator.ca.qcstatements import psd2_statements
from emulator.client.signing import signed_headers
from emulator.packaged import folder


def _captures() -> list[bytes]:
    """A signed request as raw HTTP, as what curl shows and as JSON; some signed in a wrong way."""
    identity = authority_for(None).issue("fuzz")
    found = []
    for tamper in (None, "without-query", "bit-flipped"):
        sent = signed_headers("POST", "/v1/payments?a=b", identity, body=b"{}", tamper=tamper)
        lines = [f"{name}: {value}" for name, value in sent.items()]
        found.append("\r\n".join(["POST /v1/payments?a=b HTTP/1.1", *lines, "", "{}"]))
    curl = "\n".join(["> POST /v1/payments?a=b HTTP/1.1", *(f"> {line}" for line in lines), ">", "< HTTP/1.1 400"])
    har = json.dumps({"method": "POST", "url": "http://a/v1/payments?a=b", "headers": sent, "body": "{}"})
    return [text.encode() for text in (*found, curl, har)]


def laden_certificate() -> bytes:
    """A certificate with many an extension."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A")])
    place = x509.UniformResourceIdentifier("http://a/b")
    told: list[x509.GeneralName] = [x509.DNSName("a.b"), x509.RFC822Name("a@b.c"), x509.DirectoryName(name), place]
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + timedelta(1))
    for extension in (
        x509.SubjectAlternativeName([*told, x509.IPAddress(ip_address("192.0.2.1"))]),
        x509.BasicConstraints(ca=True, path_length=1),
        x509.KeyUsage(True, True, False, False, False, True, False, False, False),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),
        x509.NameConstraints(told, None),
        x509.AuthorityInformationAccess([x509.AccessDescription(AuthorityInformationAccessOID.OCSP, place)]),
        x509.CRLDistributionPoints([x509.DistributionPoint([place], None, None, None)]),
        x509.CertificatePolicies([x509.PolicyInformation(NameOID.COMMON_NAME, ["http://a/b"])]),
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        psd2_statements(["PISP"]),
    ):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def seeds(name: str) -> list[bytes]:
    """Some good input for the reader `name`."""
    if name == "certificate":
        made = authority_for(None).issue("fuzz").certificate
        der = made.public_bytes(Encoding.DER)
        statements = psd2_statements(["PISP", "AISP"]).value
        return [b64encode(der), made.public_bytes(Encoding.PEM), der, statements, laden_certificate()]
    if name == "capture":
        return _captures()
    if name == "json":
        amount = b'{"instructedAmount":{"amount":"12.34","currency":"EUR"},"payments":[{"name":"\xc3\x85"},1e5,null]}'
        return [amount, b"[[[[{}]]]]", b'"\\ud83d\\ude00"']
    if name == "scenario":
        return [path.read_bytes() for path in sorted(folder("scenarios").glob("*.yaml"))]
    return [
        b'keyId="SN=9FA1,CA=CN=Bank Emulator Sandbox CA,O=Bank Emulator,C=NO",algorithm="rsa-sha256",'
        b'headers="(request-target) digest x-request-id date",signature="aGVp"',
        b"=?utf-8?B?a2V5SWQ9IlNOPTEi?= =?iso-8859-1?Q?a=3D=E5?=",
        b"CN=Test\\, AS,OU=a\\+b,O=#0c0161,C=NO",
        b"Mon, 02 Mar 2026 08:00:00 GMT",
        b"SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    ]
