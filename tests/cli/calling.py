"""Calls of the program in the process of the tests, with captured output."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Called:
    """The exit code and the output of a call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The parsed stdout, which must be JSON alone."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line about bad input; checks that there is no other output, and that the exit code is 2."""
        assert self.code == 2, self
        assert self.out == "", self
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("sundog: "), self
        assert "Traceback" not in self.err
        return lines[0].removeprefix("sundog: ")


Sundog = Callable[..., Called]

PLAIN = ("--model", "independent")  # the quickest
