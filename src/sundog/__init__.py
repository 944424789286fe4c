"""Share data about people without revealing them.

sundog learns a private dataset with differentially private generative models and releases a file from which anybody
can draw synthetic records, with a certificate of what was spent.

    >>> import sundog
    >>> sundog.Schema, sundog.Synthesizer, sundog.Release
    (<class 'sundog.data.schema.Schema'>, ...)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sundog.auditing.auditor import audit
    from sundog.data.schema import Schema
    from sundog.errors import SundogError
    from sundog.evaluation.evaluator import evaluate
    from sundog.fit.synthesizer import Synthesizer
    from sundog.privacy.ledger import Ledger
    from sundog.release.release import Release

__version__ = "0.1.0"

__all__ = ["Ledger", "Release", "Schema", "SundogError", "Synthesizer", "__version__", "audit", "evaluate"]

# Loaded when first asked for: `import sundog` is instant, and never imports what the caller does not use.
_HOME = {
    "audit": "sundog.auditing.auditor",
    "evaluate": "sundog.evaluation.evaluator",
    "Ledger": "sundog.privacy.ledger",
    "Release": "sundog.release.release",
    "Schema": "sundog.data.schema",
    "SundogError": "sundog.errors",
    "Synthesizer": "sundog.fit.synthesizer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sundog' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
