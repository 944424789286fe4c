"""A cache of the accountant's results, which take most of the time of tests with many equal fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sundog.privacy import accountant, calibration, record_count

_ANSWERS: dict[Any, Any] = {}


def remember_answers(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Replace functions of the accountant by cached ones; with `monkeypatch.setattr` as `replace`, for one test."""
    for module in (calibration, record_count):
        replace(module, "compute_epsilon", _cache_results(accountant.compute_epsilon))
    replace(record_count, "is_within_budget", _cache_results(accountant.is_within_budget))


def _cache_results(function: Callable[..., Any]) -> Callable[..., Any]:
    def answer(charges: Any, **options: Any) -> Any:
        key = (function, tuple(charges), *sorted(options.items()))
        if key not in _ANSWERS:
            _ANSWERS[key] = function(key[1], **options)
        return _ANSWERS[key]

    return answer
