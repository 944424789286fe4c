"""The accountant's answers, remembered: in tests that fit the same again and again they take most of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sundog.privacy import accountant, calibration, record_count

_ANSWERS: dict[Any, Any] = {}


def remember_answers(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Puts functions that remember in the place of the accountant's; give `monkeypatch.setattr` to have it undone."""
    for module in (calibration, record_count):
        replace(module, "compute_epsilon", _remembering(accountant.compute_epsilon))
    replace(record_count, "is_within_budget", _remembering(accountant.is_within_budget))


def _remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    def answer(charges: Any, **options: Any) -> Any:
        key = (function, tuple(charges), *sorted(options.items()))
        if key not in _ANSWERS:
            _ANSWERS[key] = function(key[1], **options)
        return _ANSWERS[key]

    return answer
