"""The golden vectors, which other languages read, are still what this package computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.tally.golden import FOLDER, MAKERS


@pytest.mark.parametrize(("name", "make"), MAKERS.items())
def test_the_bits_may_never_change(name: str, make: Callable[[], list[dict[str, Any]]]) -> None:
    assert json.loads((FOLDER / name).read_text()) == make()


def test_there_are_vectors_whose_first_bits_do_not_decide() -> None:
    tables = json.loads((FOLDER / "skellam_tables.json").read_text())
    assert all(len(table["words"]) > len(table["noise"]) for table in tables)
