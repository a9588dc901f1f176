"""Writing the QCStatements of a TPP certificate (ETSI TS 119 495, 5.1; EN 319 412-5)."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509

QC_STATEMENTS = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.3")
AUTHORITY_NAME = "Bank Emulator Sandbox CertificateAuthority"
AUTHORITY_ID = "NO-SBX"  # country and a code, the form of an NCAId; no such authority exists

_PSD2 = bytes.fromhex("0606040081982702")  # OID 0.4.0.19495.2
_ROLES = {
    "PISP": (bytes.fromhex("060704008198270102"), "PSP_PI"),  # OID 0.4.0.19495.1.2
    "AISP": (bytes.fromhex("060704008198270103"), "PSP_AI"),  # OID 0.4.0.19495.1.3
}
_QC_TYPE = bytes.fromhex("060604008e460106")  # OID 0.4.0.1862.1.6, kind of certificate
_E_SEAL = bytes.fromhex("060704008e46010602")  # OID 0.4.0.1862.1.6.2, for electronic seals


def psd2_statements(roles: Iterable[str]) -> x509.UnrecognizedExtension:
    """The extension that gives `roles` (of `PISP`, `AISP`); an empty list is written as such."""
    listed = b"".join(_sequence(oid + _text(name)) for role, (oid, name) in _ROLES.items() if role in frozenset(roles))
    psd2 = _sequence(_PSD2 + _sequence(_sequence(listed) + _text(AUTHORITY_NAME) + _text(AUTHORITY_ID)))
    seal = _sequence(_QC_TYPE + _sequence(_E_SEAL))
    return x509.UnrecognizedExtension(QC_STATEMENTS, _sequence(seal + psd2))


def _sequence(content: bytes) -> bytes:
    return _element(0x30, content)


def _text(value: str) -> bytes:
    return _element(0x0C, value.encode())


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content
