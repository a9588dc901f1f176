"""Signs answers with the bank's certificate when the setting `sign_responses` says so (SPEC 5.2.7, CONTRACT 13)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.api.messages import Response
from emulator.api.pipeline import Sign, Signer
from emulator.bank.clock import real_now
from emulator.ca import Credentials
from emulator.httpsig.dates import format_date
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import digest_value, signature_header


def response_signer(credentials: Callable[[], Credentials]) -> Signer:
    """What adds Date, Digest and Signature to an answer; its X-Request-ID is covered when it has one.

    A Digest or Signature that a scripted rule has set stays as it is; a scripted Digest is what is signed.
    `credentials` is asked for the first answer, so that a bank that signs nothing makes no key; raises as it does.
    """

    def signer() -> Sign:
        signing = credentials()

        def sign(response: Response) -> None:
            present = {name.lower(): value for name, value in response.headers}
            date, digest = format_date(real_now()), present.get("digest") or digest_value(response.body)
            request_id = [("x-request-id", present["x-request-id"])] if "x-request-id" in present else []
            lines = [("digest", digest), *request_id, ("date", date)]
            signature = signature_header(lines, key_id=key_id_for(signing.certificate), key=signing.key)
            added = (("Date", date), ("Digest", digest), ("Signature", signature))
            response.headers += [(name, value) for name, value in added if name.lower() not in present]

        return sign

    return signer
