"""Strong customer authentication: one state machine for the pages, the control interface and scenarios.

A request opens an SCA (`authorisations.open_sca`). Its id is the single-use token of the address to which the TPP sends
the customer. It goes through the steps identity, method, context and approve. The step is not stored but follows from
what is known (`steps`), so a step whose result the request has brought is skipped (sca.md#the-pages). Three states:

    status       meaning                              changed by
    started      waits for the customer               the steps; they only add members
    finalised    approved                             `complete`
    failed       declined, expired, refused, voided   `decline`, `fail`, `void`

Nothing leaves `finalised` and `failed`. The functions here do not check that: their callers ask `is_open` first (pages:
410, control: CONFLICT) and call what ends an SCA within a transaction, which undoes what a FORMAT_ERROR leaves half
done. The oldest SCAs beyond PASSING_KEPT and `authorisations.MOST_KEPT` are deleted, and their pages are 404. An SCA
older than LIFETIME stays `started` until somebody touches it, as its page still sends the customer back to the TPP, and
every reader asks `is_late`. Only its notification is a step of bank time (`lapse`). The ten minutes stand in words in
`EXPIRED`, the console and consents.md#all-limits. How long a session lasts is in `customers/sessions.py`, a consent in
`customers/consents.py`. A method is a name in `METHODS`, from which pages, scenarios and the control interface follow;
its two texts are `sca_method_NAME` and `sca_method_hint_NAME` (`web/pages/wording.json`, in the same order).
headers.md#x-psu-authmethod-preferred lists all; one that does not end in _MOBILE or ID is also in `_METHOD` and its
words (`api/headers.py`).

`complete` does everything at the end, in this order: obstacles, a scripted outcome, the effect on the target, the
session, the consent, the redirect. The effects on what is approved (payment, basket, cancellation) are the bank's
`sca_effects`; an SCA for access, consent or a user only has session and consent.

    failure                                     SCA      target                        redirect
    unknown identity number                     failed   unchanged                     PSU_CREDENTIALS_INVALID
    (on the pages the first one is asked again, `note_mistyping`)
    another person than the request's           failed   unchanged                     PSU_CREDENTIALS_INVALID
    nothing to approve in the wanted context    failed   unchanged                     PSU_CREDENTIALS_INVALID
    older than 10 minutes                       failed   unchanged                     SCA_EXPIRED
    target needs it no more                     failed   unchanged                     SCA_INVALID
    customer declines                           failed   `declined`: RCVD becomes RJCT SCA_INVALID
    business rules refuse the approval          failed   unchanged                     the code of the rule
    a wrong form (method, context, accounts)    started  unchanged                     none: FORMAT_ERROR
    scripted: reject, expire, fail, abandon     as those; abandon leaves it started and gives no redirect

Every end has a redirect for the customer's browser, the TPP's own address with the outcome appended
(sca.md#redirect-after-success), except `void`: then the target has ended otherwise, and nobody is sent anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote, unquote_plus, urlencode

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.customers import consents, people, sessions
from emulator.bank.documents import Agreement, Sca, Session
from emulator.bank.errors import BankError
from emulator.bank.kinds import BASKET, PAYMENT, SCA
from emulator.store import Kind

LIFETIME = timedelta(minutes=10)
# The methods that the bank offers; real ones that carry a brand have names of the sandbox.
METHODS = ("ENGANGSKODEAPP_BIOMETRI", "HA2", "SANDBOX_MOBILE", "SANDBOXID")
ACCOUNT_ACCESS = ("access", "consent")
# SCAs with these purposes may never be completed (a client that polls without a session opens one each time), so the
# oldest of them are evicted.
PASSING = ("access", "consent", "user")
PASSING_KEPT = 5_000
_LINKED: Mapping[str, Kind[Any]] = {"payment": PAYMENT, "basket": BASKET}  # whose target names its open SCA


@dataclass(frozen=True, slots=True)
class ScaFailure:
    """How an SCA failed, as the redirect reports it; `system`: the internal system that failed, of a server error."""

    status: int
    code: str
    message: str
    system: str | None = None


DECLINED = ScaFailure(401, "SCA_INVALID", "The customer declined.")
EXPIRED = ScaFailure(401, "SCA_EXPIRED", "The authentication was not completed within 10 minutes.")
UNKNOWN_PERSON = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The bank knows no customer with this identity number.")
OTHER_PERSON = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The identified person is not the customer of this request.")
NO_CONTEXT = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The customer has nothing to approve in the requested context.")
NOT_AWAITED = ScaFailure(400, "SCA_INVALID", "There is nothing left to approve.")
REFUSED = ScaFailure(401, "SCA_INVALID", "The authentication failed.")
CORE_FAILED = ScaFailure(500, "SYSTEM_ERROR", "A system of the bank failed.", "core")


def failure_like(
    status: int | None = None, code: str | None = None, message: str | None = None, system: str | None = None
) -> ScaFailure:
    """A failure with these members; missing ones are taken from the built-in failure that is most similar.

    Without any member it is CORE_FAILED. Only a server error names a system by default.
    """
    if code is None:
        similar = CORE_FAILED if status is None or status >= CORE_FAILED.status else REFUSED
    else:
        alike = (DECLINED, EXPIRED, UNKNOWN_PERSON, CORE_FAILED)
        similar = next((each for each in alike if each.code == code), REFUSED)
    status = similar.status if status is None else status
    default_system = similar.system if status >= CORE_FAILED.status else None
    return ScaFailure(status, code or similar.code, message or similar.message, system or default_system)


# The status in the redirect for the codes with which the business rules may refuse an approval.
_STATUSES = {"PSU_CREDENTIALS_INVALID": 401, "FORBIDDEN": 403, "PRODUCT_INVALID": 403, "CONFLICT": 409}


def refusal(error: BankError) -> ScaFailure:
    """The failure of an SCA whose approval the business rules refuse."""
    return ScaFailure(_STATUSES.get(error.code, 400), error.code, error.messages[0].text)


@dataclass(frozen=True, slots=True)
class ScaEffect:
    """The effect of the end of an SCA on its target: each function takes the bank and the target's id.

    `awaited` returns whether the target still needs the SCA: another person may have signed it, or it may have
    expired. `approved` also takes the person who approved and the agreement that this person chose (None: private, or
    no choice), and raises BankError before it changes anything. Without `declined`, a refusal changes only the SCA.
    """

    awaited: Callable[[Bank, str], bool]
    approved: Callable[[Bank, str, str, str | None], None]
    declined: Callable[[Bank, str], None] | None = None


def _effect(bank: Bank, sca: Sca) -> ScaEffect | None:
    """The effect of an SCA on its target; None for one that has no effect but session and consent."""
    return None if sca["purpose"] in PASSING else bank.sca_effects[sca["purpose"]]


def get(bank: Bank, token: str) -> Sca | None:
    """The SCA behind a token, whatever its state."""
    return bank.documents.get(SCA, token)


def is_open(sca: Sca) -> bool:
    """Whether the customer can still complete the SCA, apart from its expiry."""
    return bool(sca["status"] == "started")


def expires(sca: Sca) -> datetime:
    """When the SCA expires: 10 minutes of bank time after it was opened."""
    return moment(sca["created"]) + LIFETIME


def is_late(bank: Bank, sca: Sca) -> bool:
    """Whether more than 10 minutes of bank time have passed."""
    return bank.clock.now() >= expires(sca)


def expected(sca: Sca) -> str | None:
    """The person expected to complete the SCA: the only one allowed, else the one in the request, else presumed."""
    number: str | None = sca.get("nationalId") or sca.get("identityHint") or sca.get("presumed")
    return number


def obstacle(bank: Bank, sca: Sca) -> ScaFailure | None:
    """Why an open SCA cannot continue: it has expired, is no longer needed, or its person may no longer act."""
    if is_late(bank, sca):
        return EXPIRED
    effect = _effect(bank, sca)
    if effect is not None and not effect.awaited(bank, sca["target"]):
        return NOT_AWAITED
    if "person" not in sca:
        return None
    if people.person(bank, sca["person"]) is None:
        return UNKNOWN_PERSON
    return None if possible(bank, sca) else NO_CONTEXT


def void(bank: Bank, target: str, *, linked: bool = True) -> None:
    """End the open SCAs of a target that no longer needs them; their pages answer 410.

    `linked`: whether to remove the link to the SCA from the stored target; False if the caller changes that document
    itself.
    """
    for sca in bank.documents.find(SCA, target=target):
        if is_open(sca):
            _close(bank, sca, "failed", linked=linked)


def release(bank: Bank, target: str) -> None:
    """`void` for a target that is being deleted: its SCAs stay, but may be evicted later."""
    void(bank, target)
    for sca in bank.documents.find(SCA, target=target):
        bank.make_room(SCA, PASSING_KEPT, passing="yes")
        sca["passing"] = "yes"
        bank.documents.put(SCA, sca)


def steps(bank: Bank, sca: Sca) -> list[str]:
    """The steps of an open SCA from the current one on, as far as its person is known."""
    who = sca.get("person") or expected(sca)
    needed = {
        "identity": "person" not in sca,
        "method": "method" not in sca,
        "context": who is not None and "chosen" not in sca and len(options(bank, who, sca)) > 1,
        "approve": True,
    }
    return [name for name, is_needed in needed.items() if is_needed]


def note_mistyping(bank: Bank, sca: Sca) -> bool:
    """Note an unknown identity number; whether it is the first, possibly a typing error. The second fails the SCA."""
    if sca.get("mistyped"):
        return False
    sca["mistyped"] = True
    bank.documents.put(SCA, sca)
    return True


def _pass(sca: Sca, name: str) -> None:
    """Record a completed step, so that a page can show the number of steps."""
    sca["passed"] = [*(one for one in sca.get("passed", ()) if one != name), name]


def identify(bank: Bank, sca: Sca, national_id: str) -> str | None:
    """The customer enters a national identity number; returns the redirect of a failure, or None to continue."""
    if people.person(bank, national_id) is None:
        return fail(bank, sca, UNKNOWN_PERSON)
    if sca.get("nationalId") not in (None, national_id):
        return fail(bank, sca, OTHER_PERSON)
    if sca.get("person") != national_id:
        sca.pop("chosen", None)  # another person chose it
    sca["person"] = national_id
    if not options(bank, national_id, sca):
        return fail(bank, sca, NO_CONTEXT)
    _pass(sca, "identity")
    bank.documents.put(SCA, sca)
    return None


def choose_method(bank: Bank, sca: Sca, method: str) -> None:
    """The customer chooses how to authenticate; FORMAT_ERROR for a method that the bank does not offer."""
    if method not in METHODS:
        raise BankError("FORMAT_ERROR", f"The bank offers {', '.join(METHODS)}.", "method")
    sca["method"] = method
    _pass(sca, "method")
    bank.documents.put(SCA, sca)


def choose_context(bank: Bank, sca: Sca, context: str | None, agreement: str | None) -> None:
    """The customer chooses to act privately or under an agreement; FORMAT_ERROR if the person cannot."""
    context, agreement = people.chosen(options(bank, sca["person"], sca), context, agreement)
    sca["chosen"] = {"context": context, "agreement": agreement}
    _pass(sca, "context")
    bank.documents.put(SCA, sca)


def complete(bank: Bank, sca: Sca, accounts: list[str] | None = None) -> str | None:
    """The customer approves: start the session, grant the consent or authorise the target.

    Returns the redirect, None for an SCA that a rule abandons. A refusal by the business rules fails the SCA;
    FORMAT_ERROR for `accounts` that the person does not have.
    """
    failure = obstacle(bank, sca)
    if failure is not None:
        return fail(bank, sca, failure)
    scripted = sca.get("outcome")
    if scripted == "abandon":
        return None
    if scripted == "reject":
        return decline(bank, sca)
    if scripted is not None:
        return fail(bank, sca, {"expire": EXPIRED, "fail": CORE_FAILED}[scripted])
    effect = _effect(bank, sca)
    if effect is not None:
        try:
            effect.approved(bank, sca["target"], sca["person"], sca.get("chosen", {}).get("agreement"))
        except BankError as refused:
            return fail(bank, sca, refusal(refused))
    return _finalise(bank, sca, accounts)


def _finalise(bank: Bank, sca: Sca, accounts: list[str] | None) -> str:
    """Start the session, grant the consent if the SCA is for one, and return the redirect."""
    owner = people.Owner(sca["tpp"], sca["person"], *acting_as(bank, sca))
    session = sessions.start(bank, owner, sca.get("sessionId") or bank.ids.uuid())
    if sca["purpose"] in ACCOUNT_ACCESS:
        consents.grant(bank, owner, accounts=accounts, consent_id=sca.get("target"), tpp_name=sca["tppName"])
    redirect = success_redirect(sca["redirectUri"], session)
    _close(bank, sca, "finalised", redirect)
    return redirect


def decline(bank: Bank, sca: Sca) -> str:
    """The customer declines: a payment or the RCVD payments of a basket are rejected."""
    failure = obstacle(bank, sca)
    if failure is not None:
        return fail(bank, sca, failure)
    effect = _effect(bank, sca)
    if effect is not None and effect.declined is not None:
        effect.declined(bank, sca["target"])
    return fail(bank, sca, DECLINED)


def fail(bank: Bank, sca: Sca, failure: ScaFailure) -> str:
    """End an SCA without success and return the redirect that says why; one that is too late has expired anyhow."""
    if is_late(bank, sca):
        failure = EXPIRED
    redirect = failure_redirect(sca["redirectUri"], failure)
    _close(bank, sca, "failed", redirect, timed_out=failure.code == EXPIRED.code)
    return redirect


def lapse(bank: Bank, sca: Sca) -> None:
    """The time of an open SCA is over, a step of bank time: it is notified now, and not again when somebody ends it."""
    del sca["due"]
    sca["timedOut"] = True
    bank.documents.put(SCA, sca)
    notifications.sca_ended(bank, {**sca, "status": "failed"})


def _close(
    bank: Bank,
    sca: Sca,
    status: Literal["finalised", "failed"],
    redirect: str | None = None,
    *,
    linked: bool = True,
    timed_out: bool = False,
) -> None:
    notified = "timedOut" in sca
    if timed_out or is_late(bank, sca):
        sca["timedOut"] = True
    sca.pop("due", None)
    sca["status"] = status
    sca["ended"] = stamp(min(bank.clock.now(), expires(sca)))
    if redirect is not None:
        sca["redirect"] = redirect
    bank.documents.put(SCA, sca)
    if status == "failed" and linked:
        _unlink(bank, sca)
    bank.publish({"type": "sca", "id": sca["id"], "status": status, "target": sca.get("target"), "at": sca["ended"]})
    if not notified:
        notifications.sca_ended(bank, sca)


def _unlink(bank: Bank, sca: Sca) -> None:
    """Remove the target's link to an SCA, so that reading a status does not have to read the SCA."""
    kind = _LINKED.get(sca["purpose"])
    target = None if kind is None else bank.documents.get(kind, sca["target"])
    if kind is not None and target is not None and target.get("sca") == sca["id"]:
        del target["sca"]
        bank.documents.put(kind, target)


def options(bank: Bank, national_id: str, sca: Sca | None) -> list[tuple[str, Agreement | None]]:
    """The contexts (with agreement) that a person may choose, limited to those that the request allows, if any."""
    wanted = (None, None) if sca is None else (sca.get("context"), sca.get("agreement"))
    return [
        (context, agreement)
        for context, agreement in people.contexts_of(bank, national_id)
        if wanted[0] in (None, context)
        and (wanted[1] is None or (agreement is not None and agreement["id"] == wanted[1]))
    ]


def acting_as(bank: Bank, sca: Sca) -> tuple[str, str | None]:
    """Context and agreement of the identified person, chosen or the first possible; `obstacle` must be None."""
    return possible(bank, sca)[0]


def possible(bank: Bank, sca: Sca) -> list[tuple[str, str | None]]:
    """The contexts in which the person may act now: the chosen one, or else all options."""
    allowed = [
        (context, agreement["id"] if agreement else None) for context, agreement in options(bank, sca["person"], sca)
    ]
    chosen = sca.get("chosen")
    return [one for one in allowed if chosen is None or one == (chosen["context"], chosen["agreement"])]


# redirects

# The parameters of both redirects; they are removed from the address's own query, so that they cannot be confused.
RESERVED = frozenset({"psu-id", "psu-corporate-id", "tpp-session-id", "context", "system", "status", "code", "message"})


def _appended(uri: str, values: Mapping[str, str]) -> str:
    """`uri` (without fragment) with `values` appended; only RESERVED names are removed from its own query."""
    address, _, own = uri.partition("?")
    parts = own.split("&") if own else []
    others = [part for part in parts if unquote_plus(part.partition("=")[0]) not in RESERVED]
    return f"{address}?{'&'.join([*others, urlencode(values, quote_via=quote)])}"


def success_redirect(uri: str, session: Session) -> str:
    """The address after a completed SCA."""
    values = {"psu-id": session["psuId"]}
    if session["agreement"] is not None:
        values["psu-corporate-id"] = session["agreement"]
    values |= {"tpp-session-id": session["tppSessionId"], "context": session["context"]}
    return _appended(uri, values)


def failure_redirect(uri: str, failure: ScaFailure) -> str:
    """The address after a failed SCA."""
    values = {"system": failure.system} if failure.system else {}
    values |= {"status": str(failure.status), "code": failure.code, "message": failure.message}
    return _appended(uri, values)
