"""A request that waits for due steps, while its bank is lost or a step cannot be stored."""

from __future__ import annotations

from datetime import timedelta

import pytest

from emulator.bank import fixtures
from emulator.bank.clock import real_now
from emulator.bank.kinds import TRANSACTION
from emulator.bank.payment import progression
from emulator.ca import CertificateAuthority
from emulator.store import StoreLost, StoreUnwritable
from tests.api.desk import seeded_registry


@pytest.mark.parametrize("error", [StoreLost("another process has the bank"), StoreUnwritable("no room")])
def test_only_what_cannot_be_stored_is_left_for_later(error: StoreUnwritable, monkeypatch: pytest.MonkeyPatch) -> None:
    service = seeded_registry(CertificateAuthority(None, clock=real_now)).default
    monkeypatch.setattr(progression, "is_behind", lambda _: True)
    monkeypatch.setattr(progression, "run_piece", lambda *_: True)
    settling = service.settling()
    next(settling)
    with pytest.raises(StoreLost if isinstance(error, StoreLost) else StopIteration):
        settling.throw(error)


def test_a_reset_between_two_pieces_leaves_nothing_due_that_its_clock_has_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progression, "PIECE", 1)
    service = seeded_registry(CertificateAuthority(None, clock=real_now)).default
    bank = service.bank
    restored = list(bank.documents.all(TRANSACTION))
    bank.clock.set(now=bank.clock.now() + timedelta(days=3))
    settling = service.settling()
    next(settling)
    assert list(bank.documents.all(TRANSACTION)) != restored
    fixtures.reset(bank, "known-state")
    list(settling)
    assert list(bank.documents.all(TRANSACTION)) == restored
