"""Where the bank itself fails: what its client is told, and what its log says."""

from __future__ import annotations

import logging

from emulator.api.messages import Request
from emulator.api.router import split_target
from emulator.bank.errors import BankError
from emulator.ca import AuthorityDamaged

logger = logging.getLogger(__name__)

_FAILED = BankError("SYSTEM_ERROR", "The bank failed; its log says why.")
_UNUSABLE = BankError(
    "SYSTEM_ERROR", "The bank cannot read or write its files at the moment; its log says why.", status=503
)
_NO_MEMORY = BankError("SYSTEM_ERROR", "The bank has not enough memory for this.", status=503)


def failed(request: Request, error: Exception) -> BankError:
    """The refusal of a request at which `error` came up, logged: 503 where files or memory fail it, else 500."""
    asked = f"{request.method} {split_target(request.target)[0]}"
    if isinstance(error, OSError):
        logger.error("%s: %s", asked, error)
        return _UNUSABLE
    if isinstance(error, MemoryError):
        logger.error("%s: not enough memory", asked)
        return _NO_MEMORY
    if isinstance(error, AuthorityDamaged):
        logger.error("%s: %s", asked, error)
        return BankError("SYSTEM_ERROR", f"A certificate or its key cannot be read: {error}.", status=503)
    logger.error("%s failed", asked, exc_info=error)
    return _FAILED
