"""The rules of the setting `weather`, which disturbs requests at random.

`rough` acts, at low rates, on operations with customers' data, not on sandbox data and contact information. The rules
are seeded, and a client that follows the documented rules loses nothing by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WORK = {
    "in": [
        "/v1/accounts*",
        "/v1/card-accounts*",
        "/v1/consents*",
        "/v1/bank-offered-consents*",
        "/v1/user*",
        "/v1/agreements*",
        "/v1/payments/*",
        "/v1/periodic-payments/*",
        "/v1/bulk-payments/*",
        "/v1/signing-baskets*",
    ]
}
CHANGES = {"in": ["POST", "DELETE"]}

WEATHER: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "calm": (),
    "rough": (
        {
            "name": "weather: lost answer",
            "when": {"method": CHANGES, "path": WORK},
            "times": {"chance": 0.03},
            "then": {"disconnect": "after"},
        },
        {
            "name": "weather: lost request",
            "when": {"path": WORK},
            "times": {"chance": 0.01},
            "then": {"disconnect": "before"},
        },
        {
            "name": "weather: unavailable",
            "when": {"path": WORK},
            "times": {"chance": 0.02},
            "then": {
                "answer": {
                    "status": 503,
                    "text": "The bank is unavailable for a moment.",
                    "headers": {"Retry-After": "1"},
                }
            },
        },
        {
            "name": "weather: slow answer",
            "when": {"path": WORK},
            "times": {"chance": 0.05},
            "then": {"delay": {"min": "500ms", "max": "3s"}},
        },
        {
            "name": "weather: slow SCA",
            "when": {"path": WORK},
            "times": {"chance": 0.2},
            "then": {"sca": {"slow": "3s"}},
        },
    ),
}
