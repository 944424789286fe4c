"""Generators and critics of every shape, on records of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import random_records, schema_of, to_lists
from tests.models.gan.material import GAPS, IMAGES, LABEL, SERIES, TABLE, draw_examples, fit_gan, new_game

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.gan.architectures import choose_shape, refuse_shape
from sundog.models.gan.networks import Grid, new_critic, new_generator
from sundog.models.gan.networks.series_networks import Spectrum
from sundog.models.neural.features import Features


def image(*shape: int, **rest: Any) -> Schema:
    return schema_of({"image": {"type": "image", "shape": list(shape)}, **rest})


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (image(9, 11, 3, label=LABEL), "conv"),
        (image(9, 11, 3), "mlp"),
        (image(1, 5, label=LABEL), "conv"),
        (image(5, 1), "conv"),
        (image(1, 1), "conv"),
        (image(17, 3), "conv"),
        (GAPS, "conv"),
        (GAPS, "lstm"),
        (GAPS, "mlp"),
        (schema_of({"meter": {**SERIES, "length": 1}}), "conv"),
        (schema_of({"meter": {**SERIES, "length": 1}}), "lstm"),
        (schema_of({"meter": {**SERIES, "length": 96}, "label": LABEL}), "conv"),
        (TABLE, "mlp"),
        (schema_of({**TABLE.to_dict()["columns"], "image": {"type": "image", "shape": [3, 4]}}), "conv"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value.columns),
)
@pytest.mark.parametrize("objective", ["non-saturating", "wasserstein"])
def test_records_of_any_size(schema: Schema, shape: str, objective: str) -> None:
    model = fit_gan(random_records(schema, 60), shape=shape, objective=objective, epochs=1)
    codes = model.sample(30, np.random.default_rng(0), {})
    for name, column in schema.columns.items():
        assert codes[name].shape == (30, *column.shape)
        column.decode(codes[name])
    again = type(model).from_state(schema, model.state()).sample(30, np.random.default_rng(0), {})
    assert {name: to_lists(codes[name]) for name in codes} == {name: to_lists(again[name]) for name in again}


def test_smallest_networks() -> None:
    for schema, shape in ((IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm"), (TABLE, "mlp")):
        fit_gan(random_records(schema, 60), shape=shape, hidden=1, latent=1, epochs=1)


@pytest.mark.parametrize(("schema", "shape"), [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm")])
def test_what_is_generated_for_one_does_not_depend_on_the_others(schema: Schema, shape: str) -> None:
    game = new_game(schema, shape)
    inputs = torch.randn(6, game.generator.body.latent + 3)
    whole = game.generator(inputs)
    torch.testing.assert_close(whole[2:3], game.generator(inputs[2:3]), rtol=1e-4, atol=1e-5)
    x = game.features.to_dense(draw_examples(schema, 6))
    torch.testing.assert_close(game.critic(x)[2:3], game.critic(x[2:3]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("schema", "shape"), [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm")])
def test_both_networks_use_all_that_they_are_given(schema: Schema, shape: str) -> None:
    """Every feature counts for the critic, and every input for the generator, the label among them."""
    game = new_game(schema, shape)
    x = game.features.to_dense(draw_examples(schema, 40)).requires_grad_()
    (gradient,) = torch.autograd.grad(game.critic(x).sum(), x)
    assert (gradient.abs().sum(dim=0) > 0).all()
    inputs = torch.randn(40, game.generator.body.latent + 3, requires_grad=True)
    body = game.generator.body(inputs)
    (gradient,) = torch.autograd.grad((body * torch.randn(body.shape)).sum(), inputs)
    assert (gradient.abs().sum(dim=0) > 0).all()


def test_a_grid_is_cut_out_of_a_record_and_put_in_again() -> None:
    columns = {**TABLE.to_dict()["columns"], "image": {"type": "image", "shape": [3, 4, 2]}, "last": LABEL}
    features = Features(schema_of(columns))
    grid = Grid.of(features)
    x = torch.rand(5, features.width)
    values = (grid.cut_out(x) + 1) / 2
    assert values.shape == (5, 2, 3, 4)
    torch.testing.assert_close(grid.put_in(values, grid.select_others(x)), x)
    larger = torch.nn.functional.pad(values, (0, 1, 0, 1), value=7.0)  # what a generator made too much
    torch.testing.assert_close(grid.put_in(larger, grid.select_others(x)), x)


def test_a_pixel_of_the_grid_is_that_pixel_of_the_image() -> None:
    schema = image(4, 5, 3)
    codes = random_records(schema, 2)
    dense = Features(schema).to_dense(Features(schema).to_examples(codes).take(np.arange(2)))
    cut = (Grid.of(Features(schema)).cut_out(dense) + 1) / 2
    torch.testing.assert_close(cut, torch.from_numpy(codes.codes["image"] / 255).float().permute(0, 3, 1, 2))


def test_the_best_shape() -> None:
    assert [choose_shape(schema) for schema in (TABLE, IMAGES, GAPS)] == ["mlp", "conv", "mlp"]
    assert choose_shape(schema_of({"label": LABEL, "other": LABEL})) == "pairs"
    both = schema_of({"image": {"type": "image", "shape": [3, 4]}, "meter": SERIES})
    assert choose_shape(both) == "mlp"
    for shape in ("conv", "lstm"):
        with pytest.raises(SundogError, match="needs one image or series, and there are 2; use mlp"):
            refuse_shape(both, shape)
    with pytest.raises(SundogError, match="needs one image or series, and there are 0; use mlp"):
        refuse_shape(TABLE, "conv")
    with pytest.raises(SundogError, match="'image' is an image; use conv"):
        refuse_shape(IMAGES, "lstm")


@pytest.mark.parametrize("size", [28, 32, 64])
def test_usual_images_have_networks_of_a_usual_size(size: int) -> None:
    features = Features(image(size, size, 3, label=LABEL))
    with torch.device("meta"):
        generator = new_generator(features, "conv", 3, hidden=128, latent=32)
        critic = new_critic(features, "conv", features.at("label"), hidden=128)
        assert generator(torch.empty(2, 35)).shape == (2, features.width)
        assert critic(torch.empty(2, features.width)).shape == (2,)
    counts = [sum(weight.numel() for weight in network.parameters()) for network in (generator, critic)]
    assert 10**5 < counts[0] < 5 * 10**6
    assert 10**4 < counts[1] < 5 * 10**6


def test_a_series_with_gaps_keeps_them_and_what_is_there() -> None:
    column = GAPS.columns["meter"]
    codes = random_records(GAPS, 1500).codes
    meter = np.full((1500, 7), 80, column.dtype)
    meter[np.random.default_rng(0).random(meter.shape) < 0.5] = column.null_code
    for shape in ("conv", "lstm"):
        model = fit_gan(Records(GAPS, {**codes, "meter": meter}, 1500), epsilon=20.0, shape=shape, batch=200, epochs=2)
        drawn = model.sample(3000, np.random.default_rng(0), {})["meter"]
        there = drawn != column.null_code
        assert there.mean(axis=0) == pytest.approx(0.5, abs=0.07)
        assert drawn[there].mean() == pytest.approx(80, abs=4)


def test_a_very_wide_table_has_no_weight_for_each_pair() -> None:
    wide = schema_of({"code": {"type": "categorical", "values": [f"{number}" for number in range(3000)]}})
    assert choose_shape(wide) == "mlp"


def test_a_critic_of_series_sees_roots_and_the_strength_of_rhythms() -> None:
    schema = schema_of({"meter": {"type": "series", "length": 8, "min": 0, "max": 1, "resolution": 0.01}})
    rhythms = Spectrum.of(Features(schema), without=slice(0, 0))
    time = torch.arange(8) / 8
    waves = [(2 * torch.pi * (cycles * time + shift)).cos() for cycles, shift in ((1, 0.0), (1, 0.3), (3, 0.0))]
    levels = torch.stack([(0.25 * wave + 0.5).square() for wave in waves])  # whose roots are waves
    seen = rhythms(levels)
    assert seen.shape == (3, 8 + rhythms.count)
    assert torch.allclose(seen[:, :8], 2 * (levels + 1e-4).sqrt() - 1)
    strengths = seen[:, 8:]
    assert strengths.argmax(dim=1).tolist() == [0, 0, 2]
    assert torch.allclose(strengths[0], strengths[1], atol=0.02)  # at whatever hour
    assert rhythms(levels[:0]).shape == (0, 12)
