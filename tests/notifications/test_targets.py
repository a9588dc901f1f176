"""Where notifications may go: every form of an address, every kind of IP address, the certificate's domains."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.bank.notification_targets import (
    Host,
    MalformedAddress,
    Target,
    allowed_host,
    is_certified,
    is_public,
    refusal,
    target_of,
)


def test_an_address_names_one_target() -> None:
    for uri, target in (
        ("https://tpp.example", Target("https", "tpp.example", 443)),
        ("HTTPS://TPP.Example:8443/a?b=c", Target("https", "tpp.example", 8443)),
        ("http://localhost:9000/x", Target("http", "localhost", 9000)),
        ("https://192.0.2.1/", Target("https", "192.0.2.1", 443)),
        ("https://[2001:DB8:0::1]:9/", Target("https", "2001:db8::1", 9)),
        ("https://[::ffff:7f00:1]/", Target("https", str(ipaddress.ip_address("::ffff:7f00:1")), 443)),
        ("https://_receiver.svc-1.tpp.example/", Target("https", "_receiver.svc-1.tpp.example", 443)),
    ):
        assert target_of(uri) == target, uri


def is_malformed(uri: str) -> bool:
    try:
        target_of(uri)
    except MalformedAddress:
        return True
    return False


def test_a_host_in_another_spelling_is_malformed() -> None:
    hosts = (
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0X7F.1",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "256.1.1.1",
        "1.2.3.4.5",
        "tpp.example.0x10",
        "[::1",
        "::1",
        "[127.0.0.1]",
        "[::1]x",
        "[::ffff:0177.0.0.1]",
        "[fe80::1%25lo]",
        "[v1.fe80]",
        "user@tpp.example",
        "user:word@tpp.example",
        "tpp.example@127.0.0.1",
        "@tpp.example",
        "-tpp.example",
        "tpp-.example",
        "tpp..example",
        ".tpp.example",
        "tpp.example.",
        "127.0.0.1%2f.tpp.example",
        "tpp%2eexample",
        "tpp.example\\@127.0.0.1",
        "tpp.example\t",
        "tpp.example\u3002com",
        "\u2460\u2461\u2466.0.0.1",
        "tpp.example:",
        "tpp.example:08",
        "tpp.example:65536",
        "tpp.example:80:80",
        "a" * 64 + ".example",
        ".".join(["a" * 60] * 5),
        "",
        ":443",
    )
    assert [host for host in hosts if not is_malformed(f"https://{host}/")] == []


def test_only_web_addresses_of_plain_characters_are_taken() -> None:
    others = (
        "//tpp.example/",
        "tpp.example/",
        "https:/tpp.example",
        "https:tpp.example",
        "file:///etc/passwd",
        "gopher://tpp.example/",
        "javascript://tpp.example/%0aalert(1)",
        "https://tpp.example/#x",
        " https://tpp.example/",
        "https://tpp.example/ ",
        "https://tpp.example/\r\nHost:x",
        "https://tpp.example/%zz",
        "ws://tpp.example/",
        "https+unix://tpp.example/",
    )
    assert [uri for uri in others if not is_malformed(uri)] == []


NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "localhost",
    "2130706433",
    "127.1",
    "8.8.8.8/32",
]


def test_no_address_that_leads_inside_is_public_and_those_of_the_internet_are() -> None:
    public = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:400f::1"]
    assert [address for address in (*NOT_PUBLIC, *public) if is_public(address)] == public


@given(st.ip_addresses())
def test_what_is_public_is_so_in_the_library_too(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not (address.is_private)
        assert not (address.is_loopback)
        assert not (address.is_link_local)
        assert not (address.is_multicast)


@given(st.ip_addresses(v=4))
def test_no_ipv6_address_that_stands_for_an_ipv4_address_is_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for mapped in (number, 0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert not is_public(str(ipaddress.IPv6Address(mapped)))


@given(st.text(alphabet="0123456789abcdefxX.:[]%@/\\-_ \t", max_size=40))
def test_a_host_that_is_taken_means_the_same_to_every_resolver(text: str) -> None:
    try:
        host = target_of(f"https://{text}/").host
    except MalformedAddress:
        return
    try:
        canonical = str(ipaddress.ip_address(host))
    except ValueError:
        with pytest.raises(OSError):
            socket.inet_aton(host)  # else it would be an address in another spelling
    else:
        assert host == canonical


def test_a_host_lies_in_a_domain_of_the_certificate() -> None:
    for host, domains, expected in (
        ("tpp.example", ["tpp.example"], True),
        ("www.tpp.example", ["tpp.example"], True),
        ("a.b.tpp.example", ["TPP.example"], True),
        ("eviltpp.example", ["tpp.example"], False),
        ("tpp.example.evil.example", ["tpp.example"], False),
        ("www.tpp.example", ["*.tpp.example"], True),
        ("tpp.example", ["*.tpp.example"], False),
        ("a.b.tpp.example", ["*.tpp.example"], False),
        ("tpp.example", ["example"], False),
        ("tpp.example", ["*.example"], False),
        ("tpp.example", ["*"], False),
        ("tpp.example", ["*.*.example", "w*.example", ""], False),
        ("tpp.example", ["My TPP AS", "tpp.example"], True),
        ("localhost", ["localhost"], False),
        ("127.0.0.1", ["127.0.0.1", "0.0.1", "*.0.0.1"], False),
        ("::1", ["::1"], False),
        ("tpp.example", [], False),
    ):
        assert is_certified(host, domains) is expected, (host, domains)


def test_http_and_other_domains_need_permission() -> None:
    inside = target_of("https://www.tpp.example/")
    assert refusal(inside, ["tpp.example"], ()) is None
    assert "--allow-notify www.tpp.example" in str(refusal(target_of("http://www.tpp.example/"), ["tpp.example"], ()))
    assert "other.example" in str(refusal(target_of("https://other.example/"), ["tpp.example"], ()))
    assert refusal(target_of("http://other.example/"), [], [Host("other.example")]) is None


def test_allow_notify_takes_a_host_and_perhaps_a_port() -> None:
    for text, host in (
        ("Receiver", Host("receiver")),
        ("127.0.0.1:9000", Host("127.0.0.1", 9000)),
        ("::1", Host("::1")),
        ("[::1]:9000", Host("::1", 9000)),
        ("[::1]", Host("::1")),
    ):
        assert allowed_host(text) == host, text


def test_a_port_that_is_named_is_the_only_one_allowed() -> None:
    allowed = [Host("127.0.0.1", 9000)]
    assert target_of("http://127.0.0.1:9000/").is_allowed(allowed)
    assert not target_of("http://127.0.0.1:9001/").is_allowed(allowed)
    assert not target_of("http://127.0.0.1/").is_allowed(allowed)


@pytest.mark.parametrize("text", ["http://x", "a b", "x:0", "10.0.0.0/8"])
def test_allow_notify_takes_nothing_else(text: str) -> None:
    with pytest.raises(MalformedAddress):
        allowed_host(text)
