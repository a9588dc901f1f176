"""The signature gate: verifies the signature of a request and explains why one is invalid."""

from emulator.api.signature.check import VerifiedClients, check
from emulator.api.signature.result import Fault, SignaturePolicy, SignatureRefused, Verified

__all__ = ["Fault", "SignaturePolicy", "SignatureRefused", "Verified", "VerifiedClients", "check"]
