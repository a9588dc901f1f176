"""A served bank whose files cannot grow: 503 for what writes, reads go on, and all works again when there is room."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from emulator.client import Identity, TppClient
from tests.crash.test_kill import BODY, payments
from tests.e2e.process import Served, control, served
from tests.known_state import DOMESTIC, KARI


def limit(bank: Served, size: int) -> None:
    """No file of the bank's process grows beyond `size` bytes from now on."""
    resource.prlimit(bank.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process")
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_served_bank_outlives_a_full_disk(tmp_path: Path, durability: str) -> None:
    with served(tmp_path / "state", "--durability", durability) as bank:
        client = TppClient(bank.url, Identity.from_folder(bank.state / "tpps" / "demo"))
        client.use_session(control(bank.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI}))
        before = client.post(DOMESTIC, json=BODY).json()["paymentId"]
        limit(bank, 1)
        for number in range(3):
            refused = client.post(DOMESTIC, json=BODY, headers={"X-Request-ID": f"refused-{number}"})
            assert (refused.status, refused.headers["X-Request-ID"]) == (503, f"refused-{number}")
            assert refused.json()["tppMessages"][0]["code"] == "SYSTEM_ERROR"
            assert client.get("/v1/accounts").status == 200
            assert client.get(f"{DOMESTIC}/{before}/status").json()["transactionStatus"] == "RCVD"
        assert payments(bank).keys() == {before}
        limit(bank, resource.RLIM_INFINITY)
        after = client.post(DOMESTIC, json=BODY, headers={"X-Request-ID": "refused-0"})
        assert after.status == 201, after.text
        bank.process.send_signal(signal.SIGKILL)
        bank.process.wait()
    with served(tmp_path / "state") as again:
        assert payments(again).keys() == {before, after.json()["paymentId"]}
        assert control(again.url, "GET", "ledger")["balanced"] is True
        assert again.stop() == 0
