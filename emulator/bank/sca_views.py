"""SCAs as the control interface and the console show them."""

from __future__ import annotations

from typing import Any

from emulator.bank import sca as machine
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.store import Document


def view(bank: Bank, sca: Document) -> dict[str, Any]:
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


def listing(bank: Bank, limit: int | None = None) -> list[dict[str, Any]]:
    """Open and past SCAs, newest first."""
    return [view(bank, sca) for sca in bank.documents.range("sca", "created", reverse=True, limit=limit)]
