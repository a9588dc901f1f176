"""`bank-emulator` and `python -m emulator`."""

from __future__ import annotations

import os
import signal
import sys

from emulator.signals import ending_signals


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.platform == "win32":
        print("bank-emulator: this runs on Linux and macOS; on Windows use it in WSL", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    if next((word for word in sys.argv[1:] if word[:1] != "-"), None) == "serve":
        _exit_on_signals()
    try:
        from emulator.cli.main import run

        status = run()
    except KeyboardInterrupt:
        status = 130  # what a shell reports for SIGINT
    sys.exit(status)


def _exit_on_signals() -> None:
    """Exit with 0 on the signals that end it while the bank starts; the server installs its own handlers later.

    Called before the imports, which are most of a start. It exits at once, as stored documents survive a kill at any
    time; an exception would get lost where Python ignores exceptions, as in the callbacks of its imports.
    """
    for number in ending_signals():
        signal.signal(number, lambda *_: os._exit(0))


if __name__ == "__main__":
    main()
