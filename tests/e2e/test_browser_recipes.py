"""The test with Playwright that the manual shows, in the Chromium of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from emulator.client import Identity, TppClient
from tests.docs.sections import EXAMPLES
from tests.e2e.process import served
from tests.generators.tools import npm_tool

CONFIGURATION = """
export default { use: { launchOptions: { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] } } };
"""


@pytest.mark.long
@pytest.mark.browser
def test_a_customer_shares_accounts_in_playwright(tmp_path: Path) -> None:
    playwright = npm_tool("playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    shutil.copy(EXAMPLES / "approve.spec.mjs", tmp_path)
    (tmp_path / "playwright.config.mjs").write_text(CONFIGURATION)
    (tmp_path / "node_modules").symlink_to(playwright.parents[1])
    with served(tmp_path / "state") as bank:
        TppClient(bank.url, Identity.from_folder(tmp_path / "state" / "tpps" / "demo")).get("/v1/accounts")
        ended = subprocess.run(
            [str(playwright), "test"],
            cwd=tmp_path,
            env={**os.environ, "BANK_URL": bank.url, "CHROMIUM": chromium},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
