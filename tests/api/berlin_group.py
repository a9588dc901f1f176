"""What the OpenAPI documents of the Berlin Group say of its answers, in a notation of our own.

Names, types, lengths, enumerations and required members are those of versions 1.3.9 (4 May 2021) and 1.3.12 (6 July
2022), the neighbours of 1.3.11, as they were published with open-source implementations; descriptions are left out.

A line of `OBJECTS` is one object: `name:type` for each member, with `!` when it is required. A type is a scalar of
`SCALARS`, another object, either in brackets for an array, or `{type}` for any further member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

Document = dict[str, Any]
FORMATS = FormatChecker(["date"])


@FORMATS.checks("date-time")
def _is_moment(value: object) -> bool:
    """RFC 3339, which the checker itself knows only with another library."""
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", str(value)))


def _text(most: int) -> Document:
    return {"type": "string", "maxLength": most}


def _form(pattern: str) -> Document:
    return {"type": "string", "pattern": f"^{pattern}$"}


def _one_of(words: str) -> Document:
    return {"type": "string", "enum": words.split()}


SCALARS: dict[str, Document] = {
    "text": {"type": "string"},
    **{f"text{most}": _text(most) for most in (35, 70, 140, 500, 1000)},
    "flag": {"type": "boolean"},
    "number": {"type": "integer"},
    "date": {"type": "string", "format": "date"},
    "moment": {"type": "string", "format": "date-time"},
    "currency": _form("[A-Z]{3}"),
    "country": _form("[A-Z]{2}"),
    "value": _form(r"-?[0-9]{1,14}(\.[0-9]{1,3})?"),
    "iban": _form("[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}"),
    "bban": _form("[a-zA-Z0-9]{1,30}"),
    "bic": _form("[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?"),
    "category": _text(4) | {"minLength": 4},
    "purpose": _form("[A-Z0-9]{4}"),  # an enumeration of about 300 codes of ISO 20022
    "usage": _one_of("PRIV ORGA"),
    "accountStatus": _one_of("enabled deleted blocked"),
    "balanceType": _one_of(
        "closingBooked expected openingBooked interimAvailable interimBooked forwardAvailable nonInvoiced"
    ),
    "rule": _one_of("following preceding"),
    "frequency": _one_of(
        "Daily Weekly EveryTwoWeeks Monthly EveryTwoMonths Quarterly SemiAnnual Annual MonthlyVariable"
    ),
    "day": _form("([1-9]|[12][0-9]|3[01])"),
    "charges": _one_of("DEBT CRED SHAR SLEV"),
    "consentStatus": _one_of("received rejected valid revokedByPsu expired terminatedByTpp partiallyAuthorised"),
    "paymentStatus": _one_of("ACCC ACCP ACSC ACSP ACTC ACWC ACWP RCVD PDNG RJCT CANC ACFC PATC PART"),
    "basketStatus": _one_of("ACSC ACTC PATC RCVD RJCT CANC"),
    "scaStatus": _one_of(
        "received psuIdentified psuAuthenticated scaMethodSelected started unconfirmed finalised failed exempted"
    ),
    "messageCategory": _one_of("ERROR WARNING"),
    "allAccounts": _one_of("allAccounts allAccountsWithOwnerName"),
}

# The headers that a request of either version may carry.
HEADERS = (
    "X-Request-ID Digest Signature TPP-Signature-Certificate PSU-ID PSU-ID-Type PSU-Corporate-ID PSU-Corporate-ID-Type"
    " Consent-ID PSU-IP-Address PSU-IP-Port PSU-Accept PSU-Accept-Charset PSU-Accept-Encoding PSU-Accept-Language"
    " PSU-User-Agent PSU-Http-Method PSU-Device-ID PSU-Geo-Location TPP-Redirect-Preferred TPP-Decoupled-Preferred"
    " TPP-Redirect-URI TPP-Nok-Redirect-URI TPP-Explicit-Authorisation-Preferred TPP-Rejection-NoFunds-Preferred"
    " TPP-Brand-Logging-Information TPP-Notification-URI TPP-Notification-Content-Preferred"
)

_CARD_TRANSACTION = (
    "cardTransactionId:text35 terminalId:text35 transactionDate:date acceptorTransactionDateTime:moment"
    " bookingDate:date transactionAmount!:amount currencyExchange:[rate] originalAmount:amount markupFee:amount"
    " markupFeePercentage:text cardAcceptorId:text35 cardAcceptorAddress:address cardAcceptorPhone:text"
    " merchantCategoryCode:category maskedPAN:text35 transactionDetails:text1000 invoiced:flag"
    " proprietaryBankTransactionCode:text35"
)
_ACCOUNT = (
    "resourceId:text iban:iban bban:bban msisdn:text35 currency!:currency name:text70 displayName:text70 product:text35"
    " cashAccountType:text status:accountStatus bic:bic linkedAccounts:text70 usage:usage details:text500"
    " balances:[balance] _links:links ownerName:text140"
)
_REFERENCE = "iban:iban bban:bban pan:text35 maskedPan:text35 msisdn:text35 currency:currency"
_NEXT = "scaMethods:[method] chosenScaMethod:method challengeData:challenge psuMessage:text500"

OBJECTS: dict[str, str] = {
    "amount": "currency!:currency amount!:value",
    "link": "href:text",
    "links": "{link}",
    "reportLinks": "account!:link {link}",
    "detailLinks": "transactionDetails!:link {link}",
    "downloadLinks": "download!:link {link}",
    "reference": _REFERENCE + " other:other cashAccountType:text",
    "other": "identification!:text35 schemeNameCode:text35 schemeNameProprietary:text35 issuer:text35",
    "address": "streetName:text70 buildingNumber:text townName:text postCode:text country!:country",
    "balance": (
        "balanceAmount!:amount balanceType!:balanceType creditLimitIncluded:flag lastChangeDateTime:moment"
        " referenceDate:date lastCommittedTransaction:text35"
    ),
    "owner": "name!:text70 role:text35",
    "account": _ACCOUNT + " ownerNames:[owner] psuName:text140",
    "accounts": "accounts!:[account]",
    "oneAccount": "account!:account",
    "balances": "account:reference balances!:[balance]",
    "rate": (
        "sourceCurrency!:currency exchangeRate!:text unitCurrency!:currency targetCurrency!:currency"
        " quotationDate!:date contractIdentification:text35"
    ),
    "structured": "reference!:text35 referenceType:text35 referenceIssuer:text35",
    "structured140": "reference!:text140 referenceType:text140 referenceIssuer:text140",
    "entry": (
        "endToEndId:text35 mandateId:text35 checkId:text35 creditorId:text35 transactionAmount!:amount"
        " currencyExchange:[rate] creditorName:text70 creditorAccount:reference creditorAgent:bic"
        " ultimateCreditor:text70 debtorName:text70 debtorAccount:reference debtorAgent:bic ultimateDebtor:text70"
        " remittanceInformationUnstructured:text140 remittanceInformationUnstructuredArray:[text140]"
        " remittanceInformationStructured:structured remittanceInformationStructuredArray:[structured]"
        " purposeCode:purpose"
    ),
    "transaction": (
        "transactionId:text entryReference:text35 endToEndId:text35 batchIndicator:flag"
        " batchNumberOfTransactions:number mandateId:text35 checkId:text35 creditorId:text35 bookingDate:date"
        " valueDate:date transactionAmount!:amount currencyExchange:[rate] creditorName:text70"
        " creditorAccount:reference creditorAgent:bic ultimateCreditor:text70 debtorName:text70"
        " debtorAccount:reference debtorAgent:bic ultimateDebtor:text70 remittanceInformationUnstructured:text140"
        " remittanceInformationUnstructuredArray:[text140] remittanceInformationStructured:structured140"
        " remittanceInformationStructuredArray:[structured] entryDetails:[entry] additionalInformation:text500"
        " purposeCode:purpose bankTransactionCode:text proprietaryBankTransactionCode:text35"
        " balanceAfterTransaction:balance _links:detailLinks"
    ),
    "report": "booked:[transaction] pending:[transaction] information:[transaction] _links!:reportLinks",
    "transactions": "account:reference transactions:report balances:[balance] _links:downloadLinks",
    "transactionDetails": "transactionDetails!:transaction",
    "cardAccount": (
        "resourceId:text maskedPan!:text35 currency!:currency ownerName:text140 name:text70 displayName:text70"
        " product:text35 debitAccounting:flag status:accountStatus usage:usage details:text1000 creditLimit:amount"
        " balances:[balance] _links:links"
    ),
    "cardAccounts": "cardAccounts!:[cardAccount]",
    "oneCardAccount": "cardAccount!:cardAccount",
    "cardBalances": "cardAccount:reference debitAccounting:flag balances!:[balance]",
    "cardTransaction": _CARD_TRANSACTION + " valueDate:date grandTotalAmount:amount",
    "cardReport": "booked:[cardTransaction] pending:[cardTransaction] _links!:links",
    "cardTransactions": (
        "cardAccount:reference debitAccounting:flag cardTransactions:cardReport balances:[balance] _links:downloadLinks"
    ),
    "message": "category!:messageCategory code!:text path:text text:text500",
    "refusal": "tppMessages:[message] _links:links",
    "method": "authenticationType!:text authenticationVersion:text authenticationMethodId!:text35 name:text",
    "challenge": "image:text data:[text] imageLink:text otpMaxLength:number otpFormat:text additionalInformation:text",
    "paymentCreated": (
        "transactionStatus!:paymentStatus paymentId!:text transactionFees:amount currencyConversionFee:amount"
        " estimatedTotalAmount:amount estimatedInterbankSettlementAmount:amount transactionFeeIndicator:flag"
        " scaStatus:scaStatus tppMessages:[message] _links!:links " + _NEXT
    ),
    "paymentStatusAnswer": (
        "transactionStatus!:paymentStatus fundsAvailable:flag psuMessage:text500 ownerNames:[owner] psuName:text140"
        " _links:links tppMessages:[message]"
    ),
    "payment": (
        "endToEndIdentification:text35 instructionIdentification:text35 debtorName:text70 debtorAccount!:reference"
        " ultimateDebtor:text70 instructedAmount!:amount creditorAccount!:reference creditorAgent:bic"
        " creditorName!:text70 creditorAddress:address creditorId:text35 ultimateCreditor:text70 purposeCode:purpose"
        " chargeBearer:charges remittanceInformationUnstructured:text140"
        " remittanceInformationStructured:structured140 remittanceInformationStructuredArray:[structured]"
        " requestedExecutionDate:date transactionStatus:paymentStatus tppMessages:[message]"
    ),
    "periodicPayment": (
        "endToEndIdentification:text35 debtorName:text70 debtorAccount!:reference ultimateDebtor:text70"
        " instructedAmount!:amount creditorAccount!:reference creditorAgent:bic creditorId:text35"
        " creditorName!:text70 creditorAddress:address ultimateCreditor:text70 purposeCode:purpose"
        " remittanceInformationUnstructured:text140 remittanceInformationStructured:structured140"
        " startDate!:date endDate:date executionRule:rule frequency!:frequency dayOfExecution:day"
        " transactionStatus:paymentStatus tppMessages:[message]"
    ),
    "bulkPayment": (
        "batchBookingPreferred:flag requestedExecutionDate:date acceptorTransactionDateTime:moment"
        " debtorAccount!:reference paymentInformationId:text35 payments!:[bulkEntry] transactionStatus:paymentStatus"
        " tppMessages:[message]"
    ),
    "bulkEntry": (
        "endToEndIdentification:text35 instructionIdentification:text35 debtorName:text70 ultimateDebtor:text70"
        " instructedAmount!:amount creditorAccount!:reference creditorAgent:bic creditorAgentName:text140"
        " creditorName!:text70 creditorAddress:address ultimateCreditor:text70 purposeCode:purpose"
        " chargeBearer:charges remittanceInformationUnstructured:text140"
        " remittanceInformationUnstructuredArray:[text140] remittanceInformationStructured:structured140"
        " remittanceInformationStructuredArray:[structured]"
    ),
    "cancelled": "transactionStatus!:paymentStatus scaStatus:scaStatus tppMessages:[message] _links:links " + _NEXT,
    "authorisationStarted": "scaStatus!:scaStatus authorisationId!:text _links!:links tppMessages:[message] " + _NEXT,
    "authorisations": "authorisationIds!:[text]",
    "authorisation": (
        "scaStatus!:scaStatus psuMessage:text500 psuName:text140 trustedBeneficiaryFlag:flag _links:links"
        " tppMessages:[message]"
    ),
    "access": (
        "accounts:[reference] balances:[reference] transactions:[reference] availableAccounts:allAccounts"
        " availableAccountsWithBalance:allAccounts allPsd2:allAccounts restrictedTo:[text]"
    ),
    "consentCreated": (
        "consentStatus!:consentStatus consentId!:text scaStatus:scaStatus tppMessages:[message] _links!:links " + _NEXT
    ),
    "consent": (
        "access!:access recurringIndicator!:flag validUntil!:date frequencyPerDay!:number lastActionDate!:date"
        " consentStatus!:consentStatus _links:links"
    ),
    "consentStatusAnswer": "consentStatus!:consentStatus psuMessage:text500",
    "basketCreated": "transactionStatus!:basketStatus basketId!:text tppMessages:[message] _links!:links " + _NEXT,
    "basket": "payments:[text] consents:[text] transactionStatus!:basketStatus _links:links",
    "basketStatusAnswer": "transactionStatus!:basketStatus",
}

# The same objects in 1.3.9, where that differs.
BEFORE: dict[str, str] = {
    "reference": _REFERENCE + " otherAccountIdentification:text",
    "account": _ACCOUNT,
    "structured140": "",
    **{
        name: OBJECTS[name]
        .replace("Structured:structured140", "Structured:text140")
        .replace("[structured]", "[text140]")
        for name in ("transaction", "payment", "periodicPayment", "bulkEntry")
    },
    "entry": OBJECTS["entry"]
    .replace("Structured:structured ", "Structured:text140 ")
    .replace("[structured]", "[text140]"),
    "transactionDetails": "transactionsDetails!:transaction",
    "cardTransaction": _CARD_TRANSACTION,
}
VERSIONS = {"1.3.9": {**OBJECTS, **BEFORE}, "1.3.12": OBJECTS}


def _schema(written: str) -> Document:
    if written.startswith("["):
        return {"type": "array", "items": _schema(written[1:-1])}
    return SCALARS.get(written) or {"$ref": f"#/components/schemas/{written}"}


def schemas(objects: dict[str, str], *, closed: bool = False) -> dict[str, Document]:
    """Objects as JSON schemas; `closed` ones refuse members that are not theirs."""
    schemas = {}
    for name, line in objects.items():
        members: dict[str, Document] = {}
        required = []
        further: Document | bool = False
        for part in line.split():
            if part.startswith("{"):
                further = _schema(part[1:-1])
                continue
            member, _, written = part.partition(":")
            members[member.rstrip("!")] = _schema(written)
            if member.endswith("!"):
                required.append(member[:-1])
        schemas[name] = {"type": "object", "properties": members}
        if further or closed:
            schemas[name]["additionalProperties"] = further
        if required:
            schemas[name]["required"] = required
    return schemas


def _parameter(place: str, name: str, schema: Document, *, required: bool = True) -> Document:
    return {"name": name, "in": place, "required": required, "schema": schema}


_ACCOUNT_READS = {
    "/v1/accounts": ("getAccountList", "accounts"),
    "/v1/accounts/{account-id}": ("readAccountDetails", "oneAccount"),
    "/v1/accounts/{account-id}/balances": ("getBalances", "balances"),
    "/v1/accounts/{account-id}/transactions": ("getTransactionList", "transactions"),
    "/v1/accounts/{account-id}/transactions/{transactionId}": ("getTransactionDetails", "transactionDetails"),
    "/v1/card-accounts": ("getCardAccountList", "cardAccounts"),
    "/v1/card-accounts/{account-id}": ("ReadCardAccount", "oneCardAccount"),
    "/v1/card-accounts/{account-id}/balances": ("getCardAccountBalances", "cardBalances"),
    "/v1/card-accounts/{account-id}/transactions": ("getCardAccountTransactionList", "cardTransactions"),
}
_PAYMENT = "/v1/{payment-service}/{payment-product}"
_PAYMENT_READS = {
    f"{_PAYMENT}/{{paymentId}}": ("getPaymentInformation", "payment"),
    f"{_PAYMENT}/{{paymentId}}/status": ("getPaymentInitiationStatus", "paymentStatusAnswer"),
}


def openapi(version: str, **changed: str) -> Document:
    """The document of a version for reading accounts, cards and payments, and for initiating a payment.

    `changed` gives lines of `OBJECTS` that replace those of the version.
    """
    request_id = _parameter("header", "X-Request-ID", {"type": "string", "format": "uuid"})
    consent_id = _parameter("header", "Consent-ID", SCALARS["text"])
    window = [
        _parameter("query", "dateFrom", SCALARS["date"], required=False),
        _parameter("query", "bookingStatus", _one_of("information booked pending both")),
    ]

    def operation(name: str, kind: str, path: str, status: str, tag: str, extra: list[Document]) -> Document:
        ids = [_parameter("path", id_, SCALARS["text"]) for id_ in re.findall("{(.+?)}", path)]
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind}"}}}
        answer = {status: {"description": "OK", "content": content}}
        return {"operationId": name, "tags": [tag], "parameters": [*ids, request_id, *extra], "responses": answer}

    paths: dict[str, Document] = {}
    for path, (name, kind) in _ACCOUNT_READS.items():
        extra = [consent_id, *(window if path.endswith("/transactions") else [])]
        paths[path] = {"get": operation(name, kind, path, "200", "AIS", extra)}
    for path, (name, kind) in _PAYMENT_READS.items():
        paths[path] = {"get": operation(name, kind, path, "200", "PIS", [])}
    address = _parameter("header", "PSU-IP-Address", {"type": "string", "format": "ipv4"})
    initiation = operation("initiatePayment", "paymentCreated", _PAYMENT, "201", "PIS", [address])
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/payment"}}}
    paths[_PAYMENT] = {"post": {**initiation, "requestBody": {"required": True, "content": body}}}
    return {
        "openapi": "3.0.1",
        "info": {"title": "Berlin Group", "version": version},
        "paths": paths,
        "components": {"schemas": schemas({**VERSIONS[version], **changed})},
    }


class Version:
    """The answers of one version of the framework."""

    def __init__(self, name: str) -> None:
        self._schemas = schemas(VERSIONS[name], closed=True)
        self._validators: dict[str, Draft202012Validator] = {}

    def differences(self, kind: str, answer: Any) -> Iterator[tuple[str, str]]:
        """What a client of this version does not read as it is: `unknown` or `misfit`, and the name of the member."""
        if kind not in self._validators:
            document = {"$ref": f"#/components/schemas/{kind}", "components": {"schemas": self._schemas}}
            self._validators[kind] = Draft202012Validator(document, format_checker=FORMATS)
        for error in self._validators[kind].iter_errors(answer):
            if error.validator == "additionalProperties":
                named = error.schema["properties"]
                yield from (("unknown", member) for member in error.instance if member not in named)
            elif error.validator == "required":
                yield from (("missing", member) for member in error.validator_value if member not in error.instance)
            else:
                yield "misfit", next(str(part) for part in reversed(error.absolute_path) if isinstance(part, str))
