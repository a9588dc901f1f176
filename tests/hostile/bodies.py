"""Lies in bodies: JSON that is none, numbers that only look like numbers, text the bank cannot carry."""

from __future__ import annotations

import gzip
import json
import zlib

from tests.hostile.case import BASKETS, BODIES, CUSTOMERS, SANDBOX_ACCOUNTS, Case, Messages, member, posted, with_member
from tests.known_state import BULK, DOMESTIC, PERIODIC, SEPA, STRAKS

GOOD = json.dumps(BODIES[SEPA]).encode()
WHOLE: Messages = (("FORMAT_ERROR", None),)
CONTENT_TYPE: Messages = (("BAD_REQUEST", "Content-Type"),)


def _nested(opening: str, closing: str, depth: int) -> bytes:
    return f'{{"a":{opening * depth}1{closing * depth}}}'.encode()


_MALFORMED = {
    "blanks": b" \n ",
    "half an object": GOOD[:-1],
    "two values": GOOD + b"{}",
    "a trailing comma": GOOD[:-1] + b",}",
    "a comment": b"/* hi */" + GOOD,
    "single quotes": GOOD.replace(b'"', b"'"),
    "a bare word": b"yes",
    "NaN": b'{"a":NaN}',
    "minus Infinity": b'{"a":-Infinity}',
    "a plus sign": b'{"a":+1}',
    "a leading zero": b'{"a":01}',
    "a leading point": b'{"a":.5}',
    "a hex number": b'{"a":0x10}',
    "an exponent without digits": b'{"a":1e}',
    "an exponent that would fill the memory": b'{"a":1e999999999}',
    "an exponent out of any range": b'{"a":1e99999999999999999999999}',
    "a number of 5000 digits": b'{"a":' + b"9" * 5000 + b"}",
    "a fraction of 5000 digits": b'{"a":0.' + b"1" * 5000 + b"}",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-32": GOOD.decode().encode("utf-32-le"),
    "a lone continuation byte": GOOD.replace(b"Librairie", b"\x80ibrairie"),
    "an overlong slash": GOOD.replace(b"Librairie", b"\xc0\xafibrairie"),
    "a surrogate in UTF-8": GOOD.replace(b"Librairie", b"\xed\xa0\x80ibrairie"),
    "a code point past the last": GOOD.replace(b"Librairie", b"\xf4\x90\x80\x80ibrairie"),
    "a broken escape": GOOD.replace(b"Librairie", b"\\xibrairie"),
    "a cut-off escape": GOOD.replace(b"Librairie", b"\\u12"),
    "a raw line break in a text": GOOD.replace(b"Librairie", b"Lib\nrairie"),
    "a raw NUL in a text": GOOD.replace(b"Librairie", b"Lib\0rairie"),
    "33 lists in one another": _nested("[", "]", 33),
    "33 objects in one another": _nested('{"a":', "}", 33),
    "100,000 lists in one another": b"[" * 100_000,
    "100,000 objects in one another": b'{"a":' * 100_000,
    "a form": b"instructedAmount=1",
    "XML": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "a list for an object": b"[]",
    "a text for an object": b'"x"',
    "null for an object": b"null",
    "true for an object": b"true",
}


def _doubled(members: bytes, *paths: str) -> Case:
    messages = tuple(("FORMAT_ERROR", path) for path in paths)
    return posted("JSON", f"{members.decode()} {paths} twice", b"{" + members + b"," + GOOD[1:], messages)


JSON = (
    *(posted("JSON", name, body, WHOLE) for name, body in _MALFORMED.items()),
    posted("JSON", "a mebibyte and a byte", b'{"a":"' + b"x" * (1 << 20) + b'"}', (("BAD_REQUEST", None),), status=413),
    _doubled(b'"creditorName":"A"', "creditorName"),
    _doubled(b'"creditor\\u004eame":"A"', "creditorName"),
    _doubled(b'"a":[{"b":1,"b":2}],"c":1,"c":2', "c", "a[0].b"),
    Case("JSON", "a member called like Python's own", 400, (("FORMAT_ERROR", "creditorName"),), "POST", SEPA,
         {"json": {**{k: v for k, v in BODIES[SEPA].items() if k != "creditorName"}, "__class__": "x"}}),
)  # fmt: skip

_TYPES = {
    "a koi8-r charset": "application/json; charset=koi8-r",
    "a utf-7 charset": "application/json; charset=utf-7",
    "a utf-16 charset": "application/json; charset=utf-16",
    "a charset that runs": "application/json; charset=unicode_escape",
    "a charset that packs": "application/json; charset=zlib_codec",
    "a form": "application/x-www-form-urlencoded",
    "a form with files": "multipart/form-data; boundary=x",
    "plain text": "text/plain",
    "XML": "application/xml",
    "two types": "application/json, text/plain",
    "nothing but a slash": "/",
    "JSON under another name": "text/json",
}
_NOTHING = b"\0" * 20_000_000  # twenty times as much as a body may have
_BOMB = gzip.compress(_NOTHING, 1)

ENCODED = (
    *(
        Case("content types", name, 415, CONTENT_TYPE, "POST", SEPA,
             {"json": BODIES[SEPA], "headers": {"Content-Type": value}})
        for name, value in _TYPES.items()
    ),
    *(
        Case("packed bodies", name, 415, (("BAD_REQUEST", "Content-Encoding"),), "POST", SEPA,
             {"body": body, "headers": {"Content-Encoding": coding}})
        for name, coding, body in (
            ("an honest gzip", "gzip", gzip.compress(GOOD)),
            ("a gzip bomb", "gzip", _BOMB),
            ("a gzip bomb in a gzip bomb", "gzip, gzip", gzip.compress(_BOMB)),
            ("a deflate bomb", "deflate", zlib.compress(_NOTHING, 1)),
            ("brotli", "br", b"\x0b\x02\x80"),
            ("a coding in capitals", "GZIP", gzip.compress(GOOD)),
            ("a coding nobody knows", "x-made-up", GOOD),
            ("identity and gzip", "identity, gzip", GOOD),
        )
    ),
    posted("packed bodies", "gzip without saying so", gzip.compress(GOOD), WHOLE),
)  # fmt: skip

_AMOUNTS = {
    "a number": 12.5,
    "true": True,
    "null": None,
    "nothing": "",
    "a sign": "+12.50",
    "a minus": "-12.50",
    "nought": "0.00",
    "a comma": "12,50",
    "thousands": "1,234.50",
    "an underscore": "1_2.50",
    "an exponent": "1e2",
    "hex": "0x12",
    "infinity": "Infinity",
    "not a number": "NaN",
    "blanks around": " 12.50 ",
    "a line break behind": "12.50\n",
    "no digits before the point": ".50",
    "no digits behind the point": "12.",
    "two points": "1.2.3",
    "too few digits": "12.5",
    "too many digits": "12.500",
    "19 digits": "1" * 17 + ".00",
    "a thousand digits": "1" * 1000,
    "Arabic digits": "١٢.٥٠",
    "full-width digits": "１２.50",
    "Bengali digits": "১২.50",
    "superscript": "1².50",
    "a Roman numeral": "Ⅻ.50",
    "a minus that is none": "\u221212.50",
    "a direction mark": "\u202e12.50",
    "an object": {"value": "12.50"},
    "a list": ["12.50"],
}

NUMBERS = (
    *(
        member("numbers", f"amount: {name}", "instructedAmount.amount", value)
        for name, value in _AMOUNTS.items()
    ),
    *(
        member("numbers", f"currency: {name}", "instructedAmount.currency", value)
        for name, value in {
            "small letters": "eur",
            "a look-alike": "ЕUR",
            "a symbol": "€",
            "four letters": "EURO",
            "a number": 978,
            "one nobody has": "XYZ",
        }.items()
    ),
    member("numbers", "a date in Arabic digits", "requestedExecutionDate", "٢٠٢٦-٠٣-٠٣"),
    member("numbers", "29 February of no leap year", "requestedExecutionDate", "2027-02-29"),
    member("numbers", "a 13th month", "requestedExecutionDate", "2026-13-01"),
    member("numbers", "a date without dashes", "requestedExecutionDate", "20260303"),
    member("numbers", "a week date", "requestedExecutionDate", "2026-W10-2"),
    member("numbers", "the year nought", "requestedExecutionDate", "0000-01-01"),
    member("numbers", "a date with a time", "requestedExecutionDate", "2026-03-03T00:00:00Z"),
    member("numbers", "a date as a number", "requestedExecutionDate", 20260303),
    member("numbers", "a date long past", "requestedExecutionDate", "1970-01-01", "EXECUTION_DATE_INVALID"),
    member("numbers", "the last date of all", "requestedExecutionDate", "9999-12-31", "EXECUTION_DATE_INVALID"),
    member("numbers", "day 32", "dayOfExecution", "32", of=PERIODIC),
    member("numbers", "day nought", "dayOfExecution", "0", of=PERIODIC),
    member("numbers", "a day with a nought", "dayOfExecution", "01", of=PERIODIC),
    member("numbers", "a day in Arabic digits", "dayOfExecution", "١", of=PERIODIC),
    member("numbers", "no entries in a bulk", "payments", [], of=BULK),
    member("numbers", "501 entries in a bulk", "payments", [BODIES[BULK]["payments"][0]] * 501, of=BULK),
    member("numbers", "an entry of a bulk that is none", "payments", [None], path="payments[0]", of=BULK),
    member("numbers", "a customer number in Arabic digits", "customerNumber", "١٢٣٤٥٦٧٨٩٠١", of=CUSTOMERS),
    member("numbers", "a customer number of 12 digits", "customerNumber", "1" * 12, of=CUSTOMERS),
    member("numbers", "a customer number that is a number", "customerNumber", 12345678901, of=CUSTOMERS),
    member("numbers", "a credit line past all money", "creditLine", 10**30, of=SANDBOX_ACCOUNTS),
    member("numbers", "a credit line that is true", "creditLine", True, of=SANDBOX_ACCOUNTS),
    posted("numbers", "a credit line of 1e300",
           json.dumps(with_member("creditLine", "HERE", SANDBOX_ACCOUNTS)).replace('"HERE"', "1e300").encode(),
           (("FORMAT_ERROR", "creditLine"),), to=SANDBOX_ACCOUNTS),
)  # fmt: skip

_TEXTS = {
    "an emoji": "Kari 😀",
    "an emoji alone": "😀",
    "a flag": "🇳🇴",
    "Gothic letters": "𐌺𐌰𐍂𐌹",
    "mathematical letters": "𝐊𝐚𝐫𝐢",
    "the last code point": "\U0010ffff",
    "half a pair, first": "a\ud800",
    "half a pair, second": "a\udc00",
    "a pair the wrong way round": "\udc00\ud800",
    "NUL": "a\0b",
    "a bell": "a\x07b",
    "an escape sequence": "\x1b[31mred",
    "a line break": "a\nb",
    "a carriage return": "a\r\nX-Header: b",
    "a tab": "a\tb",
    "delete": "a\x7fb",
    "a C1 control": "a\x85b",
    "blanks alone": "   ",
    "no-break blanks alone": "\u00a0\u00a0",
    "too long by one": "x" * 71,
    "a megabyte": "x" * 900_000,
    "a number": 5,
    "a list": ["Kari"],
}


def _text(name: str, value: object) -> Case:
    body = json.dumps(with_member("creditorName", value, SEPA)).encode()  # ASCII: escapes carry what UTF-8 cannot
    return posted("Unicode", name, body, (("FORMAT_ERROR", "creditorName"),))


UNICODE = (
    *(_text(name, value) for name, value in _TEXTS.items()),
    posted("Unicode", "an emoji in a member's name", json.dumps({**BODIES[SEPA], "a😀": 1}).encode(),
           (("FORMAT_ERROR", "a😀"),)),
    posted("Unicode", "half a pair in a member's name", json.dumps({**BODIES[SEPA], "\ud800": 1}).encode(),
           (("FORMAT_ERROR", "\\ud800"),)),
    member("Unicode", "a country of look-alikes", "creditorAddress", {"country": "ΝΟ"}, path="creditorAddress.country",
           of=STRAKS),
    member("Unicode", "an IBAN with Cyrillic letters", "debtorAccount.iban", "ΝО8599901000014"),
    member("Unicode", "an account number in Arabic digits", "creditorAccount.bban", "٩٩٩٠١١٠٠٠١٩", of=DOMESTIC),
    member("Unicode", "an account number with a direction mark", "creditorAccount.bban", "\u202e99901100019",
           of=DOMESTIC),
)  # fmt: skip

ACCOUNTS_OF_OTHERS = (
    *(
        Case("ids of others", f"{whose} account to pay from", 403, (("FORBIDDEN", "debtorAccount"),), "POST", SEPA,
             {"json": with_member("debtorAccount.iban", iban, SEPA)})
        for whose, iban in (("another's", "NO4299901100019"), ("nobody's", "NO9386011117947"))
    ),
    Case("ids of others", "a basket of nobody's payment", 400, (("RESOURCE_UNKNOWN", "paymentIds[0]"),), "POST",
         BASKETS, {"json": {"paymentIds": ["5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"]}}),
    Case("ids of others", "eleven payments in a basket", 400, (("FORMAT_ERROR", "paymentIds"),), "POST", BASKETS,
         {"json": {"paymentIds": [f"{n}" for n in range(11)]}}),
    Case("ids of others", "an id that is an object", 400, (("FORMAT_ERROR", "paymentIds[0]"),), "POST", BASKETS,
         {"json": {"paymentIds": [{"$ne": ""}]}}),
)  # fmt: skip
CASES = (*JSON, *ENCODED, *NUMBERS, *UNICODE, *ACCOUNTS_OF_OTHERS)
