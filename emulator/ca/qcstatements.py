"""The QCStatements of a TPP certificate, written and read (ETSI TS 119 495, 5.1; RFC 3739, 3.2.6; EN 319 412-5).

    QCStatements ::= SEQUENCE OF SEQUENCE { statementId OBJECT IDENTIFIER, statementInfo ANY OPTIONAL }

The PSD2 statement (0.4.0.19495.2) lists the roles of the certificate's holder and names the authority that granted
them.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.x509 import ObjectIdentifier

OID = ObjectIdentifier("1.3.6.1.5.5.7.1.3")
AUTHORITY_NAME = "Bank Emulator Sandbox Authority"
AUTHORITY_ID = "NO-SBX"  # country and a code, the form of an NCAId; no such authority exists

_PSD2 = ObjectIdentifier("0.4.0.19495.2")
_ROLES = {
    "PISP": (ObjectIdentifier("0.4.0.19495.1.2"), "PSP_PI"),
    "AISP": (ObjectIdentifier("0.4.0.19495.1.3"), "PSP_AI"),
}
_ROLE_NAMES = {oid: name for name, (oid, _) in _ROLES.items()}
_QC_TYPE = ObjectIdentifier("0.4.0.1862.1.6")
_ELECTRONIC_SEAL = ObjectIdentifier("0.4.0.1862.1.6.2")


class StatementsUnreadable(ValueError):
    """The extension does not have the form above."""


# Texts are values of any type, as other CAs write them with other string types.
@asn1.sequence
class _Role:
    role: ObjectIdentifier
    name: asn1.TLV


@asn1.sequence
class _RolesOfPsp:
    roles: list[_Role]
    authority_name: asn1.TLV
    authority_id: asn1.TLV


@asn1.sequence
class _CertificateType:
    oid: ObjectIdentifier


@asn1.sequence
class _Statement:
    statement: ObjectIdentifier
    info: asn1.TLV


@asn1.sequence
class _WithoutInfo:
    statement: ObjectIdentifier


@asn1.sequence
class _Written:
    """The extension as this CA writes it."""

    qc_type: _Statement
    psd2: _Statement


@asn1.sequence
class _Statements:
    """QCStatements inside a SEQUENCE of their own, because `decode_der` takes no bare SEQUENCE OF."""

    statements: list[asn1.TLV]


def psd2_statements(roles: Iterable[str]) -> x509.UnrecognizedExtension:
    """The extension that grants `roles` (of `PISP`, `AISP`); no roles are written as an empty list."""
    chosen = frozenset(roles)
    listed = [_Role(role=oid, name=_value(name)) for role, (oid, name) in _ROLES.items() if role in chosen]
    psd2 = _RolesOfPsp(roles=listed, authority_name=_value(AUTHORITY_NAME), authority_id=_value(AUTHORITY_ID))
    content = _Written(
        qc_type=_Statement(statement=_QC_TYPE, info=_value(_CertificateType(oid=_ELECTRONIC_SEAL))),
        psd2=_Statement(statement=_PSD2, info=_value(psd2)),
    )
    return x509.UnrecognizedExtension(OID, asn1.encode_der(content))


def _value(value: object) -> asn1.TLV:
    return asn1.decode_der(asn1.TLV, asn1.encode_der(value))


def psd2_roles(extension: bytes) -> frozenset[str] | None:
    """Those of `PISP` and `AISP` that the PSD2 statement lists; None without that statement.

    Other roles (PSP_AS, PSP_IC) are ignored. Raises StatementsUnreadable.
    """
    try:
        for statement in asn1.decode_der(_Statements, _in_sequence(extension)).statements:
            if (info := _psd2_info(statement)) is not None:
                roles = info.parse(_RolesOfPsp).roles
                return frozenset(_ROLE_NAMES[entry.role] for entry in roles if entry.role in _ROLE_NAMES)
    except ValueError as error:
        raise StatementsUnreadable from error
    return None


def _psd2_info(statement: asn1.TLV) -> asn1.TLV | None:
    """The statementInfo of the PSD2 statement, None for another statement; raises ValueError."""
    try:
        parsed = statement.parse(_Statement)
    except ValueError:
        if statement.parse(_WithoutInfo).statement == _PSD2:
            raise
        return None
    return parsed.info if parsed.statement == _PSD2 else None


def _in_sequence(der: bytes) -> bytes:
    size = len(der)
    if size < 0x80:
        return bytes([0x30, size]) + der
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([0x30, 0x80 | len(length)]) + length + der
