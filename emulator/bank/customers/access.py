"""Access control between a signed request and a customer's accounts (consents.md).

For account data the first of these refuses. The order decides what a TPP learns: whether an account exists only about
customers that it knows, and nothing about other customers' accounts.

    asked                                     else
    PSU-ID, given to this TPP                 401 SCA_NOT_FOUND, PSU_CREDENTIALS_INVALID
    the account in the path is the person's   404 RESOURCE_UNKNOWN
    agreement and context fit the person      401 PSU_CREDENTIALS_INVALID, 400 HTTP_HEADER_REQUIRED
    a live session; not for one account       401 SCA_NOT_FOUND, SCA_EXPIRED, PSU_CREDENTIALS_INVALID
    without PSU-IP-Address
    a valid consent that covers the account   401 CONSENT_UNKNOWN, CONSENT_EXPIRED, CONSENT_INVALID
    the id is not that of another consent     404 RESOURCE_UNKNOWN
    without PSU-IP-Address: 4 calls in 24 h   429 ACCESS_EXCEEDED

Payments and baskets need the PSU alone (`payer`), the list of agreements a live session (`session_holder`). Each 401 is
ScaNeeded, to which the pipeline adds a scaRedirect. Only the counts of unattended calls are written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.customers import consents, people, sessions
from emulator.bank.documents import Account, Card, Consent, Psu, Quota, Session
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.kinds import ACCOUNT, CARD, QUOTA, HolderKind

UNATTENDED_CALLS = 4
COUNTED = ("balances", "transactions", "details")  # operations whose unattended calls are counted
QUOTA_WINDOW = timedelta(hours=24)
DETAILS_CONSENT = timedelta(days=90)

Held = TypeVar("Held", Account, Card)


@dataclass(slots=True)
class Claim:
    """A request's statements about its customer: header values as sent (None: absent)."""

    tpp_id: str
    psu_id: str | None = None
    identity: str | None = None
    session_id: str | None = None
    context: str | None = None
    agreement: str | None = None
    attended: bool = True


@dataclass(slots=True)
class Caller:
    """The customer of a request: the person, and the context and agreement in which the person acts."""

    national_id: str
    psu_id: str | None
    context: str = people.PRIVATE
    agreement: str | None = None
    consent: Consent | None = None
    held: Account | Card | None = None  # the account or card account that is read

    def shown(self, bank: Bank, resource_id: str) -> str:
        """The resourceId of an account or card account for this caller."""
        return resource_id if self.consent is None else consents.resource_id(bank, self.consent, resource_id)


def known_psu(bank: Bank, claim: Claim) -> Psu:
    """The PSU with the request's PSU-ID; ScaNeeded if there is none, or if the id belongs to another TPP."""
    if claim.psu_id is None:
        raise ScaNeeded("SCA_NOT_FOUND", "The customer is not known yet: send the PSU to scaRedirect.", "PSU-ID")
    psu = people.psu_of(bank, claim.tpp_id, claim.psu_id)
    if psu is None:
        raise ScaNeeded("PSU_CREDENTIALS_INVALID", "This PSU-ID was not given to this TPP.", "PSU-ID")
    if claim.identity is not None and claim.identity != psu["nationalId"]:
        text = "X-PSU-IDENTITY names another person than PSU-ID."
        raise ScaNeeded("PSU_CREDENTIALS_INVALID", text, "X-PSU-IDENTITY")
    return psu


def _own_sessions(bank: Bank, claim: Claim, national_id: str) -> list[Session]:
    if claim.session_id is None:
        return []
    return [s for s in sessions.with_id(bank, claim.tpp_id, claim.session_id) if s["nationalId"] == national_id]


def _acting(bank: Bank, claim: Claim, national_id: str, own: Sequence[Session] | None = None) -> tuple[str, str | None]:
    """Context and agreement of the request: from its headers, else from its session (sca.md#corporate-context).

    `own`: the person's sessions under the request's id, if already read.
    """
    if claim.agreement is not None:
        agreement = claim.agreement
        if all(a["id"] != agreement for a in people.agreements_of(bank, national_id)):
            raise ScaNeeded(
                "PSU_CREDENTIALS_INVALID", "The customer has no such corporate agreement.", "PSU-Corporate-ID"
            )
        return people.CORPORATE, agreement
    if own is None and claim.context is None:
        own = _own_sessions(bank, claim, national_id)
    context = claim.context or _context_of_sessions(own or ())
    if context == people.CORPORATE and claim.psu_id is not None:
        raise BankError(
            "HTTP_HEADER_REQUIRED",
            "In the corporate context PSU-Corporate-ID must name the agreement that the customer acts under.",
            "PSU-Corporate-ID",
        )
    return context, None


def consenting(bank: Bank, claim: Claim) -> str | None:
    """The national identity number of the customer of a request about a consent.

    With a PSU-ID it is refused as when accounts are read, but no live session is needed. Without one the customer is
    not known, None, and nothing is checked.
    """
    if claim.psu_id is None:
        return None
    national_id = known_psu(bank, claim)["nationalId"]
    _acting(bank, claim, national_id)
    return national_id


def _context_of_sessions(own: Sequence[Session]) -> str:
    """The context of the sessions under the id, without those that had ended when the latest one started (assumed).

    It must not depend on bank time, because results of `payer` are cached until a session changes.
    """
    latest = max((str(s["created"]) for s in own), default="")
    contexts = {s["context"] for s in own if s["created"] == latest or str(s.get("ended", s["expires"])) > latest}
    return people.CORPORATE if contexts == {people.CORPORATE} else people.PRIVATE


def likely_context(bank: Bank, claim: Claim, *, of_session: bool = False) -> str | None:
    """The context of a caller; never refuses, None if the customer is not known.

    `of_session`: as for `session_holder`, whatever the headers say.
    """
    psu = None if claim.psu_id is None else people.psu_of(bank, claim.tpp_id, claim.psu_id)
    national_id = claim.identity if psu is None else psu["nationalId"]
    if of_session and national_id is not None:
        live = [s["context"] for s in _own_sessions(bank, claim, national_id) if sessions.is_live(bank, s)]
        if live:
            return str(live[0])
    if claim.context is not None or claim.agreement is not None:
        return claim.context or people.CORPORATE
    return None if national_id is None else _context_of_sessions(_own_sessions(bank, claim, national_id))


def payer(bank: Bank, claim: Claim) -> Caller | None:
    """The customer of a payment or basket operation, from the PSU-ID or from X-PSU-IDENTITY.

    No live session is needed, as a payment has its own SCA. None if neither was sent, as only `lenient` allows.
    """
    national_id, psu_id = claim.identity, None
    if claim.psu_id is not None:
        psu = known_psu(bank, claim)
        national_id, psu_id = psu["nationalId"], psu["id"]
    elif national_id is not None and people.person(bank, national_id) is None:
        text = "The bank knows no customer with this identity number."
        raise ScaNeeded("PSU_CREDENTIALS_INVALID", text, "X-PSU-IDENTITY")
    return None if national_id is None else Caller(national_id, psu_id, *_acting(bank, claim, national_id))


def account_reader(
    bank: Bank, claim: Claim, *, resource: str | None = None, kind: HolderKind = ACCOUNT, quota: str | None = None
) -> Caller:
    """The customer whose account data is read, with the consent.

    `resource`: the account (or card account) id in the path, None for lists, which need a live session even without
    the PSU; `quota`: the operation whose unattended calls this one counts among, if any.
    """
    psu = known_psu(bank, claim)
    national_id = psu["nationalId"]
    held: Account | Card | None = None
    reached_in: str | None = None
    if resource is not None:
        identity = consents.resource_with_id(bank, claim.tpp_id, national_id, resource)
        held = bank.documents.get(ACCOUNT, identity) if kind is ACCOUNT else bank.documents.get(CARD, identity)
        reached_in = None if held is None else people.reached_in(bank, national_id, held)
        # a deleted one is only in lists
        if held is None or held["status"].lower() == accounts.DELETED or reached_in is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no account {resource}.", "id")
    own = _own_sessions(bank, claim, national_id)
    context, agreement = _acting(bank, claim, national_id, own)
    caller = Caller(national_id, psu["id"], context, agreement, held=held)
    if claim.attended or resource is None:
        _check_session(bank, claim, caller, own)
    caller.consent = consent = _valid_consent(bank, claim, caller)
    if held is not None:
        # a shared account may have left this context while the person can still use it in another one
        reached = context == reached_in == people.PRIVATE or people.reaches(bank, national_id, context, agreement, held)
        if not reached or held["id"] not in (*consent["accounts"], *consent["cards"]):
            raise ScaNeeded("CONSENT_INVALID", "The consent does not cover this account.")
        is_its_one_id = bank.settings.account_ids == "same" and resource == held["id"]
        if not is_its_one_id and resource != caller.shown(bank, held["id"]):
            raise BankError("RESOURCE_UNKNOWN", f"The account has the id {resource} under another consent.", "id")
    if not claim.attended and quota == "details" and consents.age(bank, consent) > DETAILS_CONSENT:
        raise ScaNeeded("CONSENT_EXPIRED", "Without the PSU present, details need a consent of the last 90 days.")
    return caller


def shared_accounts(bank: Bank, consent: Consent) -> list[Account]:
    """The accounts of a consent that the customer can still access in its context and agreement."""
    reached = people.accounts_of(bank, consent["nationalId"], consent["context"], consent["agreement"])
    return _shared(consent["accounts"], reached)


def shared_cards(bank: Bank, consent: Consent) -> list[Card]:
    """The card accounts of a consent that are still the customer's."""
    return _shared(consent["cards"], people.cards_of(bank, consent["nationalId"], consent["context"]))


def _shared(names: Sequence[str], reached: Sequence[Held]) -> list[Held]:
    """Those of `reached` that the consent names, in its order."""
    by_id = {resource["id"]: resource for resource in reached}
    return [by_id[name] for name in names if name in by_id]


def session_holder(bank: Bank, claim: Claim) -> Caller:
    """The PSU of a live session in any context; the list of agreements needs no more."""
    psu = known_psu(bank, claim)
    own = _own_sessions(bank, claim, psu["nationalId"])
    live = [s for s in own if sessions.is_live(bank, s)]
    if not live:
        raise _session_missing(bank, claim, own)
    session = live[0]
    return Caller(psu["nationalId"], psu["id"], session["context"], session["agreement"])


def _session_missing(bank: Bank, claim: Claim, own: Sequence[Session]) -> ScaNeeded:
    """Why there is no live session: there was none, it has ended, or it belongs to another person."""
    path = "TPP-Session-ID"
    if claim.session_id is None:
        return ScaNeeded("SCA_NOT_FOUND", "No session: send the PSU to scaRedirect.", path)
    if any(session.get("ended") for session in own):
        return ScaNeeded("SCA_EXPIRED", "A newer session has replaced this one.", path)
    if own:
        return ScaNeeded("SCA_EXPIRED", "The SCA of this session is an hour old or more.", path)
    if sessions.with_id(bank, claim.tpp_id, claim.session_id):
        return ScaNeeded("PSU_CREDENTIALS_INVALID", "This session belongs to another PSU.", path)
    return ScaNeeded("SCA_NOT_FOUND", "No SCA has been completed under this session id.", path)


def _check_session(bank: Bank, claim: Claim, caller: Caller, own: Sequence[Session]) -> None:
    """ScaNeeded unless there is a live session in the context and agreement of the request."""
    matching = [s for s in own if s["context"] == caller.context and s["agreement"] == caller.agreement]
    if any(sessions.is_live(bank, s) for s in matching):
        return
    if not matching and any(sessions.is_live(bank, s) for s in own):
        path = "PSU-Corporate-ID" if claim.agreement else "PSU-Context"
        raise ScaNeeded("PSU_CREDENTIALS_INVALID", "The session is for another context or agreement.", path)
    raise _session_missing(bank, claim, matching or own)


def _valid_consent(bank: Bank, claim: Claim, caller: Caller) -> Consent:
    """The consent of the caller; ScaNeeded unless it is valid."""
    owner = people.Owner(claim.tpp_id, caller.national_id, caller.context, caller.agreement)
    consent = consents.current(bank, owner)
    if consent is None:
        raise ScaNeeded("CONSENT_UNKNOWN", "The customer has given this TPP no consent in this context.")
    state = consents.status(bank, consent)
    if state == "revoked":
        raise ScaNeeded("CONSENT_UNKNOWN", "The customer has revoked the consent.")
    if state == "terminated":
        raise ScaNeeded("CONSENT_UNKNOWN", "The TPP has deleted the consent.")
    if state == "expired":
        raise ScaNeeded("CONSENT_EXPIRED", "The last SCA for this consent is 180 days old or more.")
    return consent


def count_unattended(bank: Bank, claim: Claim, resource: str, operation: str, *, exhausted: bool = False) -> None:
    """Count one call without the PSU: 4 in 24 h per TPP, account and operation, else ACCESS_EXCEEDED.

    `exhausted`: a scripted rule says that the quota is used up, also with the PSU present.
    """
    if exhausted and claim.attended:
        text = f"A scripted rule says that the {operation} of this account have been read too often."
        raise BankError("ACCESS_EXCEEDED", text)
    now = bank.clock.now()
    key = _quota_key(claim.tpp_id, resource, operation)
    calls = _calls(bank, key)
    if exhausted or len(calls) >= UNATTENDED_CALLS:
        raise BankError(
            "ACCESS_EXCEEDED",
            f"Without PSU-IP-Address the {operation} of an account may be read {UNATTENDED_CALLS} times in 24 hours.",
            "PSU-IP-Address",
        )
    bank.documents.put(QUOTA, Quota(id=key, calls=[*calls, stamp(now)]))


def use_up(bank: Bank, consent: Consent) -> None:
    """Use up the calls without the PSU of the next 24 hours, for every account and card that a consent covers."""
    calls = [bank.clock.stamp()] * UNATTENDED_CALLS
    for resource in (*consent["accounts"], *consent["cards"]):
        for operation in COUNTED:
            bank.documents.put(QUOTA, Quota(id=_quota_key(consent["tpp"], resource, operation), calls=list(calls)))


def unattended_calls(bank: Bank, tpp_id: str, resource: str, operation: str) -> int:
    """The number of unattended calls in the last 24 hours, at most UNATTENDED_CALLS."""
    return len(_calls(bank, _quota_key(tpp_id, resource, operation)))


def _quota_key(tpp_id: str, resource: str, operation: str) -> str:
    return f"{tpp_id}|{resource}|{operation}"


def _calls(bank: Bank, key: str) -> list[str]:
    """The moments at which a quota was used in the last 24 hours."""
    now = bank.clock.now()
    quota = bank.documents.get(QUOTA, key)
    return [] if quota is None else [call for call in quota["calls"] if now - moment(call) < QUOTA_WINDOW]
