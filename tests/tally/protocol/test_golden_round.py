"""A whole round from fixed seeds has the same bytes in every implementation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.tally.vectors import make_vectors

from sundog.tally.protocol.seed_sealing import list_parts, open_seeds

VECTORS = Path(make_vectors.__file__).parent


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def test_the_transcript_is_that_of_the_code() -> None:
    transcript = load("transcript")
    assert transcript == make_vectors.make_transcript()
    assert transcript["sum"] == [1, 1, 1, 0, 1]


def test_golden_seals_open() -> None:
    contributor, *seals = load("seals")
    seeds = [bytes.fromhex(part["seed"]) for part in contributor["parts"]]
    for seal in seals:
        values = {name: bytes.fromhex(seal[name]) for name in ("sealed", "private_key", "round", "parties")}
        opened = open_seeds(
            values["sealed"], values["private_key"], round_digest=values["round"], parties=values["parties"]
        )
        assert list(opened) == [seeds[part] for part in list_parts(seal["keeper"])]


def test_golden_commitments_and_mask_keys_are_those_of_the_code() -> None:
    assert load("seals")[0] == make_vectors.make_seals()[0]
