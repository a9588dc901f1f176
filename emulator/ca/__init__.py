"""The issuing side: sandbox CA, TPP certificates with PSD2 QCStatements, the bank's own certificates.

Beside the other rooms: it knows certificates and files, nothing of the bank.
"""

from emulator.ca.authority import TPP_NAME, AuthorityDamaged, CertificateAuthority, TppExists, TppNameRefused
from emulator.ca.credentials import Credentials
from emulator.ca.flaws import FLAWS, IssueRefused

__all__ = [
    "FLAWS",
    "TPP_NAME",
    "AuthorityDamaged",
    "CertificateAuthority",
    "Credentials",
    "IssueRefused",
    "TppExists",
    "TppNameRefused",
]
