"""Good input to begin with, so that made-up bytes get past the first checks."""

from __future__ import annotations

import json
from base64 import b64encode

from cryptography.hazmat.primitives.serialization import Encoding

from emulator.assemble import authority_for
from emulator.authority.statements import psd2_statements
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


def seeds(name: str) -> list[bytes]:
    """Some good input for the reader `name`."""
    if name == "certificate":
        made = authority_for(None).issue("fuzz").certificate
        der = made.public_bytes(Encoding.DER)
        return [b64encode(der), made.public_bytes(Encoding.PEM), der, psd2_statements(["PISP", "AISP"]).value]
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
