"""The signature gate: verifies the signature of a request and explains why one is invalid.

    check.py       finds the TPP of a request, and runs the rules in their order
    rules.py       a rule for each part: certificate, keyId, Digest, Date, the list of headers, the signature
    diagnosis.py   why the signature is wrong, if all parts are right: it tries the guesses of mistakes.py
    mistakes.py    a row for each mistake in the signing string, to add one to
    digest.py      what else may have been hashed in place of the body
    explain.py     requests from files, for the command `explain`, and its text

`tests/unit/signature/corpus.jsonl` has a broken request for each mistake, with its verdict.
"""

from emulator.api.signature.check import SignatureRefused, Verified, VerifiedClients, check
from emulator.api.signature.rules import Fault, SignaturePolicy

__all__ = ["Fault", "SignaturePolicy", "SignatureRefused", "Verified", "VerifiedClients", "check"]
