"""SCAs without their pages: find, approve, end and list them (control.md#sca-by-hand)."""

from __future__ import annotations

from typing import Any

from emulator.bank.authentication import sca as machine
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.customers import people
from emulator.bank.documents import Sca
from emulator.bank.errors import BankError
from emulator.bank.kinds import SCA


def find(bank: Bank, name: str) -> Sca:
    """The SCA with this name: its token, the id of its target, or `latest`.

    If several match, the newest open one. Raises RESOURCE_UNKNOWN.
    """
    sca = bank.documents.get(SCA, name)
    if sca is not None:
        return sca
    if name == "latest":
        # In the order in which they were opened: `created` is the same for all while the clock is frozen.
        matching = bank.documents.find(SCA, status="started", newest_first=True, limit=1)
        matching = matching or bank.documents.range(SCA, "created", reverse=True, limit=1)
    else:
        matching = bank.documents.find(SCA, target=name, newest_first=True)
    matching.sort(key=machine.is_open, reverse=True)
    if not matching:
        raise BankError("RESOURCE_UNKNOWN", "There is no SCA yet." if name == "latest" else f"There is no SCA {name}.")
    return matching[0]


def approve(
    bank: Bank,
    sca: Sca,
    *,
    national_id: str | None = None,
    method: str | None = None,
    context: str | None = None,
    agreement: str | None = None,
    accounts: list[str] | None = None,
) -> str | None:
    """Take all steps at once, without the pages; what is not specified: all accounts, the first agreement.

    Returns the redirect. FORMAT_ERROR for a context, agreement or account that the person does not have, and for
    `accounts` if the SCA does not share any.
    """
    _must_be_open(sca)
    if accounts is not None and sca["purpose"] not in machine.ACCOUNT_ACCESS:
        text = f"This SCA has the purpose {sca['purpose']} and shares no accounts: leave `accounts` out."
        raise BankError("FORMAT_ERROR", text, "accounts")
    who = national_id or sca.get("person") or machine.expected(sca)
    if who is None:
        examples = ", ".join(list(people.names(bank))[:10])
        raise BankError(
            "FORMAT_ERROR",
            f"The person of this SCA is not known yet; say who approves. Persons of the bank: {examples}.",
            "nationalId",
        )
    if machine.is_late(bank, sca):
        return machine.fail(bank, sca, machine.EXPIRED)
    redirect = machine.identify(bank, sca, who)
    if redirect is not None:
        return redirect
    if method is not None:
        machine.choose_method(bank, sca, method)
    if agreement is not None or context not in (None, sca.get("context")):
        machine.choose_context(bank, sca, context, agreement)
    return machine.complete(bank, sca, accounts)


def _must_be_open(sca: Sca) -> None:
    if not machine.is_open(sca):
        raise BankError("CONFLICT", f"The SCA has already ended: {sca['status']}.")


def reject(bank: Bank, sca: Sca) -> str:
    """`sca.decline` for the control interface: CONFLICT when the SCA has ended."""
    _must_be_open(sca)
    return machine.decline(bank, sca)


def end(bank: Bank, sca: Sca, failure: machine.ScaFailure) -> str:
    """`sca.fail` for the control interface: CONFLICT when the SCA has ended."""
    _must_be_open(sca)
    return machine.fail(bank, sca, failure)


LOOKED_AT = 1000  # the most open SCAs that are examined, so that a page with many of them stays fast


def view(bank: Bank, sca: Sca) -> dict[str, Any]:
    """An SCA as the control interface and the console show it."""
    late = machine.is_open(sca) and machine.is_late(bank, sca)
    ended = machine.expires(sca) if late else sca.get("ended")
    shown = {
        "id": sca["id"],
        "purpose": sca["purpose"],
        "tpp": sca["tpp"],
        "target": sca.get("target"),
        "status": "expired" if late or "timedOut" in sca else sca["status"],
        "step": machine.steps(bank, sca)[0] if ended is None else None,
        "nationalId": sca.get("person") or sca.get("nationalId"),
        "redirectUri": sca["redirectUri"],
        "redirect": sca.get("redirect"),
        "created": date_time(sca["created"]),
        "expires": date_time(machine.expires(sca)),
        "ended": None if ended is None else date_time(ended),
    }
    return {name: value for name, value in shown.items() if value is not None}


def waiting(bank: Bank, limit: int) -> list[Sca]:
    """The newest SCAs that a customer can still complete."""
    return [sca for sca in _started(bank, limit) if not machine.is_late(bank, sca)]


def past(bank: Bank, limit: int) -> list[Sca]:
    """The newest SCAs that have ended or are too late, however many are open."""
    ended = [sca for sca in _started(bank, LOOKED_AT) if machine.is_late(bank, sca)]
    for status in ("finalised", "failed"):
        ended += bank.documents.find(SCA, status=status, newest_first=True, limit=limit)
    return sorted(ended, key=lambda sca: str(sca["created"]), reverse=True)[:limit]


def _started(bank: Bank, limit: int) -> list[Sca]:
    return bank.documents.find(SCA, status="started", newest_first=True, limit=limit)


def listing(bank: Bank, limit: int | None = None) -> list[dict[str, Any]]:
    """Open and past SCAs, newest first."""
    return [view(bank, sca) for sca in bank.documents.range(SCA, "created", reverse=True, limit=limit)]
