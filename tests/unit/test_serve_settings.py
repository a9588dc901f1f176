"""Flags and variables of `serve` (flags.md)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.assemble import assemble
from emulator.failure import Failed
from emulator.settings import FLAGS, ServeSettings, read, schema_of
from tests.cases import cases


def test_without_flags_and_variables_the_documented_defaults_hold() -> None:
    assert read({}, {}) == ServeSettings(
        host=("127.0.0.1",),
        port=8080,
        tls_port=None,
        state=Path(".bank-emulator"),
        ephemeral=False,
        fixtures=None,
        scenario=(),
        profile="documented",
        links="relative",
        weather="calm",
        ids="uuid",
        seed=None,
        control_token=None,
        public_url=None,
        durability="process",
        idle_hours=24,
        allow_host=(),
        frame_ancestors=(),
        log_format="text",
    )


def test_a_new_bank_has_the_known_state_unless_fixtures_are_named() -> None:
    assert (read({}, {}).fixture, read({"fixtures": "empty"}, {}).fixture) == ("known-state", "empty")


def test_the_flags_are_those_of_the_manual_and_each_has_its_variable() -> None:
    names = (
        "host port tls-port state ephemeral store store-schema store-connections advertise workers data"
        " fixtures scenario profile links weather ids seed control-token metrics-token public-url durability idle-hours"
        " allow-host frame-ancestors allow-notify log-format ready-file print-env"
    )
    assert [flag.name for flag in FLAGS] == names.split()
    assert [flag.variable for flag in FLAGS] == [
        f"BANK_EMULATOR_{name.replace('-', '_').upper()}" for name in names.split()
    ]
    assert {flag.member for flag in FLAGS} == set(ServeSettings.__slots__)


VALUES = [
    ("host", "0.0.0.0", ("0.0.0.0",)),
    ("host", "[::1]", ("::1",)),
    ("port", "0", 0),
    ("tls_port", "8443", 8443),
    ("state", "somewhere/else", Path("somewhere/else")),
    ("ephemeral", "true", True),
    ("ephemeral", "0", False),
    ("fixtures", "empty", "empty"),
    ("profile", "lenient", "lenient"),
    ("links", "absolute", "absolute"),
    ("ids", "opaque", "opaque"),
    ("seed", "-7", -7),
    ("control_token", "s3cret", "s3cret"),
    ("public_url", "https://bank.test:8443/sandbox/", "https://bank.test:8443/sandbox"),
    ("durability", "power", "power"),
    ("idle_hours", "0", 0),
    ("log_format", "json", "json"),
]


@cases("member, text, value", VALUES)
def test_a_flag_and_its_variable_say_the_same(member: str, text: str, value: Any) -> None:
    assert getattr(read({member: text}, {}), member) == value
    assert getattr(read({}, {f"BANK_EMULATOR_{member.upper()}": text}), member) == value


def test_the_flag_beats_the_variable_even_a_wrong_one() -> None:
    assert read({"port": "1"}, {"BANK_EMULATOR_PORT": "2"}).port == 1
    assert read({"port": "1"}, {"BANK_EMULATOR_PORT": "wrong"}).port == 1


def test_repeated_flags_add_up_and_their_variables_are_split() -> None:
    assert read({"scenario": ("a", "b,c")}, {}).scenario == ("a", "b,c")
    assert read({}, {"BANK_EMULATOR_SCENARIO": "a, b\nc.yaml,"}).scenario == ("a", "b", "c.yaml")
    assert read({}, {"BANK_EMULATOR_ALLOW_HOST": "Bank.Test,[::2]"}).allow_host == ("bank.test", "::2")


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read({}, {"BANK_EMULATOR_TLS_PORT": "", "BANK_EMULATOR_SCENARIO": ""}) == ServeSettings()
    assert read({}, {"BANK_EMULATOR_HOST": ","}) == ServeSettings()


@cases(
    "member, text",
    [
        *(("port", text) for text in ("", "x", "-1", "65536", "1.0", "1_0", " 1", "٣", "0x50", "9" * 5000)),
        *(("seed", text) for text in ("", "x", "1.5", "1_0", "٣", "9" * 19)),
        *(("ephemeral", text) for text in ("maybe", "2")),
        *(("idle_hours", text) for text in ("-1", "1.5", "1h", "9" * 7)),
        *(("profile", text) for text in ("Lenient", "x")),
        *(
            ("public_url", text)
            for text in (
                "http://bank.test\n",
                "http://bank\t.test",
                "bank.test",
                "ftp://bank.test",
                "http://",
                "http://a:x",
                "http://a b",
            )
        ),
        *(("public_url", text) for text in ("http://u@bank.test", "http://bank.test/?q", "http://bank.test/#f")),
        *(("allow_host", text) for text in ("bank.test:80", "http://bank.test", "a/b", "-a", "a b")),
        *(("frame_ancestors", text) for text in ("shop", "ftp://a", "http://a/b", "http://a; img-src *", "http://a b")),
        *(("control_token", text) for text in ("a b", "å", "a\n", "x" * 513)),
        ("host", "[]"),
        ("state", ""),
        ("fixtures", "\0"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_its_source(member: str, text: str) -> None:
    given = (text,) if member in ("allow_host", "frame_ancestors") else text
    with pytest.raises(Failed, match=f"^--{member.replace('_', '-')} takes [^\n]+$"):
        read({member: given}, {})
    if text and member not in ("allow_host", "fixtures"):
        with pytest.raises(Failed, match=f"^BANK_EMULATOR_{member.upper()} [^\n]+$"):
            read({}, {f"BANK_EMULATOR_{member.upper()}": text})


@given(st.sampled_from(FLAGS), st.text())
def test_any_text_is_read_or_refused(flag: Any, text: str) -> None:
    try:
        read({flag.member: text}, {})
    except Failed as error:
        message = str(error)
    else:
        return
    assert message.startswith(f"--{flag.name} ")


def test_settings_of_an_earlier_run_go_before_the_flags_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first = assemble(ServeSettings(state=tmp_path))
    first.default.bank.change_settings({"profile": "lenient", "date_skew": 60})
    first.close()
    again = assemble(ServeSettings(state=tmp_path, profile="documented"))
    assert again.default.bank.settings.profile == "lenient"
    again.close()
    notes = [record.getMessage() for record in caplog.records if "settings" in record.getMessage()]
    assert notes == ["settings of an earlier run, until the next reset: profile lenient, date_skew 60"]


@cases(
    "options, schema",
    [
        ("", "bank_emulator"),
        ("?sslmode=require", "bank_emulator"),
        ("?options=-csearch_path%3Delsewhere", "elsewhere"),
        ("?sslmode=require&options=-c%20search_path=elsewhere,public%20-cwork_mem%3D8MB", "elsewhere"),
        ("?options=-csearch_path%3D%22elsewhere%22", "elsewhere"),
    ],
)
def test_the_schema_of_a_store_may_be_in_its_url(options: str, schema: str) -> None:
    url = f"postgresql://bank@host/sandbox{options}"
    assert schema_of(url, "bank_emulator") == schema
    assert schema_of(url, "named") == "named"


@cases(
    "rest, text",
    [
        ("host/sandbox?options=-csearch_path%3D%22Other one%22", "use --store-schema"),
        ("ss@host/sandbox", "has an @ in user or password: write it as %40"),
    ],
)
def test_a_url_of_a_store_that_says_something_else_than_meant_is_refused(rest: str, text: str) -> None:
    with pytest.raises(Failed, match=text):
        read({"store": f"postgresql://bank:p@{rest}"}, {})


@cases("flag, value", [("store-schema", "shop"), ("store-connections", "4"), ("advertise", "10.0.0.7:9000")])
def test_what_is_about_a_store_is_refused_without_one_as_a_flag_and_no_matter_as_a_variable(
    flag: str, value: str
) -> None:
    member = flag.replace("-", "_")
    with pytest.raises(Failed, match=f"--{flag} requires --store"):
        read({member: value}, {})
    both = read({member: value}, {"BANK_EMULATOR_STORE": "postgresql://db/bank"})
    assert str(getattr(both, member)) == value
    assert read({}, {f"BANK_EMULATOR_{member.upper()}": value}).store is None
