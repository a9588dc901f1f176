"""An installed bank, away from its checkout: the files it comes with, and one run of `serve`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

PATIENCE = 30


def expect(true: object, what: str) -> None:
    if not true:
        raise SystemExit(f"smoke test: {what}")
    sys.stderr.write(f"ok: {what}\n")


def get(url: str) -> tuple[int, str, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()


def main() -> None:
    command = [str(Path(sys.executable).parent / "bank-emulator")]

    from emulator.packaged import folder

    expect((folder("fixtures") / "known-state.yaml").is_file(), "the wheel holds the fixtures")
    expect(list(folder("scenarios").glob("*.yaml")), "the wheel holds the scenarios")
    expect("site-packages" in str(folder("fixtures")), "they come from the wheel")
    listed = subprocess.run(
        [*command, "scenario", "list"], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    expect("insufficient-funds" in listed.stdout, "scenario list names the ready scenarios")

    serve = [*command, "serve", "--port", "0", "--state", "state"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            raise SystemExit("smoke test: no pipe")
        ready = process.stdout.readline()
        expect(ready.startswith("READY http://127.0.0.1:"), "serve says READY")
        base = ready.removeprefix("READY ").strip()
        status, _, body = get(f"{base}/ready")
        expect(status == 200 and json.loads(body), "/ready answers")
        status, kind, _ = get(f"{base}/openapi.json")
        expect(status == 200 and kind.startswith("application/json"), "/openapi.json answers")
        status, kind, _ = get(f"{base}/docs")
        expect(status == 200 and kind.startswith("text/html"), "/docs answers")
        status, kind, _ = get(f"{base}/sca/unknown")
        expect(status == 404 and kind.startswith("text/html"), "the SCA pages are in the wheel")
        status, kind, _ = get(f"{base}/console")
        expect(status == 200 and kind.startswith("text/html"), "the console is in the wheel")
        expect(Path("state/tpps/demo/key.pem").is_file(), "the TPP demo is made")
        process.send_signal(signal.SIGTERM)
        expect(process.wait(PATIENCE) == 0, "SIGTERM ends it with 0")
        expect(process.stdout.read() == "", "stdout carries the READY line and nothing else")


if __name__ == "__main__":
    main()
