"""For a signature that does not fit, the bank names the mistake that would have matched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from emulator.api.signature import diagnosis
from emulator.api.signature.check import collect, inspect
from emulator.api.signature.mistakes import groups
from emulator.api.signature.rules import Terms
from emulator.ca import Credentials
from emulator.httpsig.signing import CANDIDATES, signing_string
from tests.cases import cases
from tests.unit.effort import calls
from tests.unit.signature.making import NOW, TARGET, Lines, Making

PATH = TARGET.partition("?")[0]
OVER = "The signature was made over a signing string "


def target(text: str) -> Callable[[Lines], str]:
    return lambda lines: signing_string([(n, text if n == "(request-target)" else v) for n, v in lines])


def value(name: str, text: str) -> Callable[[Lines], str]:
    return lambda lines: signing_string([(n, text if n == name else v) for n, v in lines])


def each(change: Callable[[str, str], tuple[str, str]]) -> Callable[[Lines], str]:
    return lambda lines: signing_string([change(n, v) for n, v in lines])


def joined(colon: str, joiner: str, before: str = "", after: str = "") -> Callable[[Lines], str]:
    return lambda lines: before + joiner.join(f"{n}{colon}{v}" for n, v in lines) + after


def test_the_bank_shows_both_strings_and_where_they_part(making: Making) -> None:
    refused = making.but(text=target(f"post {PATH}")).refused()
    place = "(first difference in line 1, column 58)"
    assert str(refused) == f"{OVER}without the query {place}."
    shown = refused.diagnosis()
    assert shown["firstDifference"] == {
        "line": 1,
        "column": 58,
        "expected": f"(request-target): post {TARGET}",
        "sent": f"(request-target): post {PATH}",
    }
    assert shown["hash"]["signed"] == hashlib.sha256(shown["likelySent"].encode()).hexdigest()
    assert shown["hash"]["signingString"] == hashlib.sha256(shown["signingString"].encode()).hexdigest()
    assert json.loads(json.dumps(shown)) == shown


@cases(
    "name, value",
    [("X-Forwarded-Prefix", "/psd2"), ("X-Forwarded-Prefix", "/psd2/"), ("X-Envoy-Original-Path", "/psd2" + TARGET)],
)
def test_a_path_that_a_proxy_has_changed_is_recognised_where_the_proxy_tells_it(
    making: Making, name: str, value: str
) -> None:
    refused = making.with_header(name, value).but(text=target(f"post /psd2{TARGET}")).refused()
    assert str(refused).startswith(f"{OVER}with the path of {name}, which a proxy has changed since (")


def test_a_host_that_a_proxy_has_changed_is_recognised_where_the_proxy_tells_it(making: Making) -> None:
    names = [*(name for name in CANDIDATES if name != "psu-corporate-id"), "host"]
    sent = making.with_header("X-Forwarded-Host", "bank.example")
    refused = sent.but(names=names, text=value("host", "bank.example")).refused()
    assert str(refused).startswith(f"{OVER}with the host of X-Forwarded-Host, which a proxy has changed since (")

    whole = sent.but(text=target(f"post https://bank.example{TARGET}")).refused()
    assert str(whole).startswith(f"{OVER}with the whole https address as target (")


@cases(
    "further, signed",
    [
        ((), "date tpp-redirect-uri (request-target) x-request-id psu-id digest"),  # as a map without an order has it
        (("host",), "date digest x-request-id (request-target) psu-id tpp-redirect-uri host"),
    ],
)
def test_another_order_of_the_lines_of_a_payment_is_named(
    making: Making, further: tuple[str, ...], signed: str
) -> None:
    names = ["(request-target)", *(name for name in CANDIDATES if name != "psu-corporate-id"), *further]

    def text(lines: Lines) -> str:
        return signing_string([(name, dict(lines)[name]) for name in signed.split()])

    refused = making.but(names=names, text=text).refused()
    assert str(refused).startswith(f"{OVER}in another order than listed: {signed} (")


def test_names_in_the_case_in_which_they_are_listed_are_named(making: Making) -> None:
    def listed(name: str) -> str:
        return "Date" if name == "date" else name

    names = " ".join(["(request-target)", *map(listed, CANDIDATES[:4]), "tpp-redirect-uri"])
    spelt = making.but(listed=names, text=each(lambda n, v: (listed(n), v)))
    assert spelt.refused().messages[-1].text.startswith(f"{OVER}with the names in the case of the parameter headers (")


@cases("target_at", [0, -1, None])
@cases("as_sent", [True, False])
def test_lines_that_are_listed_nowhere_are_named(making: Making, target_at: int | None, as_sent: bool) -> None:
    def text(lines: Lines) -> str:
        named = dict(lines)
        target = ("(request-target)", named.pop("(request-target)"))
        rest = list(named.items())
        if as_sent:
            sent = ["date", "x-request-id", "psu-id", "tpp-redirect-uri", "digest"]
            rest.sort(key=lambda line: sent.index(line[0]))
        whole = {0: [target, *rest], -1: [*rest, target], None: rest}
        return signing_string(whole[target_at])

    refused = making.but(listed=None, text=text).refused()
    phrase = "of several lines, while a Signature without the parameter headers covers date alone ("
    assert refused.messages[-1].text.startswith(f"{OVER}{phrase}")
    assert refused.diagnosis()["mistake"] == "headers-not-listed"


def test_another_key_is_named(making: Making, special: Credentials) -> None:
    def sign(key: Any, data: bytes) -> bytes:
        public = key.public_key().public_numbers()
        while True:
            signature: bytes = special.key.sign(data, padding.PKCS1v15(), hashes.SHA256())
            # Once in 256 times it ends, read with the certificate's key, as RSA-PSS does, and is told so.
            if pow(int.from_bytes(signature, "big"), public.e, public.n) & 0xFF != 0xBC:
                return signature
            data += b"\n"

    refused = making.but(sign=sign).refused()
    text = "The signature was made with another key than that of TPP-Signature-Certificate (or was altered)."
    assert str(refused) == text
    assert refused.diagnosis()["mistake"] == "other-key"
    assert "likelySent" not in refused.diagnosis()


def test_a_key_of_another_size_is_named(making: Making) -> None:
    refused = making.but(sign=lambda _, data: data[:3] * 128).refused()
    assert str(refused) == (
        "The signature has 384 bytes, one by the certificate's key has 256: it is truncated, encoded twice, or made "
        "with another key."
    )


def test_pss_padding_is_named(making: Making) -> None:
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
    refused = making.but(sign=lambda key, data: key.sign(data, pss, hashes.SHA256())).refused()
    assert str(refused) == "The signature has RSA-PSS padding; rsa-sha256 means PKCS #1 v1.5."
    newline = joined(": ", "\n", after="\n")
    both = making.but(sign=lambda key, data: key.sign(data, pss, hashes.SHA256()), text=newline).refused()
    assert str(both).endswith("; and it was made over a signing string that ends in a newline.")
    hopeless = making.but(sign=lambda key, data: key.sign(b"else", pss, hashes.SHA256())).refused()
    assert str(hopeless) == (
        "The signature was made with another key than that of TPP-Signature-Certificate, or has RSA-PSS padding; "
        "rsa-sha256 means PKCS #1 v1.5."
    )


def test_a_prehashed_signature_is_an_ordinary_one(making: Making) -> None:
    def sign(key: Any, data: bytes) -> bytes:
        raw: bytes = key.sign(hashlib.sha256(data).digest(), padding.PKCS1v15(), Prehashed(hashes.SHA256()))
        return raw

    assert making.but(sign=sign).check()


def test_an_unknown_text_is_admitted(making: Making) -> None:
    refused = making.but(text=lambda lines: "something else").refused()
    assert str(refused).startswith(
        "The signature was made with the certificate's key, but over another text than the bank's signing string; "
        "none of the common mistakes explains it ("
    )
    shown = refused.diagnosis()
    assert shown["hash"]["signed"] == hashlib.sha256(b"something else").hexdigest()
    assert 100 < shown["tried"] <= diagnosis.MOST_GUESSES


def test_the_work_is_bounded_for_long_requests(making: Making) -> None:
    many = tuple((f"x-{number}", "y" * 200) for number in range(200))
    long = making.but(headers=making.headers + many, text=lambda lines: "else")
    everything = [name.lower() for name, _ in long.headers] + ["digest"]
    assert long.but(names=everything).refused().diagnosis()["tried"] == 0
    assert long.but(target="/v1/" + "x" * 20_000).refused().diagnosis()["tried"] < 200


def test_a_signature_that_fits_nothing_holds_up_the_others_for_few_calls_a_guess(making: Making) -> None:
    presented = collect(making.method, making.target, making.but(text=lambda lines: "else").sent(), making.body)
    inspect(presented, Terms(True, making.settings, NOW.timestamp(), None))
    causes: list[Any] = []
    count = calls(lambda: causes.append(diagnosis.find_cause(presented)))
    assert causes[0].tried > 1000
    assert count < 16 * causes[0].tried


def test_every_group_says_what_it_did(making: Making) -> None:
    """Phrases and names are written for people and for the console; none may be empty."""
    presented = collect(making.method, making.target, making.sent(), making.body)
    presented.names = ("(request-target)", "host", "date", "digest", "x-request-id", "psu-id", "tpp-redirect-uri")
    for mistakes in groups(presented):
        assert mistakes
        assert all(mistake.id and mistake.phrase for mistake in mistakes)


def test_a_fault_beside_the_signature_is_reported_too(making: Making) -> None:
    refused = making.but(key_id="SN=1,CA=CN=x", text=target(f"post {PATH}")).refused()
    assert [one.text.split(" ")[1] for one in refused.messages] == ["KeyID", "signature"]
    assert refused.diagnosis()["signatureCause"].startswith(f"{OVER}without the query")


def test_other_refusals_have_a_diagnosis_too(making: Making) -> None:
    for wrong in (making.but(algorithm="none"), making.but(certificate="x"), making.but(finish=lambda _: "x")):
        refused = wrong.refused()
        shown = refused.diagnosis()
        assert shown["cause"] == str(refused)
        assert shown["messages"] == [{"code": m.code, "path": m.path, "text": m.text} for m in refused.messages]
