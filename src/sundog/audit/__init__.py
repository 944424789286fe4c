"""Attacks on a release, and what they prove about its guarantee.

`sundog.audit` is also the function: importing a folder makes it an attribute of its package, in place of what has the
same name, so that the folder passes calls on.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """A module that is called as `sundog.audit.auditor.audit` is."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        from sundog.audit.auditor import audit

        return audit(*given, **named)


sys.modules[__name__].__class__ = _CallableModule
