"""Lies around the body: headers, redirect addresses, queries, addresses and the ids in them."""

from __future__ import annotations

from tests.hostile.case import ACCOUNTS, Case, Messages, Sent, header
from tests.known_state import DOMESTIC, SEPA

NOBODYS = "5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"

_FORMATS = {
    "X-Request-ID": {"nothing": "", "129 characters": "x" * 129, "a letter beyond ASCII": "å", "a tab": "a\tb"},
    "TPP-Session-ID": {"129 characters": "x" * 129, "a line separator": "a\u2028b", "nothing": ""},
    "TPP-Redirect-Preferred": {"yes": "yes", "capitals": "TRUE", "a digit": "1", "nothing": ""},
    "TPP-Brand-Logging-Information": {"an escape sequence": "\x1b[2J"},
    "PSU-ID": {
        "a number": "14888520059",
        "a UUID in braces": "{0f8fad5b-d9cb-469f-a165-70867728950e}",
        "a UUID as a name": "urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e",
        "a UUID without dashes": "0f8fad5bd9cb469fa16570867728950e",
        "a UUID and more": "0f8fad5b-d9cb-469f-a165-70867728950e-x",
        "two UUIDs": "0f8fad5b-d9cb-469f-a165-70867728950e,0f8fad5b-d9cb-469f-a165-70867728950e",
        "full-width digits": "０f8fad5b-d9cb-469f-a165-70867728950e",
        "a wildcard": "*",
        "nothing": "",
    },
    "PSU-Corporate-ID": {"a word": "all", "nothing": ""},
    "PSU-Context": {"small letters": "private", "both": "PRIVATE,CORPORATE", "nothing": ""},
    "PSU-IP-Address": {
        "a name": "localhost",
        "a fifth byte": "192.0.2.1.1",
        "a byte of 256": "192.0.2.256",
        "a leading nought": "192.0.02.1",
        "a number": "3221225985",
        "hex": "0xC0000201",
        "a port": "192.0.2.1:80",
        "a mask": "192.0.2.0/24",
        "brackets": "[2001:db8::1]",
        "a zone": "fe80::1%eth0",
        "two": "192.0.2.1, 192.0.2.2",
        "Arabic digits": "١٩٢.٠.٢.١",
        "nothing": "",
    },
    "PSU-IP-Port": {
        "nought": "0", "65536": "65536", "a sign": "+80", "a leading nought": "080", "a fraction": "80.0",
        "a thousand digits": "9" * 1000, "superscript": "8²",
    },
    "PSU-HTTP-Method": {"one that is none": "STEAL", "small letters": "get"},
    "PSU-Device-ID": {"no UUID": "my phone"},
    "PSU-Geo-Location": {
        "the north pole and more": "GEO:90.1,0", "around the world": "GEO:0,180.1", "no prefix": "59.9,10.7",
        "an exponent": "GEO:1e1,0", "not a number": "GEO:nan,nan", "many digits": f"GEO:1.{'1' * 400},0",
    },
    "PSU-User-Agent": {"a NUL": "Mozilla\0", "a line break": "Mozilla\r\nX-Admin: 1"},
}  # fmt: skip
_FORMATS_OF_PAYMENTS = {
    "X-PSU-IDENTITY": {
        "7 digits": "1234567", "12 digits": "1" * 12, "a letter": "1488852005O", "a blank": "148885 20059",
        "Arabic digits": "١٤٨٨٨٥٢٠٠٥٩", "nothing": "",
    },
    "X-PSU-AuthMethod-Preferred": {"one that is none": "PASSWORD", "small letters": "ha2", "a path": "../ID"},
}  # fmt: skip

_REDIRECTS = {
    "a script": "javascript:alert(1)",
    "a script in capitals": "JavaScript:alert(1)",
    "a script after a blank": " java script:alert(1)",
    "data": "data:text/html,<script>alert(1)</script>",
    "a script of old": "vbscript:msgbox(1)",
    "a file": "file:///etc/passwd",
    "a blob": "blob:https://tpp.example/1",
    "the source": "view-source:https://tpp.example/",
    "about": "about:blank",
    "user info": "https://bank.example@evil.example/",
    "user and password": "https://a:b@evil.example/",
    "user info escaped in part": "https://bank.example%40x@evil.example/",
    "a fragment": "https://tpp.example/#token",
    "an empty fragment": "https://tpp.example/#",
    "no scheme": "//evil.example/",
    "a path": "/callback",
    "a word": "callback",
    "nothing": "",
    "no host": "https://",
    "no host but a path": "https:///evil.example",
    "one slash": "https:/evil.example",
    "no slash": "https:evil.example",
    "backslashes": "https:\\\\evil.example",
    "a backslash in the host": "https://tpp.example\\@evil.example/",
    "a blank": "https://tpp.example/a b",
    "a tab": "https://tpp.example/\tx",
    "a line break": "https://tpp.example/\r\nSet-Cookie: a=b",
    "an escape cut off": "https://tpp.example/%2",
    "an escape that is none": "https://tpp.example/%zz",
    "a port of 65536": "https://tpp.example:65536/",
    "a port that is a word": "https://tpp.example:http/",
    "letters beyond ASCII": "https://tpp.éxample/",
    "a look-alike slash": "https://tpp.example\u2215@evil.example/",
    "angle brackets": "https://tpp.example/<script>",
    "quotes": 'https://tpp.example/"onload="alert(1)',
    "two addresses": "https://a.example/ https://b.example/",
    "2049 characters": "https://tpp.example/" + "a" * 2029,
    "an IPv6 address without end": "https://[::1/",
    "a mail": "mailto:a@b.example",
    "an app without a place": "myapp:",
    "an app with user info": "myapp://a@b/",
}


def _queries() -> tuple[Case, ...]:
    account = f"{ACCOUNTS}/HERE/transactions"
    cases = []
    for name, (query, *paths) in {
        "limit nought": ("limit=0", "limit"),
        "limit 501": ("limit=501", "limit"),
        "limit below nought": ("limit=-1", "limit"),
        "limit with a sign": ("limit=%2B5", "limit"),
        "limit with a blank": ("limit=+5", "limit"),
        "limit in Arabic digits": ("limit=%D9%A5", "limit"),
        "limit with an exponent": ("limit=1e2", "limit"),
        "limit in hex": ("limit=0x10", "limit"),
        "limit with an underscore": ("limit=1_0", "limit"),
        "limit as a fraction": ("limit=10.0", "limit"),
        "limit of 30 digits": ("limit=" + "9" * 30, "limit"),
        "limit of 5000 digits": ("limit=" + "9" * 5000, "limit"),
        "limit without a value": ("limit=", "limit"),
        "limit by name only": ("limit", "limit"),
        "limit twice": ("limit=5&limit=5", "limit"),
        "limit twice, once escaped": ("limit=5&l%69mit=6", "limit"),
        "offset below nought": ("offset=-1", "offset"),
        "offset past int32": ("offset=2147483648", "offset"),
        "offset and limit": ("offset=x&limit=y", "offset", "limit"),
        "a status that is none": ("bookingStatus=every", "bookingStatus"),
        "a status in capitals": ("bookingStatus=BOOKED", "bookingStatus"),
        "a status with SQL": ("bookingStatus=booked%27%20OR%201=1--", "bookingStatus"),
        "30 February": ("dateFrom=2026-02-30", "dateFrom"),
        "a date in Arabic digits": ("dateFrom=%D9%A2%D9%A0%D9%A2%D9%A6-01-01", "dateFrom"),
        "a date without dashes": ("dateTo=20260101", "dateTo"),
        "a week date": ("dateTo=2026-W01-1", "dateTo"),
        "the year nought": ("dateFrom=0000-01-01", "dateFrom"),
        "a time": ("dateFrom=2026-01-01T00:00", "dateFrom"),
        "dates the wrong way round": ("dateFrom=2026-03-01&dateTo=2026-02-01", "dateFrom"),
        "a value that is not UTF-8": ("bookingStatus=%FF", "bookingStatus"),
        "a name that is not UTF-8": ("%FF=1", None),
        "an escape cut off": ("limit=%3", "limit"),
        "an overlong escape": ("bookingStatus=%C0%AF", "bookingStatus"),
        "NUL": ("bookingStatus=booked%00", "bookingStatus"),
    }.items():
        messages: Messages = tuple(("FORMAT_ERROR", path) for path in paths)
        cases.append(Case("paging", name, 400, messages, "GET", f"{account}?{query}"))
    wanted: Messages = (("FORMAT_ERROR", "withBalance"),)
    for value in ("yes", "1", "TRUE", "", "true%20", "%00"):
        cases.append(Case("paging", f"withBalance {value!r}", 400, wanted, "GET", f"{ACCOUNTS}?withBalance={value}"))
    return tuple(cases)


def _nowhere() -> tuple[Case, ...]:
    missing: Messages = (("NOT_FOUND", None),)
    cases = [
        Case("ids of others", f"account {name}", 404, (("RESOURCE_UNKNOWN", "id"),), "GET", f"{ACCOUNTS}/{segment}")
        for name, segment in {
            "of nobody": NOBODYS,
            "by its number": "99901000014",
            "a wildcard": "*",
            "a thousand characters": "x" * 1000,
            "with SQL": "%27%20OR%201=1--",
            "a climb": "%2e%2e%2faccounts",
            "NUL": "%00",
            "dots": "..",
            "an object": "%7B%7D",
            "escaped once more": "%252e%252e",
            "Python's own": "__class__",
        }.items()
    ]
    cases += [
        Case("ids of others", f"{method} payment {payment}{tail}", 404, (("RESOURCE_UNKNOWN", "paymentId"),), method,
             f"{SEPA}/{payment}{tail}")
        for method, tail in (("GET", ""), ("GET", "/status"), ("DELETE", ""), ("POST", "/authorisations"),
                             ("POST", "/cancellation-authorisations"))
        for payment in (NOBODYS, "%27--")
    ]  # fmt: skip
    cases += [
        Case("addresses", name, 404, missing, "GET", path)
        for name, path in {
            "nothing behind v1": "/v1/",
            "another version": "/v2/accounts",
            "capitals": "/V1/Accounts",
            "a slash more": "/v1//accounts",
            "a slash at the end": "/v1/accounts/",
            "a climb": "/v1/../v1/accounts",
            "a climb escaped": "/v1/%2e%2e/v1/accounts",
            "an escaped slash": "/v1%2Faccounts",
            "a backslash": "/v1\\accounts",
            "a parameter in the path": "/v1/accounts;a=b",
            "NUL": "/v1/accounts%00",
            "an id that is not UTF-8": "/v1/accounts/%ff",
            "a bank that is none": "/banks/nobody/v1/accounts",
            "a bank outside": "/banks/..%2f/v1/accounts",
            "a bank in capitals": "/banks/Default/v1/accounts",
            "eight thousand characters": "/v1/" + "a" * 8000,
        }.items()
    ]
    cases += [
        Case("addresses", f"product {name}", 404, (("PRODUCT_UNKNOWN", "payment-product"),), "GET",
             f"/v1/payments/{name}/{NOBODYS}")
        for name in ("free-money", "SEPA-credit-transfers", "%2e%2e", "sepa-credit-transfers%00")
    ]  # fmt: skip
    cases.append(Case("addresses", "a service that is none", 404, missing, "GET", f"/v1/loans/x/{NOBODYS}"))
    cases += [
        Case("addresses", f"{method} on a list", 405, (("BAD_REQUEST", None),), method, ACCOUNTS)
        for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND")
    ]
    return tuple(cases)


def _again(name: str, other: str) -> Case:
    def spoil(sent: Sent) -> Sent:
        return [*sent, (name, other)]

    return Case("headers", f"{name} twice", 400, (("FORMAT_ERROR", name),), spoil=spoil)


HEADERS = (
    *(header("headers", f"{name}: {what}", name, value)
      for name, values in _FORMATS.items() for what, value in values.items()),
    *(header("headers", f"{name}: {what}", name, value, of=DOMESTIC)
      for name, values in _FORMATS_OF_PAYMENTS.items() for what, value in values.items()),
    *(header("headers", f"no {name}", name, None, "HTTP_HEADER_REQUIRED")
      for name in ("TPP-Redirect-URI", "x-accept-fix")),
    *(header("headers", f"no {name} with a payment", name, None, "HTTP_HEADER_REQUIRED", of=SEPA)
      for name in ("TPP-Session-ID", "PSU-ID", "PSU-IP-Address")),
    _again("PSU-IP-Address", "192.0.2.2"),
    _again("PSU-Context", "CORPORATE"),
    *(Case("headers", f"Accept: {accept}", 406, (("BAD_REQUEST", "Accept"),), options={"headers": {"Accept": accept}})
      for accept in ("text/html", "application/xml", "application/json;q=0", "image/*")),
)  # fmt: skip
REDIRECTS = tuple(header("redirect addresses", name, "TPP-Redirect-URI", value) for name, value in _REDIRECTS.items())
CASES = (*HEADERS, *REDIRECTS, *_queries(), *_nowhere())
