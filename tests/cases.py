"""One test of many cases: where a case takes microseconds, nearly all its time would be pytest's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def cases(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but one test, which has its fixtures once and ends with the first case that fails.

    For cases that leave nothing behind. A note at the failure says which case it was.
    """
    split = [name.strip() for name in names.split(",")]
    table = [dict(zip(split, value if len(split) > 1 else (value,), strict=True)) for value in values]
    assert table

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        assert not inspect.iscoroutinefunction(test)

        @wraps(test)
        def each(**fixtures: Any) -> None:
            for case in table:
                try:
                    test(**fixtures, **case)
                except BaseException as failure:
                    failure.add_note(f"the case: {str(case)[:300]}")
                    raise

        signature = inspect.signature(test)
        asked = [one for name, one in signature.parameters.items() if name not in split]
        each.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
        return each

    return decorated
