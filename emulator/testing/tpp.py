"""A TPP of a test: its certificate, and a client that signs."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.api.certificates import read_certificate
from emulator.assemble import authority_for
from emulator.ca import CertificateAuthority, Credentials
from emulator.ca.files import write_private
from emulator.client import AsyncTppClient, TppClient

if TYPE_CHECKING:
    from emulator.testing.running import RunningBank

KEYSTORE_PASSWORD = "bank-emulator"  # the default of `bank-emulator tpp new`


@cache
def authority() -> CertificateAuthority:
    """The sandbox CA of this test process, in memory; shared by all banks, as generating keys is slow."""
    return authority_for(None)


@cache
def issued(name: str, roles: tuple[str, ...], flaw: str | None, hour: datetime) -> Credentials:
    """A TPP of this test process; it replaces one of the same name with other roles or another flaw.

    `hour` of real time is part of the cache key, as the validity of the certificate depends on it.
    """
    del hour
    return authority().issue(name, roles=roles, flaw=flaw, replace=True)


class TppFiles(NamedTuple):
    """The files of a TPP; `keystore` is PKCS #12 with key, certificate and CA."""

    certificate: Path
    key: Path
    keystore: Path


class TestTpp(TppClient):
    """A TPP: its certificate and key, and a signed client whose PSU can approve without a browser."""

    __test__ = False  # pytest collects classes called Test...

    def __init__(self, bank: RunningBank, credentials: Credentials) -> None:
        super().__init__(bank.url, credentials)
        self.bank = bank
        self._credentials = credentials
        self.tpp_id = read_certificate(credentials.certificate_header).tpp.id

    @property
    def certificate_pem(self) -> str:
        """The certificate in PEM, for a signer of your own."""
        return self._credentials.certificate_pem

    @property
    def key_pem(self) -> str:
        """The private key in PEM (PKCS #8, no password)."""
        return self._credentials.key_pem.decode()

    def files(self, folder: str | Path, *, keystore_password: str = KEYSTORE_PASSWORD) -> TppFiles:
        """Write certificate.pem, key.pem and keystore.p12 into `folder`, readable only by this user."""
        directory = Path(folder)
        directory.mkdir(parents=True, exist_ok=True)
        files = TppFiles(directory / "certificate.pem", directory / "key.pem", directory / "keystore.p12")
        write_private(files.certificate, self.certificate_pem.encode())
        write_private(files.key, self._credentials.key_pem)
        write_private(files.keystore, self._credentials.keystore(keystore_password))
        return files

    def asynchronous(self) -> AsyncTppClient:
        """The same TPP and PSU as an asynchronous client; close it when done (`async with`)."""
        client = AsyncTppClient(self.bank.url, self.identity)
        client.psu_id, client.session_id = self.psu_id, self.session_id
        client.psu_corporate_id, client.psu_context = self.psu_corporate_id, self.psu_context
        client.redirect_uri, client.notification_uri = self.redirect_uri, self.notification_uri
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> dict[str, str]:
        """Approve as the PSU; stores psu-id and session of the redirect in the client and returns its query."""
        return self.remember(self.bank.approve(link_or_id, **choices))

    def log_in(self, national_id: str | None = None, **choices: Any) -> TestTpp:
        """Create a session and a consent without an SCA, for a person (default: the first private customer)."""
        session = self.bank.session(self.tpp_id, national_id, **choices)
        self.psu_id, self.session_id = session["psuId"], session["tppSessionId"]
        self.psu_corporate_id = session.get("psuCorporateId")
        self.psu_context = "CORPORATE" if self.psu_corporate_id else "PRIVATE"
        return self
