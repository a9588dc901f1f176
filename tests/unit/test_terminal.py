"""What clients send cannot control a terminal."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from emulator.terminal import PrintableStream, json_text, one_line, printable

CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066]


def controls(text: str, *allowed: str) -> list[str]:
    return [character for character in text if ord(character) in CONTROLS and character not in allowed]


@given(st.text() | st.text(alphabet=[chr(number) for number in CONTROLS]))
def test_no_control_character_is_left(text: str) -> None:
    assert controls(one_line(text)) == []
    assert controls(printable(text), "\t", "\n", "\r") == []
    encoded = json_text({text: [text]}, indent=2)
    assert controls(encoded, "\n") == []
    assert json.loads(encoded) == {text: [text]}


def test_escapes_can_be_read() -> None:
    assert one_line("a\x9b31mb\x1b]0;t\x07\n") == "a\\x9b31mb\\x1b]0;t\\x07\\n"
    assert printable("Æ ø\t1\r\n\x85") == "Æ ø\t1\r\n\\x85"
    assert json_text("\x9b") == '"\\u009b"'


def test_a_stream_escapes_what_is_written_to_it() -> None:
    inner = io.StringIO()
    stream = PrintableStream(inner)
    assert stream.write("\x9bx") == 2
    stream.writelines(["a\n", "\x1bb\n"])
    stream.flush()
    assert inner.getvalue() == "\\x9bxa\n\\x1bb\n"
