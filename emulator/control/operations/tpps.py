"""`tpps` and `certificate`: issue TPP certificates, and show that of the bank."""

from __future__ import annotations

from base64 import b64encode
from contextlib import ExitStack
from typing import Annotated, Any, NotRequired

from pydantic import Field

from emulator.api.certificates import identity
from emulator.bank.errors import BankError
from emulator.bank.validation import Omittable, filled
from emulator.ca import ROLES, CertificateAuthority, Credentials, IssueRefused, TppExists
from emulator.control.operation import LIMIT, ControlCall, Json, Work, operation
from emulator.control.operations import Closed
from emulator.scenario.actors import NewTpp
from emulator.settings import KEYSTORE_PASSWORD

_Name = Annotated[str, filled(63)]


class IssueTpp(NewTpp):
    """A TPP to issue a certificate to."""

    name: _Name
    subject: Omittable[_Name] = Field(None, description="The common name in the certificate; omitted: name.")
    replace: bool = Field(False, description="Replace the TPP of this name.")
    keystore: bool = Field(
        False, description="Also return certificate and key as PKCS #12 in base64; its password is bank-emulator."
    )


class Tpp(Closed):
    """A TPP and its certificate in PEM."""

    tppId: str
    name: str
    roles: list[str]
    organizationIdentifier: str
    certificate: str


class IssuedTpp(Tpp):
    """A new TPP with its key and the CA in PEM; `keystore`: certificate and key as PKCS #12 in base64, on request."""

    key: str
    caCertificate: str
    keystore: NotRequired[str]


def _shown(credentials: Credentials) -> dict[str, Any]:
    tpp = identity(credentials.certificate)
    return {
        "tppId": tpp.id,
        "name": credentials.name,
        "roles": [role for role in ROLES if role in tpp.roles],
        "organizationIdentifier": tpp.id,
        "certificate": credentials.certificate_pem,
    }


@operation("GET", "/tpps", {200: ("The TPPs, without their keys.", {"tpps": list[Tpp]})}, query=(LIMIT,))
def list_tpps(call: ControlCall[Any]) -> Json:
    """List the TPPs with a certificate of the sandbox CA, newest first."""
    tpps = call.authority.tpps()[: call.query["limit"]]
    return {"tpps": [_shown(credentials) for credentials in tpps]}


def issued(
    authority: CertificateAuthority, wanted: IssueTpp, *, path: str = "", within: ExitStack | None = None
) -> dict[str, Any]:
    """The answer for a new TPP, with its key; `path` is a prefix of the members that an error names.

    If what it is issued `within` raises, it was not issued.
    """
    try:
        credentials = authority.issue(**wanted.model_dump(exclude={"keystore"}), within=within)
    except TppExists:
        text = f"The TPP {wanted.name} already exists; replace: true issues it again."
        raise BankError("CONFLICT", text, f"{path}name") from None
    except IssueRefused as refused:
        raise BankError("FORMAT_ERROR", str(refused), f"{path}{refused.member}") from None
    shown = {
        **_shown(credentials),
        "key": credentials.key_pem.decode(),
        "caCertificate": authority.certificate_pem,
    }
    if wanted.keystore:
        shown["keystore"] = b64encode(credentials.keystore(KEYSTORE_PASSWORD)).decode()
    return shown


@operation(
    "POST",
    "/tpps",
    {
        201: ("Certificate, key and CA certificate in PEM; only this answer has the key.", IssuedTpp),
        409: "The name is taken.",
    },
    body=IssueTpp,
    example={"name": "acme", "roles": ["PISP", "AISP"]},
)
def issue_tpp(call: ControlCall[IssueTpp]) -> Work:
    """Issue a certificate and key to a new TPP; with a flaw, a faulty certificate."""
    shown = issued(call.authority, call.body)
    yield from call.authority.lasting()
    call.banks.publish_to_all("tpps", shown["name"], "issued")
    return shown


@operation("GET", "/certificate", {200: ("The certificate in PEM.", {"certificate": str})})
def get_bank_certificate(call: ControlCall[Any]) -> Json:
    """Get the certificate that signs answers with the setting sign_responses."""
    return {"certificate": call.authority.answer_credentials().certificate_pem}
