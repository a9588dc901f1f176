"""The issuing side: sandbox CA, TPP certificates with PSD2 QCStatements, the bank's own certificates.

It depends on no other package of the emulator and knows nothing of the bank.
"""

from emulator.ca.authority import (
    ROLES,
    TPP_NAME,
    AuthorityDamaged,
    CertificateAuthority,
    TppExists,
    tpp_name,
)
from emulator.ca.certificates import FLAWS, Credentials, IssueRefused

__all__ = [
    "FLAWS",
    "ROLES",
    "TPP_NAME",
    "AuthorityDamaged",
    "CertificateAuthority",
    "Credentials",
    "IssueRefused",
    "TppExists",
    "tpp_name",
]
