"""How the tests call the program: in this process, which is quick, with what it says caught."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Called:
    """What came of a call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stands on stdout, which has to be JSON and nothing else."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of bad input: nothing on stdout, nothing else on stderr, exit code 2."""
        assert self.code == 2, self
        assert self.out == "", self
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("sundog: "), self
        assert "Traceback" not in self.err
        return lines[0].removeprefix("sundog: ")


Sundog = Callable[..., Called]
