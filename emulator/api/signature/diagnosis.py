"""Why a signature does not verify: the cause in a sentence, and both signing strings when they can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.api.signature.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Cause:
    """What went wrong."""

    text: str

    def sentence(self) -> str:
        """The cause as the text of a message."""
        return self.text


def find_cause(found: Evidence) -> Cause:
    """The cause of a signature that does not verify."""
    return Cause("The signature does not match the request")


def describe(found: Evidence, cause: Cause | None) -> dict[str, Any]:
    """The diagnosis for the request log."""
    return {"cause": found.faults[0].text, "signingString": found.signing_string}
