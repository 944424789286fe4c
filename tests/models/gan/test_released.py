"""Files that are none of ours, settings that are none, and conditions on what is drawn."""

from __future__ import annotations

import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import KINDS, decode_records, random_records, schema_of, to_lists
from tests.models.gan.material import GAPS, IMAGES, QUICK, TABLE, fit_gan

from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan.gan import Gan
from sundog.models.protocol import State
from sundog.models.released import LARGEST_SIZE
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

HUNDRED: dict[str, Any] = {"type": "integer", "min": 0, "max": 99, "bins": 100}
WIDE = schema_of({"label": {"type": "boolean"}, **{f"c{number}": HUNDRED for number in range(21)}})
EVERY = pytest.mark.parametrize(
    ("schema", "shape"),
    [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm")],
    ids=["table", "images", "series", "lstm"],
)


@cache
def _model(schema: str, shape: str) -> Gan:
    return fit_gan(random_records(SCHEMAS[schema], 60), shape=shape, condition="label", epochs=1)


SCHEMAS = {"table": TABLE, "images": IMAGES, "series": GAPS}


def model_of(schema: Schema, shape: str) -> Gan:
    (name,) = (name for name, known in SCHEMAS.items() if known is schema)
    return _model(name, shape)


# --- files ---


@EVERY
def test_a_file_brings_the_generator_back_and_nothing_else(schema: Schema, shape: str, tmp_path: Path) -> None:
    data, settings = decode_records(random_records(schema, 60)), {**QUICK, "shape": shape, "condition": "label"}
    release = Synthesizer("gan", epsilon=2.0, delta=1e-6, seed=1, settings=settings).fit(data, schema).release_
    release.save(tmp_path / "o.sundog")
    again = Release.load(tmp_path / "o.sundog")
    assert again.verify() == []
    for where in ({}, {"label": "b"}):
        first, second = (next(one.batches(40, seed=3, where=where)).codes for one in (release, again))
        assert {name: to_lists(first[name]) for name in first} == {name: to_lists(second[name]) for name in second}
    model = release.model
    assert isinstance(model, Gan)
    assert set(model.state().tensors) == {*model.generator.state_dict(), "prior"}
    assert not any("critic" in name for name in model.state().tensors)


@EVERY
@pytest.mark.parametrize("harm", ["nan", "infinite", "shape", "turned", "double", "gone", "more"])
def test_harmed_weights_are_refused(schema: Schema, shape: str, harm: str) -> None:
    state = model_of(schema, shape).state()
    for name, tensor in state.tensors.items():
        tensors = {**state.tensors, name: tensor.copy()}
        if harm in ("nan", "infinite"):
            tensors[name].flat[-1] = np.nan if harm == "nan" else -np.inf
        elif harm == "shape":
            tensors[name] = np.concatenate([tensor, tensor[:1]])
        elif harm == "turned":
            tensors[name] = tensor[..., None]
        elif harm == "double":
            tensors[name] = tensor.astype(np.float64)
        elif harm == "gone":
            del tensors[name]
        else:
            tensors["critic.0.weight"] = tensor
        with pytest.raises(ReleaseError, match="the weights"):
            Gan.from_state(schema, State(tensors, state.config))


HOSTILE: list[dict[str, Any]] = [
    {"shape": "transformer"},
    {"shape": None},
    {"shape": ["mlp"]},
    {"shape": {}},
    {"hidden": 0},
    {"hidden": -8},
    {"hidden": 8.0},
    {"hidden": True},
    {"hidden": "8"},
    {"hidden": 2**62},
    {"hidden": LARGEST_SIZE + 1},
    {"latent": 0},
    {"latent": [3]},
    {"latent": 10**30},
    {"records": 0},
    {"records": 1.5},
    {"records": 10**30},
    {"condition": "no such column"},
    {"condition": 3},
    {"condition": ["label"]},
    {"condition": None},
    {"named": None},
    {"named": 1},
    {"named": "yes"},
    {"more": 1},
]


@EVERY
@pytest.mark.parametrize("harm", HOSTILE, ids=repr)
def test_a_configuration_of_other_weights_is_refused(schema: Schema, shape: str, harm: dict[str, Any]) -> None:
    state = model_of(schema, shape).state()
    with pytest.raises(ReleaseError) as caught:
        Gan.from_state(schema, State(state.tensors, {**state.config, **harm}))
    assert "\n" not in str(caught.value)


@EVERY
def test_every_size_of_a_configuration_counts(schema: Schema, shape: str) -> None:
    """Small ones, and those that a layer is too small for."""
    state = model_of(schema, shape).state()
    for name in ("hidden", "latent"):
        for size in (1, 2, 4, 16):
            with pytest.raises(ReleaseError):
                Gan.from_state(schema, State(state.tensors, {**state.config, name: size}))


@EVERY
def test_a_configuration_takes_no_memory(schema: Schema, shape: str) -> None:
    """Of 65,536 × 65,536 weights there are 16 GiB; nobody has them."""
    state = model_of(schema, shape).state()
    large = {**state.config, "hidden": LARGEST_SIZE, "latent": LARGEST_SIZE}
    before = _resident()
    tracemalloc.start()
    with pytest.raises(ReleaseError, match="not those of a `gan` model of this schema"):
        Gan.from_state(schema, State(state.tensors, large))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**22
    assert _resident() - before < 2**28


def _resident() -> int:
    """The most memory that this process ever had, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_an_image_of_a_configuration_belongs_to_its_schema() -> None:
    """Convolutions where there is nothing to convolve."""
    state = model_of(TABLE, "mlp").state()
    for shape in ("conv", "lstm"):
        with pytest.raises(ReleaseError):
            Gan.from_state(TABLE, State(state.tensors, {**state.config, "shape": shape}))
    state = model_of(IMAGES, "conv").state()
    for shape in ("mlp", "lstm"):
        with pytest.raises(ReleaseError):
            Gan.from_state(IMAGES, State(state.tensors, {**state.config, "shape": shape}))


@pytest.mark.parametrize("size", [1e30, 3e38])
@EVERY
def test_enormous_weights_draw_records_all_the_same(schema: Schema, shape: str, size: float) -> None:
    state = model_of(schema, shape).state()
    harmed = {name: (np.sign(tensor) * size).astype(np.float32) for name, tensor in state.tensors.items()}
    model = Gan.from_state(schema, State(harmed, state.config))
    for where in ({}, {"label": 2}):
        codes = model.sample(20, np.random.default_rng(0), where)
        for name, column in schema.columns.items():
            column.decode(codes[name])


@EVERY
def test_a_file_draws_nothing_when_it_is_read(schema: Schema, shape: str) -> None:
    before = torch.get_rng_state()
    Gan.from_state(schema, model_of(schema, shape).state())
    assert torch.equal(torch.get_rng_state(), before)


# --- conditions ---


@EVERY
def test_a_label_that_is_asked_for_is_drawn(schema: Schema, shape: str) -> None:
    model = model_of(schema, shape)
    for code in range(3):
        drawn = model.sample(25, np.random.default_rng(0), {"label": code})
        assert drawn["label"].tolist() == [code] * 25
    free = model.sample(600, np.random.default_rng(0), {})["label"]
    assert set(free.tolist()) == {0, 1, 2}
    evidence = np.exp([model.log_evidence({"label": code}) for code in range(3)])
    assert evidence == pytest.approx(np.bincount(free, minlength=3) / 600, abs=0.08)
    assert evidence.sum() == pytest.approx(1.0, abs=1e-4)


def test_a_condition_on_another_column_than_the_label_holds_too() -> None:
    model = model_of(TABLE, "mlp")
    drawn = model.sample(200, np.random.default_rng(0), {"size": 42})
    assert drawn["size"].tolist() == [42] * 200
    assert len(set(drawn["label"].tolist())) == 3
    both = model.sample(20, np.random.default_rng(0), {"size": 42, "label": 1})
    assert both["size"].tolist() == [42] * 20
    assert both["label"].tolist() == [1] * 20


@pytest.mark.parametrize("condition", ["boolean", "categorical", None])
def test_any_column_with_one_value_can_be_told(condition: str | None) -> None:
    schema = schema_of(KINDS["all_scalars"])
    model = fit_gan(random_records(schema, 60), condition=condition, epochs=1)
    assert model.config["condition"] == condition
    drawn = model.sample(10, np.random.default_rng(0), {"integer": 3, "boolean": 1})
    assert drawn["integer"].tolist() == [3] * 10
    assert drawn["boolean"].tolist() == [1] * 10


# --- settings ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", "transformer"),
        ("shape", None),
        ("shape", ["mlp"]),
        ("objective", "least squares"),
        ("objective", 1),
        ("hidden", 0),
        ("hidden", 1.5),
        ("latent", 10**9),
        ("latent", True),
        ("batch", 0),
        ("batch", "all"),
        ("epochs", 0),
        ("epochs", float("inf")),
        ("clip", -1),
        ("clip", "private"),
        ("learning_rate", -1.0),
        ("generator_rate", 0),
        ("generator_rate", float("nan")),
        ("generator_rate", 10.1),
        ("learning_rate", 10.1),
        ("critic_steps", 0),
        ("critic_steps", 0.2),
        ("critic_steps", 1001),
        ("critic_steps", float("nan")),
        ("critic_steps", "1"),
        ("recognised", 1.0),
        ("recognised", -0.1),
        ("penalty", -1.0),
        ("penalty", float("nan")),
        ("means", 1.0),
        ("classifier", 1.0),
        ("classifier", -0.1),
        ("classifier", True),
        ("classifier", "0.3"),
        ("classifier", float("nan")),
        ("condition", "basket"),
        ("condition", "no such column"),
        ("condition", 3),
        ("condition", ["label"]),
    ],
)
def test_invalid_settings_are_refused_before_anything_is_spent(name: str, value: Any) -> None:
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    with pytest.raises(SundogError, match=f"setting '{name}' must be") as caught:
        Synthesizer("gan", epsilon=2.0, ledger=ledger, settings={name: value}).fit(
            decode_records(random_records(TABLE, 50)), TABLE
        )
    assert "\n" not in str(caught.value)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("schema", "shape", "what"),
    [
        (TABLE, "conv", "there are 0; use mlp"),
        (TABLE, "lstm", "there are 0; use mlp"),
        (IMAGES, "lstm", "use conv"),
        (
            WIDE,
            "pairs",
            "'pairs' has a weight for each two of at most 2048 features, and there are 2102; use mlp",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused_before_anything_is_spent(schema: Schema, shape: str, what: str) -> None:
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    with pytest.raises(SundogError, match=what) as caught:
        Synthesizer("gan", epsilon=2.0, ledger=ledger, settings={"shape": shape}).fit(
            decode_records(random_records(schema, 50)), schema
        )
    assert "\n" not in str(caught.value)
    assert ledger.charges == ()
