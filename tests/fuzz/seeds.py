"""Good input to begin with, so that made-up bytes get past the first checks."""

from __future__ import annotations

from base64 import b64encode

from cryptography.hazmat.primitives.serialization import Encoding

from emulator.assemble import authority_for
from emulator.packaged import folder


def seeds(name: str) -> list[bytes]:
    """Some good input for the reader `name`."""
    if name == "certificate":
        made = authority_for(None).certificate
        return [b64encode(made.public_bytes(Encoding.DER)), made.public_bytes(Encoding.PEM)]
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
