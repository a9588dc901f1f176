"""Where status notifications may go: the TPP names the address, so every part of it may be an attack (CONTRACT 18).

The bank may run inside a company's network, where addresses can be reached that the TPP cannot reach itself (SSRF). So:

- An address is https, has no user info and no fragment, and names its host in one spelling only: a DNS name, or an IP
  address in its usual form. `http://2130706433/`, `0177.0.0.1`, `127.1` and the like are malformed.
- The host lies in a domain of the TPP's certificate: its CN or a DNS name of its SAN, which covers what is below it
  too, or a wildcard, which covers one label (Berlin Group 1.3.11). That keeps honest TPPs apart. It stops no attacker:
  by default the bank takes certificates of any issuer, and a name in one's own domain may resolve to any address.
- What the name resolves to is checked, every address of it, and the connection goes to a checked address: nobody can
  answer a second question otherwise (rebinding). Addresses that are not public are refused.

`--allow-notify` names hosts to which none of this applies: http, private addresses and domains of no certificate too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

LONGEST_URI = 2048
NOTIFICATION_AGENT = "bank-emulator-notification"  # User-Agent of notifications; no bank lets itself be changed by one
_URI = re.compile(r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})+")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_PORTS = {"http": 80, "https": 443}

IpAddress = IPv4Address | IPv6Address


class Host(NamedTuple):
    """A host, and a port of it; None: any port."""

    name: str
    port: int | None = None


class MalformedAddress(ValueError):
    """An address that no notification can go to; the argument says what was expected instead."""


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
    if len(uri) > LONGEST_URI or not _URI.fullmatch(uri):
        raise MalformedAddress(
            f"an address of at most {LONGEST_URI} characters, other characters than those of RFC 3986 escaped"
        )
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
    """Host and port of an authority; the port is None where there is no colon behind the host."""
    if netloc.startswith("["):
        name, closed, rest = netloc[1:].partition("]")
        if not closed or ":" not in name or (rest and not rest.startswith(":")):
            raise MalformedAddress("an address with a well-formed host")
        return name, rest[1:] if rest else None
    name, colon, port = netloc.partition(":")
    return name, port if colon else None


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise MalformedAddress("an address with a port from 1 to 65535")
    return int(text)


def host_name(name: str) -> str:
    """A host in its one spelling: a DNS name in lower case, or an IP address; MalformedAddress.

    A name whose last label is a number, decimal, octal or hexadecimal, is an IPv4 address to some resolvers.
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
    """Whether a host lies in one of a certificate's domains.

    A domain covers itself and what is below it, a wildcard one label in its place. A name of one label covers nothing:
    a certificate for `com` would cover half the world.
    """
    return any(_covers(domain.lower(), host) for domain in domains)


def _covers(domain: str, host: str) -> bool:
    wildcard = domain.startswith("*.")
    base = domain[2:] if wildcard else domain
    if "." not in base or _is_address(host) or _is_address(base):
        return False
    if wildcard:
        return host.partition(".")[2] == base
    return host == base or host.endswith(f".{base}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def refusal(target: Target, domains: Sequence[str], allowed: Collection[Host]) -> str | None:
    """Why the bank does not notify a target, as a sentence; None where it does.

    `domains`: of the TPP's certificate. What the host resolves to is checked when a notification is sent.
    """
    if target.is_allowed(allowed):
        return None
    if target.scheme != "https":
        return f"Notifications are sent over https; http needs --allow-notify {target.host}."
    if not is_certified(target.host, domains):
        listed = ", ".join(domains[:5]) or "none"
        return f"The host {target.host[:100]} is in no domain of the certificate (CN and SAN: {listed[:200]})."
    return None


# Stated here because the library's own lists differ from one Python to the next (IANA special-purpose registries).
_NOT_PUBLIC_4 = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by a provider's customers; a cloud's metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # a cloud's service for its machines
            "169.254.0.0/16",  # link-local; the metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocols; a cloud's metadata
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast and reserved
        ),
    )
)
_PUBLIC_6 = ip_network("2000::/3")
# within it: tunnels that end at an IPv4 address, ranges for documentation, benchmarks and protocols
_NOT_PUBLIC_6 = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(address: str) -> bool:
    """Whether an IP address, as a resolver gives it, is one of the public internet.

    Private, loopback, link-local (the metadata services of clouds), shared, multicast and reserved addresses are not,
    nor are IPv6 addresses that stand for an IPv4 address (mapped, 6to4, Teredo, NAT64), whatever it is.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_4)
    if parsed.scope_id is not None or parsed not in _PUBLIC_6:
        return False
    return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_6)
