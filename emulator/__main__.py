"""`bank-emulator` and `python -m emulator`."""

from __future__ import annotations

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

    Before anything is imported, which is most of a start.
    """

    def leave(*_: object) -> None:
        raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)


if __name__ == "__main__":
    main()
