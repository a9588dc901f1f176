"""SCAs as the control interface and the console show them."""

from __future__ import annotations

from typing import Any

from emulator.bank.authentication import sca as machine
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.documents import Sca
from emulator.bank.kinds import SCA

LOOKED_AT = 1000  # of those that nobody has ended, so that a page is there as fast when there are many


def view(bank: Bank, sca: Sca) -> dict[str, Any]:
    """An SCA as the control interface and the console show it."""
    shown = {
        "id": sca["id"],
        "purpose": sca["purpose"],
        "tpp": sca["tpp"],
        "target": sca.get("target"),
        "status": "expired" if machine.is_open(sca) and machine.is_late(bank, sca) else sca["status"],
        "step": machine.step(bank, sca) if machine.is_open(sca) else None,
        "nationalId": sca.get("person") or sca.get("nationalId"),
        "redirectUri": sca["redirectUri"],
        "redirect": sca.get("redirect"),
        "created": date_time(sca["created"]),
        "expires": date_time(machine.expires(sca)),
    }
    return {name: value for name, value in shown.items() if value is not None}


def waiting(bank: Bank, limit: int) -> list[Sca]:
    """The newest SCAs that a customer can still complete."""
    return [sca for sca in _started(bank, limit) if not machine.is_late(bank, sca)]


def past(bank: Bank, limit: int) -> list[Sca]:
    """The newest SCAs that have ended or are too late, however many are open."""
    found = [sca for sca in _started(bank, LOOKED_AT) if machine.is_late(bank, sca)]
    for status in ("finalised", "failed"):
        found += bank.documents.find(SCA, status=status, newest_first=True, limit=limit)
    return sorted(found, key=lambda sca: str(sca["created"]), reverse=True)[:limit]


def _started(bank: Bank, limit: int) -> list[Sca]:
    return bank.documents.find(SCA, status="started", newest_first=True, limit=limit)


def listing(bank: Bank, limit: int | None = None) -> list[dict[str, Any]]:
    """Open and past SCAs, newest first."""
    return [view(bank, sca) for sca in bank.documents.range(SCA, "created", reverse=True, limit=limit)]
