"""The flags that all processes of a shared store need alike; the service's row has those of the last start.

Another seed is refused: the ids and random numbers of a bank come from one seed in all processes. Other flags are
logged, at the process that starts and at those that serve, so that they can be changed by restarting one process after
another.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from emulator.settings import ServeSettings
from emulator.store.postgres import StoreUnusable

logger = logging.getLogger(__name__)

SHARED = ("fixtures", "ids", "links", "profile", "seed", "weather")

Flags = Mapping[str, Any]
"""The values of SHARED by name, as JSON has them."""


def flags_of(settings: ServeSettings) -> Flags:
    """What a process was started with."""
    return {name: getattr(settings, name) for name in SHARED}


def with_seed(settings: ServeSettings, stored: Flags) -> ServeSettings:
    """The settings with the seed of the store, if it has one; StoreUnusable if another one is requested."""
    seed = stored.get("seed")
    if seed is None:
        return settings
    if settings.seed not in (None, seed):
        raise StoreUnusable(
            f"its processes share --seed {seed}, and this one has --seed {settings.seed}: leave the flag out, or name"
            " another --store-schema"
        )
    return replace(settings, seed=seed)


def compare(own: Flags, others: Flags) -> None:
    """Log which flags of another process differ."""
    for name in SHARED:
        if name in others and own[name] != others[name]:
            logger.warning(
                "this process has --%s %s, another one of the store --%s %s: give all of them the same",
                name,
                "(none)" if own[name] is None else own[name],
                name,
                "(none)" if others[name] is None else others[name],
            )
