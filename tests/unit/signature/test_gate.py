"""Every rule of the gate: code, path and text of its refusal (signature.md)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from emulator.api.certificates import AuthenticatedTpp
from emulator.api.signature import SignatureRefused, Verified
from emulator.api.signature.check import collect
from emulator.api.signature.rules import Terms, check_digest
from emulator.bank.settings import Settings
from emulator.ca import Credentials
from emulator.httpsig.signing import HASHES, digest_value, format_date
from tests.cases import cases
from tests.unit.signature.making import BODY, NOW, STANDING, TARGET, Making, encoded_word, same_verdict

LENIENT = Settings("lenient")
CERTIFICATE = "TPP-Signature-Certificate"


def test_a_signed_request_tells_who_signed_it(making: Making) -> None:
    verified = making.check()
    assert verified.tpp == AuthenticatedTpp("PSDNO-SBX-1", "signer", frozenset({"PISP", "AISP"}))
    assert verified.notes == ()
    assert verified.certificate.certificate == making.credentials.certificate
    assert verified.signing_string.split("\n")[0] == f"(request-target): post {making.target}"


def test_all_missing_headers_are_named_at_once(making: Making) -> None:
    faults = making.faults([("Host", "x")])
    assert [(code, path) for code, path, _ in faults] == [
        ("HTTP_HEADER_REQUIRED", name) for name in ("Signature", CERTIFICATE, "Date", "Digest")
    ]


def test_a_digest_that_is_there_many_times_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = ", ".join([digest_value(BODY, "SHA-512")] * 10)
    hashed: list[bytes] = []

    def counted(body: bytes) -> Any:
        hashed.append(body)
        return hashlib.sha512(body)

    monkeypatch.setitem(HASHES, "SHA-512", counted)
    presented = collect("POST", "/v1/payments", [("Digest", digest)], BODY)
    check_digest(presented, Terms(True, Settings(), 0.0, None))
    assert hashed == [BODY]
    assert not presented.faults


def test_no_digest_is_needed_where_the_operation_takes_no_body(making: Making) -> None:
    assert making.but(digest=None, wanted=False).check().notes == ()


@cases("name", ["Signature", CERTIFICATE, "Date", "Digest", "X-Request-ID"])
def test_a_signed_header_sent_twice_is_refused(making: Making, name: str) -> None:
    headers = making.sent()
    headers.append(next(pair for pair in headers if pair[0] == name))
    faults = making.faults(headers)
    assert (faults[0].code, faults[0].path) == ("BAD_REQUEST", name)
    assert "more than once" in faults[0].text
    assert len(faults) == 1


def test_an_unsigned_header_may_be_sent_twice(making: Making) -> None:
    assert making.check([*making.sent(), ("x-accept-fix", "longer-names")])


@cases(
    "finish, text",
    [
        (lambda h: h.replace(",algorithm", " algorithm"),
         "after the value of keyId a comma was expected, found ' algorithm=\"rsa-sha256\",header'."),
        (lambda h: h.replace(",algorithm", "algorithm"),
         "after the value of keyId a comma was expected, found 'algorithm=\"rsa-sha256\",headers'."),
        (lambda h: h.replace("CA=CN", 'CA=O="A, B",CN'),
         'found \'A, B",CN=Bank Emulator Sandbox\' '
         '(inside it, write \\" for a double quote, \\, for a comma of a name).'),
        (lambda h: h + ",nothing", "key=\"value\" was expected, found 'nothing'."),
        (lambda h: "c2lnbmF0dXJl" * 4 + "==", "key=\"value\" was expected, found 'c2lnbmF0dXJlc2lnbmF0dXJlc2lnbm'."),
        (lambda h: "=?koi8-r?B?eA==?=", "its charset 'koi8-r' is neither utf-8 nor iso-8859-1."),
        (lambda h: "=?utf-8?X?eA==?=", "its encoding 'X' is neither B nor Q."),
        (lambda h: "=?utf-8?Q?ø?=", "its encoded word holds characters beyond ASCII."),
        (lambda h: "=?utf-8?B?eA=?=", "its encoded word is not valid base64."),
        (lambda h: "=?utf-8?B?/w==?=", "its bytes are not utf-8, the charset that it names."),
        (lambda h: f'=?utf-8?B?a2V5SWQ9?= {h.removeprefix("keyId=")}',
         "after its encoded words it goes on in plain text; it is to be encoded whole."),
        (lambda h: "=?utf-8?B", "it is not of the RFC 2047 form =?charset?encoding?text?=."),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_read_says_why(making: Making, finish: Any, text: str) -> None:
    (only,) = making.but(finish=finish).faults()
    assert (only.code, only.path) == ("BAD_REQUEST", "Signature")
    assert only.text.startswith("The header Signature cannot be read: ")
    assert only.text.endswith(text)


@cases(
    "changes, text",
    [
        ({"algorithm": "SHA256withRSA"}, 'The algorithm "SHA256withRSA" is not accepted; use rsa-sha256.'),
        ({"listed": "x " * 3000}, "The headers parameter is longer than 4096 characters."),
        ({"encode": lambda raw: "."}, "The parameter signature is not base64."),
        ({"encode": lambda raw: raw.hex(":").upper()}, "The parameter signature is not base64: it is in hexadecimal."),
    ],
)  # fmt: skip
def test_a_parameter_that_cannot_be_used_says_why(making: Making, changes: dict[str, Any], text: str) -> None:
    faults = making.but(**changes).faults()
    assert ("BAD_REQUEST", "Signature", text) in faults
    assert {path for _, path, _ in faults} == {"Signature"}


def test_an_absent_header_that_is_listed_often_is_told_once(making: Making) -> None:
    assert len(making.but(names=["date", *["absent"] * 1000]).faults()) <= 3


@cases("name", ["digest", "x-request-id", "psu-id", "tpp-redirect-uri", "psu-corporate-id"])
def test_every_candidate_that_is_sent_must_be_listed(making: Making, name: str) -> None:
    full = making.with_header("PSU-Corporate-ID", "0f8fad5b-d9cb-469f-a165-70867728950e")
    names = ["date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"]
    assert full.but(names=names).check()
    (only,) = full.but(names=[staying for staying in names if staying != name]).faults()
    assert only == ("BAD_REQUEST", "Signature", f"The request has {name}, which the headers parameter does not list.")


def test_date_must_be_listed_when_it_is_not_alone(making: Making) -> None:
    names = ["digest", "x-request-id", "psu-id", "tpp-redirect-uri"]
    assert making.but(names=names).faults()[0].text.startswith("The request has date, which")


def test_further_headers_may_be_listed_in_any_order(making: Making) -> None:
    names = ["tpp-redirect-uri", "host", "psu-id", "x-accept-fix", "x-request-id", "digest", "date"]
    assert making.but(names=names).check()


def test_no_headers_parameter_means_date_alone(making: Making) -> None:
    alone = making.but(headers=(("Date", format_date(NOW)),), digest=None, wanted=False, names=["date"], listed=None)
    assert alone.check().signing_string == f"date: {format_date(NOW)}"


@cases("seconds, side", [(301, "ahead of"), (-301, "behind"), (86_400, "ahead of"), (-1800, "behind")])
def test_a_date_outside_the_skew_is_refused(making: Making, seconds: int, side: str) -> None:
    late = making.with_header("Date", format_date(NOW + timedelta(seconds=seconds)))
    text = (
        f"The header Date is {abs(seconds)} s {side} real time (bank time does not count), at most 300 s are allowed."
    )
    assert late.faults() == [("BAD_REQUEST", "Date", text)]


@cases("seconds, asked", [(3600, True), (7140, True), (-50_400, True), (3661, False), (54_000, False)])
def test_a_date_that_is_off_by_whole_hours_may_be_a_local_time(making: Making, seconds: int, asked: bool) -> None:
    (only,) = making.with_header("Date", format_date(NOW + timedelta(seconds=seconds))).faults()
    assert only.text.endswith(" s are allowed (whole hours: a local time called GMT?).") is asked


@cases("seconds", [300, -300, 0])
def test_a_date_within_the_skew_is_accepted(making: Making, seconds: int) -> None:
    assert making.with_header("Date", format_date(NOW + timedelta(seconds=seconds))).check()


def test_a_date_300_seconds_old_stays_so_until_the_second_is_over(making: Making) -> None:
    """A Date has whole seconds, the clock has not: what was sent as 300 s old is not refused as 300.9 s old."""
    late = NOW.replace(microsecond=900_000)
    assert making.but(now=late).with_header("Date", format_date(NOW - timedelta(seconds=300))).check()
    assert making.but(now=late).with_header("Date", format_date(NOW - timedelta(seconds=301))).faults()
    assert making.but(now=late).with_header("Date", format_date(NOW + timedelta(seconds=301))).faults()


def test_the_skew_is_a_setting(making: Making) -> None:
    day = making.with_header("Date", format_date(NOW + timedelta(days=1)))
    assert day.but(settings=Settings(date_skew=86_400)).check()


@cases(
    "date, note",
    [
        ("Mon, 02 Mar 2026 09:00:00 +0100", "Date: a numeric zone in place of GMT"),
        ("Mon, 2 Mar 2026 08:00:00 GMT", "Date: the day has one digit, RFC 7231 requires two"),
        ("Monday, 02-Mar-26 08:00:00 GMT", "Date: the obsolete RFC 850 form"),
        ("Mon Mar  2 08:00:00 2026", "Date: the obsolete asctime form"),
    ],
)
def test_readable_dates_of_other_forms_are_noted(making: Making, date: str, note: str) -> None:
    assert making.with_header("Date", date).check().notes == (note,)


@cases(
    "date, reason",
    [
        ("2026-03-02T08:00:00Z", "it is not of the RFC 7231 form `Mon, 02 Mar 2026 08:00:00 GMT`"),
        ("Tue, 02 Mar 2026 08:00:00 GMT", "that day is a Monday, not a Tuesday"),
        ("Mon, 32 Mar 2026 08:00:00 GMT", "there is no such day or time"),
        ("Mon, 02 Mrz 2026 08:00:00 GMT", "its day or month name is not one of RFC 7231"),
        ("Mon, 02 Mar 2026 08:00:00 +9999", "there is no such day or time"),
        ("x" * 100, "it is too long for a date"),
    ],
)
def test_an_unreadable_date_says_why(making: Making, date: str, reason: str) -> None:
    assert making.with_header("Date", date).faults() == [
        ("BAD_REQUEST", "Date", f"The header Date cannot be read: {reason}.")
    ]


def test_a_digest_is_checked_wherever_it_is_sent(making: Making) -> None:
    get = making.but(method="GET", body=b"", digest=digest_value(b"else"), wanted=False)
    assert [path for _, path, _ in get.faults()] == ["Digest"]
    assert get.but(digest=digest_value(b"")).check()


@cases(
    "digest",
    [
        digest_value(BODY, "SHA-512"),
        digest_value(BODY).replace("SHA-256", "sha-256"),
        f"{digest_value(BODY)},{digest_value(BODY, 'SHA-512')}",
        f"MD5=abc, {digest_value(BODY)}",
    ],
)
def test_digests_of_other_forms_are_read(making: Making, digest: str) -> None:
    assert making.but(digest=digest).check().notes == ()


def test_every_digest_that_the_bank_knows_must_fit(making: Making) -> None:
    both = f"{digest_value(BODY)},{digest_value(b'else', 'SHA-512')}"
    assert [path for _, path, _ in making.but(digest=both).faults()] == ["Digest"]


def test_a_digest_without_a_known_hash_is_refused(making: Making) -> None:
    text = "The Digest has neither SHA-256 nor SHA-512 (write SHA-256=<base64>): 'MD5=abc'."
    assert making.but(digest="MD5=abc").faults() == [("BAD_REQUEST", "Digest", text)]


def test_sha_512_signatures_are_accepted(making: Making) -> None:
    def sign(key: Any, data: bytes) -> bytes:
        raw: bytes = key.sign(data, PKCS1v15(), hashes.SHA512())
        return raw

    assert making.but(algorithm="rsa-sha512", sign=sign).check()
    assert making.but(algorithm="rsa-sha256", sign=sign).faults()[0].text == (
        "The signature was made with SHA-512; the parameter algorithm means SHA-256."
    )


@cases("charset", ["utf-8", "iso-8859-1"])
@cases("encoding", ["B", "Q"])
def test_letters_beyond_ascii_are_wrapped(special: Credentials, charset: str, encoding: str) -> None:
    wrapped = Making(special, finish=lambda header: encoded_word(header, charset=charset, encoding=encoding))
    assert wrapped.check().notes == ()


def test_unwrapped_letters_beyond_ascii_are_for_the_lenient_profile(special: Credentials) -> None:
    text = "The header Signature is not ASCII; it must be wrapped as =?utf-8?B?<base64>?=."
    assert Making(special).faults() == [("BAD_REQUEST", "Signature", text)]
    notes = Making(special, settings=LENIENT).check().notes
    assert notes == ("Signature: characters beyond ASCII without RFC 2047 wrapping",)


def test_a_signed_value_beyond_ascii_is_taken_in_utf_8_and_iso_8859_1(making: Making) -> None:
    value = making.with_header("TPP-Redirect-URI", "https://tpp.example/tilbakeføring")
    assert value.check().notes == ()
    latin = value.but(text=lambda lines: "\n".join(f"{name}: {text}" for name, text in lines).encode("latin-1"))
    assert latin.check().notes == ("Signature: made over ISO-8859-1 bytes",)


def test_a_value_that_iso_8859_1_lacks_is_not_taken_for_question_marks(making: Making) -> None:
    value = making.with_header("TPP-Redirect-URI", "https://tpp.example/Ω")
    question = value.but(text=lambda lines: "\n".join(f"{n}: {t}" for n, t in lines).encode("latin-1", "replace"))
    assert [path for _, path, _ in question.faults()] == ["Signature"]


def test_the_order_of_parameters_and_blanks_do_not_matter(making: Making) -> None:
    def shuffled(header: str) -> str:
        key_id, algorithm, headers, signature = header.split(',algorithm="')[0], "rsa-sha256", "", ""
        headers = header.split('headers="')[1].split('"')[0]
        signature = header.split('signature="')[1].split('"')[0]
        return f' signature = "{signature}" ,, headers="{headers}",\talgorithm="{algorithm}" , {key_id} ,'

    assert making.but(finish=shuffled).check().notes == ()


def test_a_parameter_name_in_another_case_is_noted(making: Making) -> None:
    notes = making.but(finish=lambda header: header.replace("keyId=", "keyid=")).check().notes
    assert notes == ("Signature: parameter keyId is spelt keyid",)


def test_the_lenient_profile_takes_an_algorithm_in_upper_case(making: Making) -> None:
    notes = making.but(algorithm="RSA-SHA256", settings=LENIENT).check().notes
    assert notes == ("Signature: the algorithm is spelt RSA-SHA256",)


def test_every_fault_is_reported_at_once(making: Making) -> None:
    wrong = making.with_header("Date", "yesterday").but(digest="SHA-256=x", key_id="SN=1,CA=CN=x", algorithm="none")
    assert [path for _, path, _ in wrong.faults()] == ["Signature", "Signature", "Digest", "Date"]


def test_texts_fit_into_a_message(making: Making) -> None:
    long = making.but(algorithm="x" * 5000, key_id="SN=" + "1" * 5000 + ",CA=x", digest="MD5=" + "x" * 5000)
    assert all(len(text) <= 512 for _, _, text in long.faults())


def test_the_refusal_speaks_for_its_first_fault(making: Making) -> None:
    refused = making.but(algorithm="none", digest="SHA-256=x").refused()
    assert str(refused) == refused.messages[0].text
    assert len(refused.messages) == 2
    assert refused.diagnosis() is refused.diagnosis()


def test_the_request_target_is_what_was_sent_not_what_it_means(making: Making) -> None:
    target = "/api-sandbox/v1/accounts/a%2Fb?x=%20&x=+"
    encoded = making.but(target=target)
    assert encoded.check().signing_string.startswith(f"(request-target): post {target}\n")
    headers = encoded.sent()
    assert replace(encoded, target="/api-sandbox/v1/accounts/a/b?x=%20&x=+").faults(headers)


PUBLIC = "https://bank.example/psd2"


def behind_a_proxy(making: Making, headers: list[tuple[str, str]]) -> Verified:
    """The verdict on what a proxy has taken the path of the public address from."""
    return same_verdict(
        making.method, TARGET, headers, making.body, digest_required=True, settings=making.settings,
        instant=NOW.timestamp(), trusted_ca=None, base=PUBLIC,
    )  # fmt: skip


def test_the_request_target_may_have_the_path_of_the_public_address_in_front(making: Making) -> None:
    """It was sent so, and a proxy has taken that path off (`--public-url`)."""
    verified = behind_a_proxy(making, making.but(target=f"/psd2{TARGET}").sent())
    assert verified.notes == ("Signature: made over the public address, with /psd2 before the path",)
    assert verified.signing_string.startswith(f"(request-target): post /psd2{TARGET}\n")
    assert behind_a_proxy(making, making.sent()).notes == ()
    with pytest.raises(SignatureRefused):
        behind_a_proxy(making, making.but(target=f"/other{TARGET}").sent())


def test_headers_outside_the_signature_do_not_matter(making: Making) -> None:
    headers = [pair for pair in making.sent() if pair[0] != "x-accept-fix"]
    assert making.check(headers)
    assert len(STANDING) == 6


@cases("length", [1, 511, 512, 600])
def test_a_text_is_a_sentence_of_at_most_512_characters(length: int) -> None:
    presented = collect("GET", "/v1/accounts", [], b"")
    presented.refuse("Date", "x" * length)
    text = presented.faults[0].text
    assert len(text) == min(length + 1, 512)
    assert text.endswith("x..." if length > 511 else "x.")
