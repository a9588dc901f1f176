"""What a client is told where the bank itself fails (errors.md#codes-for-errors-of-the-bank)."""

from __future__ import annotations

from emulator.api.messages import Request
from emulator.api.render import failed
from tests.cases import cases


@cases(
    "error, text",
    [(MemoryError(), "not enough memory"), (OSError(28, "No space left on device"), "read or write its files")],
)
def test_what_fails_the_bank_for_a_while_is_told(error: Exception, text: str) -> None:
    refusal = failed(Request("POST", "/_emulator/generate", [], b"", "http://127.0.0.1"), error)
    assert (refusal.status, refusal.messages[0].code) == (503, "SYSTEM_ERROR")
    assert text in refusal.messages[0].text
