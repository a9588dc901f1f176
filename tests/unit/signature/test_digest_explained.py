"""A Digest that does not fit: the text names what the client hashed, or how it wrote the hash."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.api.signature.digest import explain_digest, other_bodies
from emulator.httpsig.signing import digest_value
from tests.cases import cases
from tests.unit.signature.making import BODY, Making

VALUE: Any = {"b": ["ø", {"a": "1.00"}], "a": None}
COMPACT = json.dumps(VALUE, ensure_ascii=False, separators=(",", ":")).encode()
SHA = hashlib.sha256(BODY)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def test_slashes_that_php_escapes_are_recognised(making: Making) -> None:
    digest = digest_value(rb'{"iban":"NO","text":"a\/b"}')
    (only,) = making.but(body=b'{"iban": "NO", "text": "a/b"}', digest=digest).faults()
    assert only.text.endswith(": it was made over the JSON written compactly and slashes escaped, as PHP does.")


def test_a_body_compressed_after_it_was_hashed_is_named(making: Making) -> None:
    (only,) = making.but(body=gzip.compress(BODY), digest=digest_value(BODY)).faults()
    assert only.text.endswith(": it was made over the body before it was compressed: send it as it is.")


def test_what_only_begins_as_gzip_is_no_body_before_it_was_compressed(making: Making) -> None:
    broken = making.but(body=b"\x1f\x8b" + BODY, digest=digest_value(BODY)).faults()
    assert [fault.path for fault in broken] == ["Digest"]
    assert "compressed" not in broken[0].text


@cases(
    "cut, cause",
    [("", "it is URL-safe base64, use the alphabet with + and /"), ("=", "it is URL-safe base64 without padding")],
)
def test_the_url_safe_alphabet_is_recognised(cut: str, cause: str) -> None:
    body = b"3"
    value = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode()
    assert "-" in value or "_" in value
    assert explain_digest("SHA-256", value.rstrip(cut), body).endswith(f": {cause}")


@cases(
    "sent, hashed, phrase",
    [
        (b"a\nb", b"a\r\nb", "the body with CRLF in place of newlines"),
        (b"a\r\nb", b"a\nb", "the body with newlines in place of CRLF"),
        (b" a\n", b"a", "the body without the blanks and newlines around it"),
        (b"a", "a".encode("utf-16-le"), "the body in UTF-16"),
        ("ø".encode(), b"\xf8", "the body in ISO-8859-1"),
        (COMPACT.decode().encode("latin-1"), COMPACT, "the body in UTF-8, while ISO-8859-1 was sent"),
        (json.dumps(COMPACT.decode()).encode(), COMPACT,
         "the text inside the JSON string that was sent"),
        (json.dumps(VALUE, indent=2).encode(), COMPACT, "the JSON written compactly"),
    ],
)  # fmt: skip
def test_other_bytes_are_recognised(sent: bytes, hashed: bytes, phrase: str) -> None:
    value = digest_value(hashed).removeprefix("SHA-256=")
    assert explain_digest("SHA-256", value, sent).endswith(f": it was made over {phrase}")


@cases(
    "sent, message_part",
    [
        (b"[object Object]", ', and the body is not JSON but "[object Object]"'),
        (b"instructedAmount=amount&creditorName=x", ', and the body is not JSON but "instructedAmount=amo"'),
        ("beløp=1".encode(), ', and the body is not JSON but "beløp=1"'),
        (b"\xef\xbb\xbf{}", ", and the body is not JSON but '\\ufeff{}'"),
        (COMPACT.decode().encode("latin-1"), ""),
        (b"", ""),
    ],
)
def test_what_was_sent_in_the_place_of_json_is_shown(sent: bytes, message_part: str) -> None:
    assert explain_digest("SHA-256", b64(bytes(32)), sent).endswith(f": it is that of other bytes{message_part}")


BODIES = st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))


@given(BODIES, st.text(max_size=50))
def test_no_body_breaks_the_explanation(body: bytes, value: str) -> None:
    assert explain_digest("SHA-256", value, body).startswith("The Digest does not match")


def test_deep_and_large_bodies_are_not_written_anew() -> None:
    for body in (b"[" * 50_000, b"[" * 2_000 + b"]" * 2_000, b"x" * 1_000_000):
        assert explain_digest("SHA-256", b64(bytes(32)), body).endswith("it is that of other bytes")


@cases("depth", [1, 30, 100, 900])
def test_what_is_written_of_a_nested_body_does_not_grow_with_its_depth(depth: int) -> None:
    body = b"[" * depth + b"1," * 5_000 + b"1" + b"]" * depth
    assert sum(len(other) for _, other in other_bodies(body)) < 1_000_000


def test_of_a_large_body_the_usual_layouts_are_tried() -> None:
    value = {"payments": [VALUE] * 1_000}
    sent = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    hashed = digest_value(json.dumps(value, ensure_ascii=False).encode()).removeprefix("SHA-256=")
    assert explain_digest("SHA-256", hashed, sent).endswith("the JSON with blanks after commas and colons")
