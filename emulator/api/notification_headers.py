"""The headers of status notifications (Berlin Group 1.3.11), read if the setting `notifications` is on.

A request that creates a payment, basket or consent, or opens an SCA for one, may have TPP-Notification-URI and
TPP-Notification-Content-Preferred. Its 201 says whether the bank will notify (ASPSP-Notification-Support) and of what
(ASPSP-Notification-Content). A malformed header is refused (400). An address that the bank does not send to is not a
reason to refuse a payment: the answer says `false`, with a WARNING that gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography import x509

from emulator.api.certificates import read_certificate
from emulator.api.messages import traceparent
from emulator.api.operation import Call, Reply
from emulator.bank import notifications
from emulator.bank.errors import Message
from emulator.bank.formats import LONGEST_URI, Format, where
from emulator.bank.notification_targets import MalformedAddress, refusal, target_of
from emulator.bank.notifications import CONTENTS, DEFAULT_CONTENT, Resource

URI, CONTENT = "TPP-Notification-URI", "TPP-Notification-Content-Preferred"
SUPPORT, CONTENT_SUPPORTED = "ASPSP-Notification-Support", "ASPSP-Notification-Content"
ANSWER_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    SUPPORT: {"type": "boolean"},
    CONTENT_SUPPORTED: {"type": "string", "pattern": "^status=(SCA|PROCESS|LAST)(,(SCA|PROCESS|LAST)){0,2}$"},
}
SENT_URI, _content = URI.lower(), CONTENT.lower()


def _wrong_address(value: str) -> str | None:
    try:
        target_of(value)
    except MalformedAddress as wrong:
        return str(wrong)
    return None


def contents(value: str | None) -> tuple[str, ...] | None:
    """The contents of notifications that the TPP prefers, some of CONTENTS; None for a malformed value."""
    if value is None:
        return DEFAULT_CONTENT
    names = tuple(re.split(r" *, *", value.removeprefix("status=").strip(" ")))
    return names if set(names) <= set(CONTENTS) and len(set(names)) == len(names) else None


FORMATS: Mapping[str, Format] = {
    URI: Format("an address", {"type": "string", "format": "uri", "maxLength": LONGEST_URI}, _wrong_address),
    CONTENT: where(
        "status= and some of SCA, PROCESS, LAST, each once",
        {"type": "string", "pattern": "^(status=)?(SCA|PROCESS|LAST)( *, *(SCA|PROCESS|LAST)){0,2}$"},
        contents,
    ),
}


def subscribe(call: Call, reply: Reply[Any], resource: Resource, member: str) -> None:
    """Subscribe the TPP to the new resource, whose id is `member` of the path, else of the answer.

    The reply gets the notification headers, or a WARNING if the address is refused.
    """
    target = call.params.get(member) or reply.body[member]
    uri, wanted = call.headers[SENT_URI], contents(call.headers.get(_content)) or DEFAULT_CONTENT
    domains = _domains(call.headers["tpp-signature-certificate"])
    why = refusal(target_of(uri), domains, call.bank.notify_hosts)
    if why is not None:
        reply.headers += ((SUPPORT, "false"),)
        call.warnings = [*call.warnings, Message("FORMAT_ERROR", why, URI, "WARNING")]
        return
    script = call.script.notification
    notifications.subscribe(
        call.bank,
        target,
        resource,
        tpp=call.tpp.id,
        uri=uri,
        content=wanted,
        script=script,
        traceparent=traceparent(call.request.headers),
    )
    subscribed = ",".join(name for name in CONTENTS if name in wanted)
    reply.headers += ((SUPPORT, "true"), (CONTENT_SUPPORTED, f"status={subscribed}"))


@lru_cache(maxsize=256)
def _domains(text: str) -> tuple[str, ...]:
    """The domains of the certificate in TPP-Signature-Certificate: its CN and the DNS names of its SAN."""
    certificate = read_certificate(text).certificate
    names = [str(name.value) for name in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += alternatives.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        pass  # there is none, or it cannot be parsed
    return tuple(dict.fromkeys(names))
