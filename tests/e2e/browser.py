"""A real Chromium for the pages, and a site of the TPP that the customer comes back to."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.tools import tool

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


def _browser(folder: Path) -> str:
    """The headless shell, which is Chromium without windows, for two thirds of the processor time.

    It opens no page unless it is told to, and the driver does not tell it.
    """
    program = tool("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    if not program.endswith("-shell"):
        return program
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\nexec {program} "$@" about:blank\n')
    script.chmod(0o700)
    return str(script)


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """Chromium with an empty profile; `make test` installs it."""
    options = ChromeOptions()
    options.binary_location = _browser(profile)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = tool("chromedriver")
    browser = Chrome(options=options, service=Service(driver, log_output=os.devnull))
    try:
        yield browser
    finally:
        browser.quit()


class _Visit(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.end_headers()
        self.wfile.write(self.server.page)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Site(ThreadingHTTPServer):
    """Shows one page at every address; `seen`: the headers that came."""

    page: bytes
    seen: list[dict[str, str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


BACK = "<!doctype html><link rel=icon href=data:,><title>TPP</title><h1>Back at the TPP</h1>"


@contextmanager
def site(page: str = BACK) -> Iterator[Site]:
    """The site of a TPP, or of a stranger."""
    with Site(("127.0.0.1", 0), _Visit) as server:
        server.page, server.seen = page.encode(), []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
