"""What is imported when: a start is paid by everybody who starts a bank for a test, or asks for help."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from emulator.ca import CertificateAuthority

# One process, in which more and more is imported; each step names what it must not need.
IN_STEPS = """
import contextlib, io, os, pkgutil, ssl, sys
from importlib import import_module

def without(after, *names):
    assert not (loaded := [name for name in names if name in sys.modules]), (after, loaded)

from emulator.cli.main import run
for command in ("clock", "conformance", "requests", "scenario", "serve", "tpp"):
    with contextlib.redirect_stdout(io.StringIO()):
        run([command, "--help"])
    without(command, "cryptography", "aiohttp", "emulator.assemble")

for name in ("api.headers", "api.json_body", "api.query", "bank.reference", "bank.scheme.execution"):
    import_module(f"emulator.{name}")
without("what reads the first request", "pydantic", "faker", "stdnum")

import emulator.client
without("the client", "aiohttp")

from emulator.cli.serve import without_trust_roots
contexts = []
made = ssl.SSLContext.load_default_certs
ssl.SSLContext.load_default_certs = lambda self, *given: (made(self, *given), contexts.append(self))
with without_trust_roots():
    import emulator.web.server
assert contexts
assert not any(each.get_ca_certs() for each in contexts), "trust roots have been read"
assert os.environ.pop("SSL_CERT_FILE") == sys.argv[1], "what the user set stays"
with without_trust_roots():
    pass
assert "SSL_CERT_FILE" not in os.environ

for module in pkgutil.walk_packages(emulator.__path__, "emulator."):
    if not module.name.endswith((".__main__", ".explore.search")) and not module.name.startswith("emulator.agents."):
        import_module(module.name)
"""


def test_each_part_imports_what_it_needs_and_none_says_anything(tmp_path: Path) -> None:
    """But not the libraries of `emulator.agents` and of the search, which take longer than all others.

    tests/agents and tests/explore would fail if they said anything.
    """
    roots = tmp_path / "roots.pem"
    roots.write_text(CertificateAuthority(None, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)).certificate_pem)
    ran = subprocess.run(
        [sys.executable, "-c", IN_STEPS, str(roots)],
        env={**os.environ, "SSL_CERT_FILE": str(roots)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
