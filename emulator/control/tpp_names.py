"""TPPs by name: what people call a TPP, and the tppId that the bank knows it by (CONTRACT 13)."""

from __future__ import annotations

from emulator.api.certificates import identity
from emulator.ca import CertificateAuthority


def tpp_id(authority: CertificateAuthority, name: str) -> str:
    """The tppId of an issued TPP; any other text is a tppId itself (a TPP brings its own certificate)."""
    credentials = authority.find(name)
    return identity(credentials.certificate).id if credentials is not None else name
