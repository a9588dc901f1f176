"""`bank-emulator` and `python -m emulator`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    if next((word for word in sys.argv[1:] if word[:1] != "-"), None) == "serve":
        _leave_quietly_when_told()
    try:
        from emulator.cli.main import run

        status = run()
    except KeyboardInterrupt:
        status = 130  # what a shell reports for SIGINT
    sys.exit(status)


def _leave_quietly_when_told() -> None:
    """Exit with 0 on SIGTERM and SIGINT while the bank starts; the server puts its own, orderly end in place.

    Before anything is imported, which is most of a start. And at once, for documents stand a kill at any moment: an
    exception is lost where Python passes over exceptions, as in the callbacks of its imports, and the bank would go on.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))


if __name__ == "__main__":
    main()
