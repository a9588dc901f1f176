"""The address of a TPP lies in a domain of the certificate that it signs with (notifications.md#addresses)."""

from __future__ import annotations

from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from emulator.bank.clock import real_now
from emulator.ca import certificates
from emulator.client import Identity, TppClient
from emulator.testing import RunningBank

KEY = certificates.new_rsa_key()
SUPPORT = "ASPSP-Notification-Support"


def certificate(common_name: str, *names: str) -> x509.Certificate:
    """A certificate that a TPP has made for itself, as the bank takes them by default."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = real_now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(4711)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(KEY, hashes.SHA256())


def client(bank: RunningBank, common_name: str, *names: str) -> TppClient:
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem_text = certificate(common_name, *names).public_bytes(serialization.Encoding.PEM)
    return TppClient(bank.url, Identity.from_pem(pem_text, pem))


def test_the_host_lies_in_a_domain_of_the_certificate(bank: RunningBank) -> None:
    for names, host, support in (
        (("tpp.example",), "tpp.example", "true"),
        (("A TPP", "tpp.example", "*.other.example"), "notify.other.example", "true"),
        (("A TPP", "tpp.example"), "other.example", "false"),
        (("tpp.example", "safe.example"), "tpp.example", "true"),
    ):
        bank.settings(notifications=True)
        with client(bank, *names) as tpp:
            answer = tpp.post("/v1/consents", headers={"TPP-Notification-URI": f"https://{host}/a"})
        assert (answer.status_code, answer.headers[SUPPORT]) == (201, support), (names, host)
        if support == "false":
            assert host in answer.json()["tppMessages"][0]["text"], (names, host)


def test_a_name_in_the_certificate_that_leads_inside_gets_nothing(bank: RunningBank) -> None:
    """A TPP owns the domain of its certificate and lets it resolve to this machine."""
    receiver = bank.receiver()
    port = receiver.uri.rpartition(":")[2].partition("/")[0]
    with client(bank, "localhost.localdomain", "tpp.localhost") as tpp:
        answer = tpp.post("/v1/consents", headers={"TPP-Notification-URI": f"https://tpp.localhost:{port}/a"})
        assert answer.headers[SUPPORT] == "true"
        bank.reject(answer.json()["consentId"])
    (sent,) = bank.notifications()
    assert sent["deliveries"][0]["error"].startswith("not sent: ")
    assert receiver.received == []
