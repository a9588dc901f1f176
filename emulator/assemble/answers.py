"""Signs answers with the bank's certificate when the setting `sign_responses` says so (SPEC 5.2.7, CONTRACT 13)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from emulator.api.messages import Response
from emulator.authority import Credentials
from emulator.bank.clock import real_now
from emulator.httpsig.dates import format_date
from emulator.httpsig.digest import digest_value
from emulator.httpsig.header import render
from emulator.httpsig.keyid import key_id_for


def response_signer(credentials: Callable[[], Credentials]) -> Callable[[Response], None]:
    """A function that adds Date, Digest and Signature to an answer; its X-Request-ID is covered when it has one.

    `credentials` is asked at the first answer, so that a bank that signs nothing makes no key.
    """

    def sign(response: Response) -> None:
        signing = credentials()
        values = {"digest": digest_value(response.body)}
        values |= {name.lower(): value for name, value in response.headers if name == "X-Request-ID"}
        values["date"] = format_date(real_now())
        text = "\n".join(f"{name}: {value}" for name, value in values.items())
        signature = b64encode(signing.key.sign(text.encode(), PKCS1v15(), SHA256())).decode()
        response.headers += [
            ("Date", values["date"]),
            ("Digest", values["digest"]),
            (
                "Signature",
                render(
                    key_id=key_id_for(signing.certificate),
                    algorithm="rsa-sha256",
                    headers=tuple(values),
                    signature=signature,
                ),
            ),
        ]

    return sign
