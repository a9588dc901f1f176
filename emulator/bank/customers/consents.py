"""Consents: which accounts a person shares with a TPP in a context, for 180 days from the last SCA (consents.md).

The state is not stored but follows from what has happened to the document (`status`):

    status     when                                             changed by
    valid      the newest of its owner, SCA within 180 days     `grant`, at the end of an SCA
    expired    180 days are over, or a later one replaced it    time alone; `grant`; `expire`, by a scenario
    revoked    the person withdrew it                           `revoke`
    terminated the TPP deleted it                               `terminate`

Nothing leaves the last two, and only an SCA gives access again, by a new document. There is one valid consent for each
TPP, person, context and agreement (`Owner`). The next request is refused already: access asks `current` each time.
The last use is written apart from the request, so that reads go on while the bank cannot write (`note_use`).

LIFETIME is also read by `api/operations/consents.py` (`validUntil`). The 180 days stand in words in `access.py`, in
`access_lead` (`web/pages/wording.json`), and in consents.md, errors.md, notifications.md and bank-time.md.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Literal

from typing_extensions import TypedDict

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, later, moment, stamp
from emulator.bank.customers import people
from emulator.bank.customers.people import Owner
from emulator.bank.documents import Consent
from emulator.bank.errors import BankError
from emulator.bank.formats import digits_of
from emulator.bank.ids import fixed_id
from emulator.bank.kinds import ACCOUNT, CARD, CONSENT
from emulator.store import StoreUnwritable

LIFETIME = timedelta(days=180)
ConsentStatus = Literal["valid", "revoked", "terminated", "expired"]
# Ended consents of a person, TPP, context and agreement that stay stored.
ENDED_KEPT = 20


def _key(owner: Owner) -> str:
    """The indexed key of all consents of an owner."""
    return f"{owner.tpp_id}|{owner.national_id}|{owner.context}|{owner.agreement or ''}"


def current(bank: Bank, owner: Owner) -> Consent | None:
    """The newest consent of an owner, whatever its state."""
    newest = bank.documents.find(CONSENT, owner=_key(owner), newest_first=True, limit=1)
    return newest[0] if newest else None


def age(bank: Bank, consent: Consent) -> timedelta:
    """Bank time since the SCA that gave or renewed the consent."""
    return bank.clock.now() - moment(consent["lastSca"])


def status(bank: Bank, consent: Consent) -> ConsentStatus:
    """`valid`, `revoked`, `terminated` or `expired`, which a replaced one is too."""
    if "revoked" in consent:
        return "terminated" if consent.get("terminated") else "revoked"
    return "expired" if "replaced" in consent or age(bank, consent) >= LIFETIME else "valid"


def _selected(bank: Bank, owner: Owner, accounts: list[str] | None) -> tuple[list[str], list[str]]:
    """The ids of accounts and of cards in `accounts` (iban, bban or resourceId; None: all); FORMAT_ERROR if unknown."""
    own = people.accounts_of(bank, owner.national_id, owner.context, owner.agreement)
    cards = people.cards_of(bank, owner.national_id, owner.context)
    if accounts == [] and (own or cards):
        raise BankError(
            "FORMAT_ERROR", "At least one account must be shared; leave `accounts` out for all.", "accounts"
        )
    account_ids, card_ids = [a["id"] for a in own], [c["id"] for c in cards]
    if accounts is None:
        return account_ids, card_ids
    by_number = {number: a["id"] for a in own for number in (a["iban"], a["bban"])}
    chosen = {name: by_number.get(digits_of(name)) or resource_shown_as(bank, name) for name in accounts}
    for index, name in enumerate(accounts):
        if chosen[name] not in (*account_ids, *card_ids):
            raise BankError("FORMAT_ERROR", f"The person has no account {name} to share.", f"accounts[{index}]")
    ids = list(dict.fromkeys(chosen.values()))
    return [i for i in ids if i in account_ids], [i for i in ids if i in card_ids]


def grant(
    bank: Bank,
    owner: Owner,
    *,
    accounts: list[str] | None = None,
    consent_id: str | None = None,
    tpp_name: str | None = None,
) -> Consent:
    """Grant (or renew) a consent after an SCA; it replaces the person's earlier one in that context."""
    chosen, cards = _selected(bank, owner, accounts)
    now = stamp(bank.clock.now())
    for number, old in enumerate(bank.documents.find(CONSENT, owner=_key(owner), newest_first=True)):
        if number >= ENDED_KEPT:
            bank.documents.delete(CONSENT, old["id"])
        elif "revoked" not in old and "replaced" not in old:
            was_valid = status(bank, old) == "valid"
            old["replaced"] = now
            old.pop("due", None)
            bank.documents.put(CONSENT, old)
            if was_valid:
                notifications.status_changed(bank, old["id"], "expired")
    consent: Consent = {
        "id": consent_id or bank.ids.new(),
        "owner": _key(owner),
        "tpp": owner.tpp_id,
        "nationalId": owner.national_id,
        "context": owner.context,
        "agreement": owner.agreement,
        "accounts": chosen,
        "cards": cards,
        "created": now,
        "lastSca": now,
    }
    if tpp_name is not None:
        consent["tppName"] = tpp_name
    if bank.settings.notifications:
        consent["due"] = later(now, LIFETIME)
    if bank.settings.account_ids == "renewed":
        consent["ownIds"] = True
    bank.documents.put(CONSENT, consent)
    bank.publish({"type": "consent", "id": consent["id"], "status": "valid", "at": now})
    notifications.status_changed(bank, consent["id"], "valid")
    return consent


def resource_id(bank: Bank, consent: Consent, account_id: str) -> str:
    """The resourceId of an account or card account under a consent: its id, or another of the consent's own.

    Which of the two was decided by the setting account_ids when the consent was given.
    """
    if not consent.get("ownIds"):
        return account_id
    return fixed_id(f"{consent['id']}|{account_id}", opaque=bank.ids.form == "opaque")


def resource_with_id(bank: Bank, tpp_id: str, national_id: str, shown: str) -> str:
    """The id of the account or card account with this resourceId under a person's consents; empty if there is none.

    With `account_ids: same` its one id is known too, without a look at the consents.
    """
    if bank.settings.account_ids == "same" and _is_stored(bank, shown):
        return shown
    for consent in bank.documents.find(CONSENT, nationalId=national_id):
        if consent["tpp"] == tpp_id and "replaced" not in consent:
            for account_id in (*consent["accounts"], *consent["cards"]):
                if resource_id(bank, consent, account_id) == shown:
                    return account_id
    return ""


def resource_shown_as(bank: Bank, shown: str) -> str:
    """The id of the account or card account that has or had this resourceId under some consent; else the id itself."""
    if not _is_stored(bank, shown):  # almost every id is, and there may be many consents
        for consent in bank.documents.all(CONSENT):
            for account_id in (*consent["accounts"], *consent["cards"]):
                if resource_id(bank, consent, account_id) == shown:
                    return account_id
    return shown


def _is_stored(bank: Bank, resource: str) -> bool:
    return bank.documents.exists(ACCOUNT, resource) or bank.documents.exists(CARD, resource)


def note_use(bank: Bank, consent: Consent) -> None:
    """Record the day (Oslo) of the last use, once a day.

    It is written separately: data can be read although the bank cannot write.
    """
    today = bank.clock.today().isoformat()
    if consent.get("lastUse") != today:
        with suppress(StoreUnwritable), bank.documents.at_once():
            consent["lastUse"] = today
            bank.documents.put(CONSENT, consent)


def revoke(bank: Bank, consent_id: str) -> Consent:
    """The person withdraws a consent at the bank; effective at the next call."""
    consent = bank.find(CONSENT, consent_id)
    if status(bank, consent) == "valid":
        _end(bank, consent)
    return consent


def terminate(bank: Bank, consent: Consent) -> None:
    """The TPP deletes a consent; effective at the next call."""
    if status(bank, consent) == "valid":
        consent["terminated"] = True
        _end(bank, consent)


def _end(bank: Bank, consent: Consent) -> None:
    consent["revoked"] = bank.clock.stamp()
    consent.pop("due", None)
    bank.documents.put(CONSENT, consent)
    ended = status(bank, consent)
    bank.publish({"type": "consent", "id": consent["id"], "status": ended, "at": consent["revoked"]})
    notifications.status_changed(bank, consent["id"], "terminatedByTpp" if ended == "terminated" else "revokedByPsu")


class ConsentView(TypedDict):
    """The accounts and cards that a customer shares with a TPP."""

    consentId: str
    tpp: str
    tppName: str
    nationalId: str
    context: str
    agreement: str | None
    accounts: list[str]
    cards: list[str]
    status: ConsentStatus
    lastSca: str
    validUntil: str


class Read(TypedDict):
    """How often an account was read without the customer in the last 24 hours, and the limit."""

    resourceId: str
    operation: str
    count: int
    limit: int


class OwnConsent(ConsentView):
    """A consent as the customer sees it; `lastUse` is a date."""

    lastUse: str | None
    reads: list[Read]


def view(bank: Bank, consent: Consent) -> ConsentView:
    """A consent as the control interface and the console show it."""
    return {
        "consentId": consent["id"],
        "tpp": consent["tpp"],
        "tppName": consent.get("tppName", consent["tpp"]),
        "nationalId": consent["nationalId"],
        "context": consent["context"],
        "agreement": consent["agreement"],
        "accounts": consent["accounts"],
        "cards": consent["cards"],
        "status": status(bank, consent),
        "lastSca": date_time(consent["lastSca"]),
        "validUntil": date_time(moment(consent["lastSca"]) + LIFETIME),
    }


def expire(bank: Bank, consent: Consent) -> None:
    """Expire a valid consent by making its last SCA 180 days old."""
    if status(bank, consent) == "valid":
        consent["lastSca"] = stamp(bank.clock.now() - LIFETIME)
        lapse(bank, consent)


def lapse(bank: Bank, consent: Consent) -> None:
    """The 180 days of a consent are over, a step of bank time: it is notified."""
    consent.pop("due", None)
    bank.documents.put(CONSENT, consent)
    notifications.status_changed(bank, consent["id"], "expired")


def listing(bank: Bank, limit: int | None = None) -> list[ConsentView]:
    """All consents, newest first."""
    consents = bank.documents.range(CONSENT, "created", reverse=True, limit=limit)
    return [view(bank, consent) for consent in consents]
