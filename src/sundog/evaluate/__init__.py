"""What a release is worth: how close to the real data it is, and how useful for the work people do with it.

This room has the name of what it does, so it can be called: `sundog.evaluate(release, real=...)` is
`sundog.evaluate.evaluate.evaluate`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """See `sundog.evaluate.evaluate.evaluate`."""
        from sundog.evaluate.evaluate import evaluate

        return evaluate(*arguments, **settings)


sys.modules[__name__].__class__ = _CallableRoom
