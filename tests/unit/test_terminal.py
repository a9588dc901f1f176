"""What clients send cannot control a terminal, and what it cannot show ends nothing."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import __main__
from emulator.cli import main
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
    stream.flush()
    assert inner.getvalue() == "\\x9bx"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_letters_that_the_code_page_lacks_are_replaced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, name, io.TextIOWrapper(written, encoding="cp1252", write_through=True))

    @click.command("say")
    def say() -> None:
        click.echo("Čáhppes 20 kr → Bjørn", err=name == "stderr")

    monkeypatch.setitem(main.COMMANDS, "say", "a module of the test")
    monkeypatch.setitem(sys.modules, "a module of the test", SimpleNamespace(COMMANDS={"say": say}))
    assert main.run(["say"]) == 0
    assert written.getvalue().decode("cp1252") == "?áhppes 20 kr ? Bjørn\n"


def test_on_windows_one_line_says_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["bank-emulator", "--help"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n"), "WSL" in printed.err) == (2, "", 1, True)
