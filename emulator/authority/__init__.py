"""The issuing side: sandbox CA, TPP certificates with PSD2 QCStatements, the bank's own certificates.

Beside the other rooms: it knows certificates and files, nothing of the bank.
"""

from emulator.authority.authority import TPP_NAME, Authority, AuthorityDamaged, TppExists, TppNameRefused
from emulator.authority.credentials import Credentials
from emulator.authority.flaws import FLAWS, IssueRefused

__all__ = [
    "FLAWS",
    "TPP_NAME",
    "Authority",
    "AuthorityDamaged",
    "Credentials",
    "IssueRefused",
    "TppExists",
    "TppNameRefused",
]
