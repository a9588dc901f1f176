"""The PSD2 roles inside a certificate's QCStatements extension (ETSI TS 119 495, 5.1; RFC 3739, 3.2.6).

QCStatements ::= SEQUENCE OF SEQUENCE { statementId OID, statementInfo ANY OPTIONAL }, and for PSD2 statementInfo
is SEQUENCE { SEQUENCE OF SEQUENCE { role OID, name UTF8String }, nCAName UTF8String, nCAId UTF8String }. Three
nested lists of known shape: a reader of twenty lines, where the library's ASN.1 support has no optional ANY.
"""

from __future__ import annotations

from collections.abc import Iterator

OID = "1.3.6.1.5.5.7.1.3"

_SEQUENCE, _OBJECT_IDENTIFIER = 0x30, 0x06
_PSD2 = bytes.fromhex("040081982702")  # 0.4.0.19495.2
_ROLES = {
    bytes.fromhex("04008198270102"): "PISP",  # 0.4.0.19495.1.2, PSP_PI
    bytes.fromhex("04008198270103"): "AISP",  # 0.4.0.19495.1.3, PSP_AI
}


class StatementsUnreadable(ValueError):
    """The extension is not of the form above."""


def psd2_roles(extension: bytes) -> frozenset[str] | None:
    """`PISP` and `AISP` as far as the PSD2 statement lists them; None without that statement.

    Other roles (PSP_AS, PSP_IC) are none of this bank's. Raises StatementsUnreadable.
    """
    for tag, statement in _elements(_only_sequence(extension)):
        if tag != _SEQUENCE:
            raise StatementsUnreadable
        members = list(_elements(statement))
        if not members or members[0][0] != _OBJECT_IDENTIFIER:
            raise StatementsUnreadable
        if members[0][1] == _PSD2:
            if len(members) != 2 or members[1][0] != _SEQUENCE:
                raise StatementsUnreadable
            return _roles(members[1][1])
    return None


def _roles(information: bytes) -> frozenset[str]:
    members = list(_elements(information))
    if not members or members[0][0] != _SEQUENCE:
        raise StatementsUnreadable
    found = set()
    for tag, role in _elements(members[0][1]):
        parts = list(_elements(role))
        if tag != _SEQUENCE or not parts or parts[0][0] != _OBJECT_IDENTIFIER:
            raise StatementsUnreadable
        if parts[0][1] in _ROLES:
            found.add(_ROLES[parts[0][1]])
    return frozenset(found)


def _only_sequence(der: bytes) -> bytes:
    elements = list(_elements(der))
    if len(elements) != 1 or elements[0][0] != _SEQUENCE:
        raise StatementsUnreadable
    return elements[0][1]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each DER element that `der` consists of."""
    at = 0
    while at < len(der):
        if at + 2 > len(der):
            raise StatementsUnreadable
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or at + size > len(der):
                raise StatementsUnreadable
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        if at + length > len(der):
            raise StatementsUnreadable
        yield tag, der[at : at + length]
        at += length
