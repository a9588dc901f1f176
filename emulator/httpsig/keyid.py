"""The keyId `SN=<serial>,CA=<issuer>`: building it from a certificate and comparing one that was sent.

The issuer is a distinguished name as text, read in every valid escaping of RFC 2253. It has its own
parser because `x509.Name.from_rfc4514_string` knows nine attribute types, refuses values that real certificates have
(a CN over 64 characters), reads `#hex` as text instead of as DER, and does not preserve the order, which is compared
here. Rendering is the library's `rfc4514_string`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from cryptography import x509

Attribute = tuple[str, str]  # dotted object identifier, value
Rdn = tuple[Attribute, ...]  # one relative distinguished name; several attributes when `+` joins them

CN, L, ST = "2.5.4.3", "2.5.4.7", "2.5.4.8"
ORG, OU, C = "2.5.4.10", "2.5.4.11", "2.5.4.6"
ORGANIZATION_IDENTIFIER = "2.5.4.97"

# The table of RFC 2253, section 2.3.
_RFC2253 = {
    "CN": CN, "L": L, "ST": ST, "O": ORG, "OU": OU, "C": C, "STREET": "2.5.4.9",
    "DC": "0.9.2342.19200300.100.1.25", "UID": "0.9.2342.19200300.100.1.1",
}  # fmt: skip
# What tools write for other types (OpenSSL, Java, .NET), compared in upper case.
_OTHERS = {
    "S": ST, "SP": ST, "STATEORPROVINCENAME": ST, "COMMONNAME": CN, "LOCALITYNAME": L, "ORGANIZATIONNAME": ORG,
    "ORGANIZATIONALUNITNAME": OU, "COUNTRYNAME": C, "STREETADDRESS": "2.5.4.9", "DOMAINCOMPONENT": _RFC2253["DC"],
    "USERID": _RFC2253["UID"],
    "ORGANIZATIONIDENTIFIER": ORGANIZATION_IDENTIFIER, "ORGID": ORGANIZATION_IDENTIFIER,
    "EMAILADDRESS": "1.2.840.113549.1.9.1", "EMAIL": "1.2.840.113549.1.9.1", "E": "1.2.840.113549.1.9.1",
    "SERIALNUMBER": "2.5.4.5", "SN": "2.5.4.4", "SURNAME": "2.5.4.4", "GN": "2.5.4.42", "GIVENNAME": "2.5.4.42",
    "T": "2.5.4.12", "TITLE": "2.5.4.12", "DNQ": "2.5.4.46", "DNQUALIFIER": "2.5.4.46", "DN": "2.5.4.46",
    "BUSINESSCATEGORY": "2.5.4.15", "POSTALCODE": "2.5.4.17", "DESCRIPTION": "2.5.4.13", "NAME": "2.5.4.41",
    "INITIALS": "2.5.4.43", "GENERATIONQUALIFIER": "2.5.4.44", "GENERATION": "2.5.4.44", "PSEUDONYM": "2.5.4.65",
    "UNSTRUCTUREDNAME": "1.2.840.113549.1.9.2", "UNSTRUCTUREDADDRESS": "1.2.840.113549.1.9.8",
    "JURISDICTIONC": "1.3.6.1.4.1.311.60.2.1.3", "JURISDICTIONST": "1.3.6.1.4.1.311.60.2.1.2",
    "JURISDICTIONL": "1.3.6.1.4.1.311.60.2.1.1",
}  # fmt: skip
_ESCAPABLE = frozenset(' #=+,;<>"\\')
_PARTS = re.compile(r"\\(?:[0-9A-Fa-f]{2}|.)?|.", re.DOTALL)  # a character, or what a backslash escapes
_TEXT_TAGS = {0x0C: "utf-8", 0x12: "ascii", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1A: "ascii",
              0x1C: "utf-32-be", 0x1E: "utf-16-be"}  # fmt: skip


class NameUnreadable(ValueError):
    """The text is not a distinguished name; the argument says why."""


@dataclass(frozen=True, slots=True)
class ReadName:
    """A name read from text: its relative names in the order of the text, and its deviations from RFC 2253."""

    rdns: tuple[Rdn, ...]
    oddities: tuple[str, ...] = ()


def certificate_name(name: x509.Name) -> tuple[Rdn, ...]:
    """The relative names of a certificate's name, in encoded order (country first, as a rule)."""
    return tuple(
        tuple(
            (
                attribute.oid.dotted_string,
                attribute.value if isinstance(attribute.value, str) else "#" + attribute.value.hex(),
            )
            for attribute in rdn
        )
        for rdn in name.rdns
    )


def read_name(text: str, *, lists: bool = False) -> ReadName:
    """Read `CN=A,O=B,C=NO` in any valid escaping; raise NameUnreadable.

    Types: the names of RFC 2253, those that common tools write, or dotted (with or without `OID.`). With `lists`,
    a part without `=` is a further value of the type before it (`OU=a,b`).
    """
    if not text.strip(" "):
        return ReadName(())
    if text.startswith("/"):
        raise NameUnreadable("it is in OpenSSL's old form with slashes (openssl writes it with -nameopt RFC2253)")
    oddities: dict[str, None] = {}
    rdns: list[Rdn] = []
    for piece in _split(text, ","):
        parts = _split(piece, "+")
        if lists and rdns and len(parts) == 1 and _unescaped(piece, "=") < 0:
            rdns.append(((rdns[-1][-1][0], _value(piece.strip(" "))),))
            continue
        rdns.append(tuple(_attribute(part, oddities) for part in parts))
    return ReadName(tuple(rdns), tuple(oddities))


def _attribute(text: str, oddities: dict[str, None]) -> Attribute:
    at = _unescaped(text, "=")
    if at < 0:
        raise NameUnreadable(f"{text.strip()[:40]!r} has no '=' (a comma or plus inside a value is written \\, or \\+)")
    kind, value = text[:at], text[at + 1 :]
    oid = _type(kind.strip(" "), oddities)
    trimmed = _trim(value)
    if kind != kind.strip(" ") or trimmed != value:
        oddities["blanks around , or ="] = None
    if any(_unescaped(trimmed, special) >= 0 for special in ";<>"):
        oddities["; < or > without a backslash"] = None
    return oid, _value(trimmed)


def _type(kind: str, oddities: dict[str, None]) -> str:
    upper = kind.upper()
    oid = _RFC2253.get(upper)
    if oid is not None:
        return oid  # RFC 2253 compares keywords without case
    oid = _OTHERS.get(upper)
    if oid is not None:
        oddities[f"the attribute type {kind}"] = None
        return oid
    dotted = upper.removeprefix("OID.")
    if dotted.isascii() and all(part.isdigit() for part in dotted.split(".")):
        if dotted != kind:
            oddities["OID. before a dotted attribute type"] = None
        return dotted
    raise NameUnreadable(f"the attribute type {kind[:40]!r} is not known")


def _split(text: str, separator: str) -> list[str]:
    """`text` split at each separator that is not escaped by a backslash."""
    if "\\" not in text:
        return text.split(separator)
    pieces, start = [], 0
    for match in _PARTS.finditer(text):
        if match[0] == separator:
            pieces.append(text[start : match.start()])
            start = match.end()
    return [*pieces, text[start:]]


def _unescaped(text: str, wanted: str) -> int:
    return len(pieces[0]) if len(pieces := _split(text, wanted)) > 1 else -1


def _trim(value: str) -> str:
    """`value` without surrounding blanks, except a final one that is escaped by a backslash."""
    bare = value.lstrip(" ")
    cut = bare.rstrip(" ")
    backslashes = len(cut) - len(cut.rstrip("\\"))
    return cut + " " if backslashes % 2 and len(cut) < len(bare) else cut


def _value(text: str) -> str:
    """An attribute value without its escapes; `#hex` is the DER encoding of one."""
    if text.startswith("#"):
        return _from_hex(text)
    if "\\" not in text:
        if '"' in text:
            raise NameUnreadable('a double quote inside a value must be written \\"')
        return text
    raw = bytearray()
    for match in _PARTS.finditer(text):
        part, escaped = match[0], match[0][1:]
        if part[0] != "\\":
            raw += part.encode("utf-8", "surrogatepass")
        elif escaped in _ESCAPABLE:
            raw += escaped.encode()
        elif len(escaped) == 2:
            raw.append(int(escaped, 16))
        else:
            here = text[match.start() : match.start() + 3]
            raise NameUnreadable(f"a backslash must escape a special character, found {here!r}")
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise NameUnreadable("its \\hex pairs are not UTF-8") from None


def _from_hex(text: str) -> str:
    """The text inside `#0c0b...`; a value that is not a character string is returned as hexadecimal."""
    try:
        raw = bytes.fromhex(text[1:])
    except ValueError:
        raise NameUnreadable("a value that begins with # must be hexadecimal") from None
    if not text[1:].isalnum() or len(raw) < 2:
        raise NameUnreadable("a value that begins with # must be the hexadecimal DER encoding")
    start, end = der_content(raw)
    if len(raw) != end:
        raise NameUnreadable("a value that begins with # must be the hexadecimal DER encoding")
    if raw[0] not in _TEXT_TAGS:
        return "#" + raw[start:].hex()
    try:
        return raw[start:].decode(_TEXT_TAGS[raw[0]])
    except UnicodeDecodeError:
        raise NameUnreadable("a value that begins with # is not the character string it says") from None


def der_content(der: bytes) -> tuple[int, int]:
    """Start and end of the content of a DER value, by its own length; it has at least two bytes."""
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    return start, start + length


def _tool_order(rdns: Sequence[Rdn]) -> list[Attribute]:
    """CN, O, OU, L, ST, C, as common tools write an issuer, without other attribute types."""
    flat = [attribute for rdn in rdns for attribute in rdn]
    return [attribute for kind in (CN, ORG, OU, L, ST, C) for attribute in flat if attribute[0] == kind]


_HEXADECIMAL = re.compile(r"-?[0-9A-Fa-f]{1,128}")  # some libraries generate negative serial numbers


@dataclass(frozen=True, slots=True)
class KeyIdVerdict:
    """`fault` is None when the keyId matches the certificate, else the reason; `notes` list what is not RFC 2253."""

    fault: str | None
    notes: tuple[str, ...] = ()


def key_id_for(certificate: x509.Certificate) -> str:
    """The keyId that documented clients send: serial in upper-case hexadecimal, issuer per RFC 2253."""
    return f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"


@lru_cache(maxsize=256)
def compare_key_id(key_id: str, certificate: x509.Certificate, *, lenient: bool = False) -> KeyIdVerdict:
    """Whether `key_id` matches `certificate`; cached, as a client sends the same one each time.

    `lenient` also accepts a serial in lower case, blanks after the comma, and `%20` for a blank.
    """
    serial_text, comma, issuer_text = key_id.partition(",")
    stripped = issuer_text.lstrip(" ")
    if not serial_text.startswith("SN=") or not comma or not stripped.startswith("CA="):
        return KeyIdVerdict("it is not of the form SN=<serial>,CA=<issuer>")
    notes: list[str] = []
    if stripped != issuer_text:
        if not lenient:
            return KeyIdVerdict("there is a blank between SN=<serial>, and CA=<issuer>")
        notes.append("keyId: a blank before CA=")
    fault = _compare_serial(serial_text[3:], certificate.serial_number, lenient=lenient, notes=notes)
    if fault is None:
        fault = _compare_issuer(stripped[3:], certificate, lenient=lenient, notes=notes)
    elif _is_intermediate(certificate) and _accepted(stripped[3:], certificate_name(certificate.subject)) is not None:
        fault = "the certificate that is sent is the CA's own, not the TPP's"
    return KeyIdVerdict(fault, () if fault else tuple(notes))


def _compare_serial(text: str, serial: int, *, lenient: bool, notes: list[str]) -> str | None:
    if not _HEXADECIMAL.fullmatch(text):
        plain = text.replace(":", "").replace(" ", "").removeprefix("0x").removeprefix("0X")
        if _HEXADECIMAL.fullmatch(plain) and int(plain, 16) == serial:
            return "the serial number is to be written without 0x, colons and blanks"
        return "the serial number is not hexadecimal"
    if int(text, 16) != serial:
        if text.isdigit() and int(text) == serial:
            return "the serial number is decimal, it must be hexadecimal"
        return "the serial number is not the certificate's"
    if text != text.upper():
        if not lenient:
            return "the serial number is in lower case, it must be upper-case hexadecimal"
        notes.append("keyId: the serial number is in lower case")
    return None


def _compare_issuer(text: str, certificate: x509.Certificate, *, lenient: bool, notes: list[str]) -> str | None:
    issuer = certificate_name(certificate.issuer)
    accepted = _accepted(text, issuer)
    if accepted is not None:
        notes += accepted
        return None
    if _accepted(text, certificate_name(certificate.subject)) is not None:
        return "CA= names its subject, not its issuer"
    if "%" in text:
        accepted = _accepted(text.replace("%20", " "), issuer)
        if accepted is not None:
            notes += ["keyId: blanks of the issuer are written as %20", *accepted]
            return None if lenient else "blanks of the issuer are written as %20"
        if _accepted(unquote(text), issuer) is not None:
            return "the issuer is percent-encoded"
    return _explain(text, issuer)


def _is_intermediate(certificate: x509.Certificate) -> bool:
    """Whether this is a CA certificate that another CA issued.

    Tools often mark a TPP's self-signed certificate as a CA too; that one is not meant.
    """
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return constraints.value.ca and certificate.subject != certificate.issuer


def _accepted(text: str, name: Sequence[Rdn]) -> list[str] | None:
    """Notes on what is not RFC 2253 in `text`, if it is this name in an accepted order; else None."""
    with suppress(NameUnreadable):
        sent = read_name(text)
        bags, own = _bags(sent.rdns), _bags(name)
        if bags in (own, own[::-1]):
            order = "keyId: the issuer is in the certificate's order, RFC 2253 reverses it"
            oddities = [f"keyId: {oddity} in the issuer" for oddity in sent.oddities]
            return oddities if bags == own[::-1] else [*oddities, order]
    with suppress(NameUnreadable):
        rdns = read_name(text, lists=True).rdns
        flat = [attribute for rdn in rdns for attribute in rdn]
        joined = len(flat) > len(rdns)  # by `+`, which these tools never write
        if flat and not joined and flat in (_tool_order(name), _tool_order(name[::-1])):
            return ["keyId: the issuer is in the order CN, O, OU, L, ST, C, not in that of RFC 2253"]
    return None


def _bags(rdns: Sequence[Rdn]) -> list[list[Attribute]]:
    return [sorted(rdn) for rdn in rdns]


def _explain(text: str, issuer: Sequence[Rdn]) -> str:
    """How the issuer that was sent differs from the certificate's, as a phrase."""
    if "\\\\" in text and _accepted(text.replace("\\\\", "\\"), issuer) is not None:
        return "the backslashes of the issuer are doubled"
    try:
        rdns = read_name(text).rdns
    except NameUnreadable as error:
        return f"the issuer cannot be read as an RFC 2253 name: {error}"
    sent = [attribute for rdn in rdns for attribute in rdn]
    own = [attribute for rdn in issuer for attribute in rdn]
    if sorted(sent) == sorted(own):
        if sorted(_bags(rdns)) != sorted(_bags(issuer)):
            return "the parts of the issuer are joined by + where the certificate has a comma, or the other way round"
        return "the parts of the issuer are in another order"
    if sorted((kind, value.casefold()) for kind, value in sent) == sorted(
        (kind, value.casefold()) for kind, value in own
    ):
        return "the issuer differs in upper and lower case"
    if set(sent) < set(own):
        return "parts of the issuer are missing"
    return "the issuer is not the certificate's"
