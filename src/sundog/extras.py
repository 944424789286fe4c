"""Optional libraries, each an extra of the package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sundog.errors import SundogError


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an extra; raise SundogError, naming the extra, if it is not installed.

    >>> import_extra("no_such_module", "xlsx")
    Traceback (most recent call last):
    ...
    sundog.errors.SundogError: no_such_module is not installed; install it with: pip install 'sundog[xlsx]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise SundogError(f"{error.name} is not installed; install it with: pip install 'sundog[{extra}]'") from None
