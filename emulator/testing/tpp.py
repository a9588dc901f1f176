"""The certificates of a test's TPPs, and the CA that issues them."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from emulator.assemble import authority_for
from emulator.ca import CertificateAuthority, Credentials
from emulator.ca.files import write_private

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


def write_files(credentials: Credentials, folder: Path, keystore_password: str) -> TppFiles:
    """Write the files of a TPP into `folder`, which is created if missing; readable only by this user."""
    folder.mkdir(parents=True, exist_ok=True)
    files = TppFiles(folder / "certificate.pem", folder / "key.pem", folder / "keystore.p12")
    write_private(files.certificate, credentials.certificate_pem.encode())
    write_private(files.key, credentials.key_pem)
    write_private(files.keystore, credentials.keystore(keystore_password))
    return files
