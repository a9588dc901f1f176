"""The addresses to which status notifications may be sent (notifications.md#addresses).

The TPP chooses the address, and the bank may run inside a company's network, where it can reach addresses that the TPP
cannot (server-side request forgery). Therefore:

- An address must be https, without user info and fragment, and name its host in one spelling only: a DNS name, or an IP
  address in its usual form. `http://2130706433/`, `0177.0.0.1`, `127.1` and similar forms are malformed.
- The host must be in a domain of the TPP's certificate: its CN or a DNS name of its SAN, which includes subdomains, or
  a wildcard, which covers one label (Berlin Group 1.3.11). This separates TPPs from each other, but it does not stop an
  attacker: by default the bank accepts certificates of any issuer, and an attacker's own domain may resolve to any
  address.
- Every address that the name resolves to is checked, and the connection is made to a checked address, so that a second
  DNS answer cannot change it (rebinding). Addresses that are not public are refused.

`--allow-notify` names hosts that are exempt from all of this: http, private addresses and other domains are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from emulator.bank.formats import is_port, unusable_address

NOTIFICATION_AGENT = "bank-emulator-notification"  # User-Agent of notifications; a bank refuses writes that have it
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_PORTS = {"http": 80, "https": 443}

IpAddress = IPv4Address | IPv6Address


class Host(NamedTuple):
    """A host and a port; None: any port."""

    name: str
    port: int | None = None


class MalformedAddress(ValueError):
    """An address that no notification can be sent to; the argument says what was expected."""


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a receiver: `host` is a name in lower case, or an IP address without brackets."""

    scheme: str
    host: str
    port: int

    def is_allowed(self, allowed: Collection[Host]) -> bool:
        """Whether `--allow-notify` names the host."""
        return Host(self.host) in allowed or Host(self.host, self.port) in allowed


def target_of(uri: str) -> Target:
    """The target that an address names; MalformedAddress."""
    expected = unusable_address(uri)
    if expected is not None:
        raise MalformedAddress(expected)
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise MalformedAddress("an address with a well-formed host") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not uri[len(scheme) :].startswith("://"):
        raise MalformedAddress("an https address such as https://tpp.example/notifications")
    if "@" in parts.netloc:
        raise MalformedAddress("an address without user info")
    name, port = _split(parts.netloc)
    return Target(scheme, host_name(name), _PORTS[scheme] if port is None else _port(port))


def _split(netloc: str) -> tuple[str, str | None]:
    """Host and port of an authority; the port is None if no colon follows the host."""
    if netloc.startswith("["):
        name, bracket, rest = netloc[1:].partition("]")
        if not bracket or ":" not in name or (rest and not rest.startswith(":")):
            raise MalformedAddress("an address with a well-formed host")
        return name, rest[1:] if rest else None
    name, colon, port = netloc.partition(":")
    return name, port if colon else None


def _port(text: str) -> int:
    if not is_port(text):
        raise MalformedAddress("an address with a port from 1 to 65535")
    return int(text)


def host_name(name: str) -> str:
    """A host in its normal form: a DNS name in lower case, or an IP address; MalformedAddress.

    A name whose last label is a number (decimal, octal or hexadecimal) must be an IPv4 address in the usual form,
    because some resolvers read other forms of it.
    """
    name = name.lower()
    if ":" in name:
        try:
            address: IpAddress = IPv6Address(name)
        except ValueError:
            raise MalformedAddress("an address with a well-formed host") from None
        if "%" in name:
            raise MalformedAddress("an address without a zone")
        return str(address)
    last = name.rpartition(".")[2]
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last):
        try:
            return str(IPv4Address(name))
        except ValueError:
            raise MalformedAddress("an IPv4 address as four decimal numbers, such as 192.0.2.1") from None
    if not _NAME.fullmatch(name):
        raise MalformedAddress("an address whose host is a DNS name or an IP address")
    return name


def allowed_host(text: str) -> Host:
    """A value of `--allow-notify`, HOST or HOST:PORT (IPv6 with a port in brackets); MalformedAddress."""
    try:
        return Host(str(IPv6Address(text)))
    except ValueError:
        name, port = _split(text)
    return Host(host_name(name), None if port is None else _port(port))


def is_certified(host: str, domains: Iterable[str]) -> bool:
    """Whether a host is in one of a certificate's domains.

    A domain covers itself and its subdomains, a wildcard one label. A name of one label, such as `com`, covers nothing.
    """
    return any(_covers(domain.lower(), host) for domain in domains)


def _covers(domain: str, host: str) -> bool:
    wildcard = domain.startswith("*.")
    base = domain[2:] if wildcard else domain
    if "." not in base or _address(host) is not None or _address(base) is not None:
        return False
    if wildcard:
        return host.partition(".")[2] == base
    return host == base or host.endswith(f".{base}")


def _address(text: str) -> IpAddress | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def refusal(target: Target, domains: Sequence[str], allowed: Collection[Host]) -> str | None:
    """Why the bank refuses to notify a target, or None.

    `domains`: of the TPP's certificate. The addresses of the host are checked when a notification is sent.
    """
    if target.is_allowed(allowed):
        return None
    if target.scheme != "https":
        return f"Notifications are sent over https; http needs --allow-notify {target.host}."
    if not is_certified(target.host, domains):
        listed = ", ".join(domains[:5]) or "none"
        return f"The host {target.host[:100]} is not in a domain of the certificate (CN and SAN: {listed[:200]})."
    return None


# What `is_global` allows in some version of Python: an internal service of a cloud provider, IETF protocols (metadata
# services of some clouds), relays to IPv6, multicast; then tunnels to IPv4 addresses, protocols and documentation.
_NOT_PUBLIC_4 = tuple(map(ip_network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3")))
_PUBLIC_6 = ip_network("2000::/3")
_NOT_PUBLIC_6 = tuple(map(ip_network, ("2001::/23", "2002::/16", "3fff::/20")))


def is_public(address: str) -> bool:
    """Whether an IP address from a resolver is on the public internet.

    Private, loopback, link-local (metadata services of clouds), shared, multicast and reserved addresses are not, nor
    are IPv6 addresses that embed any IPv4 address (mapped, 6to4, Teredo, NAT64).
    """
    parsed = _address(address)
    if isinstance(parsed, IPv4Address):
        return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_4)
    if parsed is None or parsed.scope_id is not None or parsed not in _PUBLIC_6:
        return False
    return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_6)
