"""Limits on the size and duration of requests, as values that tests can lower."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.api.json_body import LARGEST_BODY

MAX_TARGET_BYTES = 8190
MAX_FIELD_BYTES = 16380  # fits a PEM certificate with its chain; must differ from the target's limit, see refusals.py
MAX_HEADERS = 128
MAX_HEAD_BYTES = 65536
MAX_BODY_BYTES = LARGEST_BODY  # which a bank without a socket refuses, too


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of real time and bytes on one connection (requests.md#http-limits; `idle`, `write`, `linger` assumed)."""

    head_seconds: float = 15.0  # from the first byte of a request to the end of its headers, then closed
    body_seconds: float = 30.0  # from there to the end of its body, then 408
    idle_seconds: float = 75.0  # between requests, then closed
    write_seconds: float = 30.0  # for a client that does not read its answer, then aborted
    linger_seconds: float = 2.0  # of reading after a refusal, so that the client receives it
    drain_seconds: float = 6.0  # for requests in progress at SIGTERM
    comment_seconds: float = 15.0  # between the comments that keep an event stream open
    event_bytes: int = 1024 * 1024  # of events for a client that does not read, then aborted
