"""The keyId `SN=<serial>,CA=<issuer>`: building it from a certificate and comparing one that was sent (SPEC 5.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from cryptography import x509

from emulator.httpsig.names import Attribute, NameUnreadable, Rdn, ReadName, certificate_name, read_name, tool_order

_HEXADECIMAL = re.compile(r"-?[0-9A-Fa-f]{1,128}")  # some libraries draw serial numbers below zero


@dataclass(frozen=True, slots=True)
class KeyIdVerdict:
    """`fault` is None when the keyId names the certificate, else the reason; `notes` say what is not RFC 2253."""

    fault: str | None
    notes: tuple[str, ...] = ()


def key_id_for(certificate: x509.Certificate) -> str:
    """The keyId that SPEC 5.2 asks for: serial in upper-case hexadecimal, issuer per RFC 2253."""
    return f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"


def compare_key_id(key_id: str, certificate: x509.Certificate, *, lenient: bool = False) -> KeyIdVerdict:
    """Whether `key_id` names `certificate` (CONTRACT 3.1).

    `lenient` also takes a serial in lower case, blanks after the comma, and `%20` for a blank.
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
    elif _is_intermediate(certificate) and _names(stripped[3:], certificate.subject):
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
    fault = _issuer_fault(text, issuer, notes)
    if fault is not None and _names(text, certificate.subject):
        return "CA= names its subject, not its issuer"
    if fault is None or "%" not in text:
        return fault
    if not _names(text.replace("%20", " "), certificate.issuer):
        return "the issuer is percent-encoded" if _names(unquote(text), certificate.issuer) else fault
    if not lenient:
        return "blanks of the issuer are written as %20"
    notes.append("keyId: blanks of the issuer are written as %20")
    return _issuer_fault(text.replace("%20", " "), issuer, notes)


def _names(text: str, name: x509.Name) -> bool:
    """Whether `text` is this name, in a form in which an issuer may stand."""
    return _issuer_fault(text, certificate_name(name), []) is None


def _is_intermediate(certificate: x509.Certificate) -> bool:
    """Whether it is a CA's, which another CA issued; TPPs that issue their own are often called a CA by their tool."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return constraints.value.ca and certificate.subject != certificate.issuer


def _issuer_fault(text: str, issuer: Sequence[Rdn], notes: list[str]) -> str | None:
    """None when `text` is the issuer in one of the orders of CONTRACT 3.1, else what is wrong with it."""
    try:
        sent = read_name(text)
    except NameUnreadable as error:
        unreadable: str | None = str(error)
    else:
        unreadable = None
        order = _whole_order(sent, issuer)
        if order is not None:
            notes.extend(f"keyId: {oddity} in the issuer" for oddity in sent.oddities)
            if order:
                notes.append(order)
            return None
    if _is_tool_order(text, issuer):
        notes.append("keyId: the issuer is in the order CN, O, OU, L, ST, C, not in that of RFC 2253")
        return None
    return _explain(text, unreadable, issuer)


def _bags(rdns: Sequence[Rdn]) -> list[list[Attribute]]:
    return [sorted(rdn) for rdn in rdns]


def _whole_order(sent: ReadName, issuer: Sequence[Rdn]) -> str | None:
    """Empty for the RFC 2253 order, a note for the reverse, None for neither."""
    bags, own = _bags(sent.rdns), _bags(issuer)
    if bags == own[::-1]:
        return ""
    if bags == own:
        return "keyId: the issuer is in the certificate's order, RFC 2253 reverses it"
    return None


def _is_tool_order(text: str, issuer: Sequence[Rdn]) -> bool:
    try:
        sent = read_name(text, lists=True).rdns
    except NameUnreadable:
        return False
    flat = [attribute for rdn in sent for attribute in rdn]
    joined = len(flat) > len(sent)  # by `+`, which no such tool writes
    return bool(flat) and not joined and flat in (tool_order(issuer), tool_order(issuer[::-1]))


def _explain(text: str, unreadable: str | None, issuer: Sequence[Rdn]) -> str:
    """What distinguishes the issuer that was sent from the certificate's, in a phrase."""
    if unreadable is not None:
        if "\\\\" in text and _issuer_fault(text.replace("\\\\", "\\"), issuer, []) is None:
            return "the backslashes of the issuer are doubled"
        return f"the issuer cannot be read as an RFC 2253 name: {unreadable}"
    rdns = read_name(text).rdns
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
    if "\\\\" in text and _issuer_fault(text.replace("\\\\", "\\"), issuer, []) is None:
        return "the backslashes of the issuer are doubled"
    if set(sent) < set(own):
        return "parts of the issuer are missing"
    return "the issuer is not the certificate's"
