"""SCA sessions: an SCA is valid for an hour under its TPP-Session-ID (sca.md#sessions).

    state      is                                      becomes it by
    live       not `ended`, `expires` not reached      `start`, at the end of an SCA; the same id is renewed
    over       `expires` reached                       bank time alone; `expire`, by a scenario
    ended      `ended`                                 an SCA of the same TPP, person and context under another id;
                                                       `end`, by the control interface

Nothing but a new SCA makes a session live again. An SCA that is aborted changes no session. Sessions that are over or
were replaced stay stored, at most PAST_KEPT replaced ones, so that a refusal can say why (`access`).
"""

from __future__ import annotations

from datetime import timedelta

from emulator.bank.bank import Bank
from emulator.bank.clock import stamp
from emulator.bank.customers import consents, people
from emulator.bank.customers.people import Owner
from emulator.bank.documents import Session
from emulator.bank.errors import BankError
from emulator.bank.ids import prefix
from emulator.bank.kinds import SESSION

LIFETIME = timedelta(hours=1)
# Replaced sessions stay stored, so that a refusal can give the reason; the oldest of them are evicted.
PAST_KEPT = 5_000


def with_id(bank: Bank, tpp_id: str, session_id: str) -> list[Session]:
    """Every session of a TPP under this TPP-Session-ID: one per person, context and agreement."""
    return bank.documents.find(SESSION, key=prefix(tpp_id) + session_id)


def is_live(bank: Bank, session: Session) -> bool:
    """Whether the session has neither expired nor been replaced by a newer one."""
    return not session.get("ended") and bank.clock.stamp() < str(session["expires"])


def start(bank: Bank, owner: Owner, session_id: str) -> Session:
    """Start (or renew) the session after a completed SCA; a live one under another id ends."""
    tpp_id, national_id, context, agreement = owner
    key = f"{tpp_id}|{national_id}|{context}"
    now = bank.clock.now()
    for old in bank.documents.find(SESSION, owner=key):
        if old["tppSessionId"] != session_id:
            _set_aside(bank, old, stamp(now))
    acting = (national_id, context, agreement)
    same = (s for s in with_id(bank, tpp_id, session_id) if (s["nationalId"], s["context"], s["agreement"]) == acting)
    renewed = next(same, None)
    psu = people.psu_for(bank, tpp_id, national_id)
    session: Session = {
        "id": renewed["id"] if renewed is not None else bank.ids.uuid(),
        "key": prefix(tpp_id) + session_id,
        "owner": key,
        "tpp": tpp_id,
        "nationalId": national_id,
        "psuId": psu["id"],
        "tppSessionId": session_id,
        "context": context,
        "agreement": agreement,
        "created": stamp(now),
        "expires": stamp(now + LIFETIME),
    }
    bank.documents.put(SESSION, session)
    return session


def expire(bank: Bank, session: Session) -> None:
    if is_live(bank, session):
        session["expires"] = bank.clock.stamp()
        bank.documents.put(SESSION, session)


def _set_aside(bank: Bank, session: Session, at: str) -> None:
    """Mark this session as replaced by a newer one; it ends if it has not expired."""
    if is_live(bank, session):
        session["ended"] = at
    del session["owner"]
    session["past"] = "yes"
    bank.make_room(SESSION, PAST_KEPT, past="yes")
    # deleted first, so that it becomes the newest of the replaced sessions
    bank.documents.delete(SESSION, session["id"])
    bank.documents.put(SESSION, session)


def seed(
    bank: Bank,
    *,
    tpp_id: str,
    national_id: str,
    context: str | None = None,
    agreement: str | None = None,
    accounts: list[str] | None = None,
    tpp_name: str | None = None,
) -> dict[str, str]:
    """Create a session and a consent without the pages.

    Returns `{psuId, tppSessionId, psuCorporateId?, context}`. `tpp_name` is shown to people beside the consent, instead
    of the id.
    """
    if people.person(bank, national_id) is None:
        raise BankError("FORMAT_ERROR", "The bank knows no person with this national identity number.", "nationalId")
    context, agreement = people.chosen(people.contexts_of(bank, national_id), context, agreement)
    owner = Owner(tpp_id, national_id, context, agreement)
    session = start(bank, owner, bank.ids.uuid())
    consents.grant(bank, owner, accounts=accounts, tpp_name=tpp_name)
    answer = {"psuId": session["psuId"], "tppSessionId": session["tppSessionId"]}
    if agreement is not None:
        answer["psuCorporateId"] = agreement
    return {**answer, "context": context}


def end(bank: Bank, session_id: str) -> bool:
    """End a live session before it expires; returns whether there was one."""
    session = bank.documents.get(SESSION, session_id)
    if session is None or not is_live(bank, session):
        return False
    session["ended"] = bank.clock.stamp()
    bank.documents.put(SESSION, session)
    return True
