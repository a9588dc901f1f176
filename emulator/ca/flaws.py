"""The certificates that are wrong on purpose, each a row (CONTRACT 9.7)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
VALID_FOR = timedelta(days=3 * 365)


class IssueRefused(ValueError):
    """The certificate that was asked for cannot be made; the argument is a sentence."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who signs a certificate: its name and key, and its own certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Plan:
    """A TPP certificate before it is signed; `issuer_name` None means the sandbox CA."""

    name: str
    organization: str
    organization_identifier: str
    roles: frozenset[str]
    not_before: datetime
    not_after: datetime
    serial: int
    issuer_name: x509.Name | None = None


def _expired(plan: Plan) -> Plan:
    return replace(plan, not_before=plan.not_before - VALID_FOR, not_after=plan.not_before - DAY)


def _not_yet_valid(plan: Plan) -> Plan:
    return replace(plan, not_before=plan.not_before + 30 * DAY)


def _unknown_ca(plan: Plan) -> Plan:
    return replace(plan, issuer_name=distinguished_name(country="NO", organization="Unknown", common="Unknown CA"))


def _no_roles(plan: Plan) -> Plan:
    return replace(plan, roles=frozenset())


def _leading_zero_serial(plan: Plan) -> Plan:
    """A first byte below 16: tools that print bytes write a zero in front, tools that print a number do not."""
    return replace(plan, serial=int.from_bytes(b"\x0a" + os.urandom(15), "big"))


def _special_characters(plan: Plan) -> Plan:
    """Every character that RFC 2253 escapes, letters beyond ASCII, and an attribute type without a short name."""
    issuer = distinguished_name(
        country="NO",
        organization='Ærlig, "Sikker" + Trygg; <Prøve>',
        identifier="NTRNO-000000000",
        common="#1 Øving\\CA = Test",
    )
    return replace(plan, organization=f"{plan.organization}, Søn & Døtre", issuer_name=issuer)


_CHANGES: Mapping[str, Callable[[Plan], Plan]] = {
    "expired": _expired,
    "not-yet-valid": _not_yet_valid,
    "unknown-ca": _unknown_ca,
    "no-roles": _no_roles,
    "leading-zero-serial": _leading_zero_serial,
    "special-characters": _special_characters,
}
FLAWS = tuple(_CHANGES)


def flawed(plan: Plan, flaw: str | None) -> Plan:
    """`plan` with `flaw` (a name of FLAWS) in it; raise IssueRefused for an unknown one."""
    if flaw is None:
        return plan
    if flaw not in _CHANGES:
        raise IssueRefused(f"There is no flaw {flaw!r}; there are {', '.join(FLAWS)}.")
    return _CHANGES[flaw](plan)


def distinguished_name(*, common: str, organization: str, country: str, identifier: str | None = None) -> x509.Name:
    """A name in the usual encoded order: C, O, organizationIdentifier, CN."""
    parts = [(NameOID.COUNTRY_NAME, country), (NameOID.ORGANIZATION_NAME, organization)]
    if identifier is not None:
        parts.append((NameOID.ORGANIZATION_IDENTIFIER, identifier))
    parts.append((NameOID.COMMON_NAME, common))
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
