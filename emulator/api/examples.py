"""Examples that work against the known state: the OpenAPI document shows them, the tests send them."""

from __future__ import annotations

from typing import Any

UUID = "5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"
UUID_SCHEMA = {"type": "string", "format": "uuid"}

HEADERS: dict[str, str] = {
    "x-accept-fix": "amount-as-string,longer-names",
    "X-Request-ID": "99391c7e-ad88-49ec-a2ad-99ddcb1f7721",
    "TPP-Session-ID": "3d1f2a52-07c4-4f0c-9f5a-0d8b6f0d5f9e",
    "TPP-Redirect-URI": "https://tpp.example/callback?state=42",
    "TPP-Redirect-Preferred": "true",
    "TPP-Brand-Logging-Information": "A brand of the TPP",
    "Digest": "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "TPP-Signature-Certificate": "MIID...",
    "Signature": (
        'keyId="SN=1A2B,CA=CN=Bank Emulator Sandbox CA,O=Bank Emulator,C=NO",algorithm="rsa-sha256",'
        'headers="(request-target) date digest x-request-id psu-id tpp-redirect-uri",signature="..."'
    ),
    "PSU-ID": UUID,
    "X-PSU-IDENTITY": "14888520059",
    "X-PSU-AuthMethod-Preferred": "HA2",
    "PSU-Corporate-ID": UUID,
    "PSU-Context": "PRIVATE",
    "PSU-IP-Address": "192.0.2.17",
    "PSU-IP-Port": "51112",
    "PSU-User-Agent": "Mozilla/5.0",
    "PSU-Accept": "text/html",
    "PSU-Accept-Charset": "utf-8",
    "PSU-Accept-Encoding": "gzip",
    "PSU-Accept-Language": "nb-NO",
    "PSU-HTTP-Method": "POST",
    "PSU-Device-ID": UUID,
    "PSU-Geo-Location": "GEO:59.9139,10.7522",
}

HEADER_SCHEMAS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {"type": "string", "minLength": 1, "maxLength": 128},
    "TPP-Session-ID": {"type": "string", "minLength": 1, "maxLength": 128},
    "TPP-Redirect-URI": {"type": "string", "format": "uri"},
    "TPP-Redirect-Preferred": {"type": "string", "enum": ["true", "false"], "default": "true"},
    "PSU-ID": UUID_SCHEMA,
    "PSU-Context": {"type": "string", "enum": ["PRIVATE", "CORPORATE"]},
    "PSU-HTTP-Method": {"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
    "PSU-Device-ID": UUID_SCHEMA,
}

HEADER_TEXTS: dict[str, str] = {
    "x-accept-fix": "Changes asked for before they are the default, comma-separated (SPEC 9).",
    "X-Request-ID": "Unique for each call; a repeated creation gets the stored answer.",
    "TPP-Session-ID": "The SCA session: an SCA under it spares further ones for an hour (SPEC 5.3.9).",
    "TPP-Redirect-URI": "Where the customer's browser comes back to after SCA.",
    "Digest": "SHA-256 or SHA-512 of the body, base64 (RFC 3230).",
    "TPP-Signature-Certificate": "The signing certificate, base64 DER on one line.",
    "Signature": "The signature over the request (SPEC 5.2).",
    "PSU-ID": "The customer, as the redirect after the first SCA named it.",
    "X-PSU-IDENTITY": "The customer's national identity number, in place of PSU-ID.",
    "PSU-Corporate-ID": "The corporate agreement that the customer acts under.",
    "PSU-IP-Address": "The customer's IP address; without it the customer is not present (SPEC 8).",
}

PATH: dict[str, str] = {
    "payment-service": "payments",
    "payment-product": "sepa-credit-transfers",
    "tppId": "PSDNO-FSA-DEMO",
}

_DEBTOR = {"bban": "99901000014", "currency": "NOK"}
_CREDITOR = {"bban": "99901100019", "currency": "NOK"}
_DOMESTIC: dict[str, Any] = {
    "instructedAmount": {"amount": "250.00", "currency": "NOK"},
    "creditorName": "Even Eksempel",
    "creditorAccount": _CREDITOR,
    "debtorAccount": _DEBTOR,
    "remittanceInformationUnstructured": "Takk for sist",
}
_SEPA: dict[str, Any] = {
    "endToEndIdentification": "ORDER-2026-0042",
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Librairie Exemple",
    "creditorAccount": {"iban": "FR1420041010050500013M02606", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
    "remittanceInformationUnstructured": "Invoice 42",
}

BODIES: dict[str, dict[str, Any]] = {
    "createPayment": {
        "instant-norwegian-domestic-credit-transfers-straks": {**_DOMESTIC, "creditorAddress": {"country": "NO"}},
        "norwegian-domestic-credit-transfers": _DOMESTIC,
        "sepa-credit-transfers": _SEPA,
        "cross-border-credit-transfers": {
            **_SEPA,
            "instructedAmount": {"amount": "75.00", "currency": "USD"},
            "creditorAgent": "EXAMUS33",
            "creditorAccount": {"bban": "000123456789", "currency": "USD"},
        },
        "periodic norwegian-domestic-credit-transfers": {
            **_DOMESTIC,
            "startDate": "2027-01-15",
            "frequency": "Monthly",
            "executionRule": "following",
            "dayOfExecution": "15",
        },
        "bulk norwegian-domestic-credit-transfers": {
            "debtorAccount": _DEBTOR,
            "batchBookingPreferred": True,
            "payments": [{name: value for name, value in _DOMESTIC.items() if name != "debtorAccount"}],
        },
    },
    "createSigningBasket": {"two payments": {"paymentIds": [UUID]}},
    "createSandboxCustomer": {
        "private": {"customerNumber": "12888512345", "name": "Per Påfunn", "type": "private"},
    },
    "updateSandboxCustomer": {
        "private": {"customerNumber": "14888520059", "name": "Kari Kladd", "type": "private"},
    },
    "createSandboxAccount": {
        "an account": {
            "customerNumber": "14888520059",
            "accountName": "Hyttekonto",
            "bban": "99931000015",
            "iban": "NO1999931000015",
            "currency": "NOK",
            "product": "Brukskonto",
            "cashAccountType": "CACC",
            "creditLine": 0,
            "balances": [
                {"balanceType": "interimAvailable", "balanceAmount": {"amount": "1000.00", "currency": "NOK"}}
            ],
        },
    },
    "putContactInformation": {"a mailbox": {"email": "operations@tpp.example"}},
}
BODIES["updateSandboxAccount"] = BODIES["createSandboxAccount"]
