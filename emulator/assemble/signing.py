"""Signs answers with the certificate of the bank, for the setting `sign_responses` (SPEC 5.2.7, CONTRACT 13)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.api.messages import Response
from emulator.api.service import Sign, Signer
from emulator.bank.clock import real_now
from emulator.ca import Credentials
from emulator.httpsig.dates import format_date
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import digest_value, signature_header


def response_signer(credentials: Callable[[], Credentials]) -> Signer:
    """A function that adds Date, Digest and Signature to an answer; the signature covers its X-Request-ID too.

    A Digest or Signature of a scripted rule is not changed, and a scripted Digest is signed. `credentials` is called
    for the first signed answer only, as it generates a key; its exceptions pass through.
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
