"""The signature gate: verifies the signature of a request and explains why one is invalid.

    check.py       finds the TPP of a request, and runs the rules in their order
    rules.py       a rule for each part: certificate, keyId, Digest, Date, the list of headers, the signature
    diagnosis.py   why the signature is wrong, if all parts are right: it tries the guesses of mistakes.py
    mistakes.py    a row for each mistake in the signing string, to add one to
    digest.py      what else may have been hashed in place of the body
    explain.py     requests from files, for the command `explain`, and its text

A request for a new mistake, with its verdict, belongs in `tests/unit/signature/test_diagnosis.py`; `corpus.jsonl` there
has 500 wrong requests that must go on to be explained as they are.
"""

from emulator.api.signature.check import SignatureRefused, Verified, VerifiedClients, check

__all__ = ["SignatureRefused", "Verified", "VerifiedClients", "check"]
