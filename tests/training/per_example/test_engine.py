"""Clipped sums and norms against the slow oracle: one example at a time, by autograd alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.toy import by_layer
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.training.clipping import compute_clip_weights
from sundog.training.groups import Groups, group_all, group_weights_and_biases
from sundog.training.per_example.engine import Loss, clip_and_sum
from sundog.training.per_example.layers import find_unsupported, record_layers

TOLERANCE = 1e-10  # in double precision; far below the 1e-5 that single precision needs


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def one_by_one(loss: Loss, batch: Any, groups: Groups, bounds: Tensor) -> tuple[list[Tensor], Tensor]:
    """The oracle."""
    size = len(batch[0]) if isinstance(batch, tuple) else len(batch)
    sums = [torch.zeros_like(p) for p in groups.parameters]
    norms = torch.zeros(groups.count, size)
    for i in range(size):
        example = tuple(t[i : i + 1] for t in batch) if isinstance(batch, tuple) else batch[i : i + 1]
        found = torch.autograd.grad(loss(example).sum(), list(groups.parameters), allow_unused=True)
        gradients = [torch.zeros_like(p) if g is None else g for g, p in zip(found, groups.parameters, strict=True)]
        for g, group in zip(gradients, groups.of, strict=True):
            norms[group, i] += g.square().sum()
        norms[:, i] = norms[:, i].sqrt()
        for total, g, group in zip(sums, gradients, groups.of, strict=True):
            total.add_(g, alpha=min(1.0, float(bounds[group] / norms[group, i])) if norms[group, i] > 0 else 1.0)
    return sums, norms


def check(module: nn.Module, loss: Loss, batch: Any, groups: Groups | None = None) -> None:
    groups = groups or group_all(module)
    bounds = torch.linspace(0.3, 0.9, groups.count)
    clipped = clip_and_sum(module, loss, batch, groups, lambda n: compute_clip_weights(n, bounds))
    sums, norms = clipped.sums, clipped.norms
    expected_sums, expected_norms = one_by_one(loss, batch, groups, bounds)
    torch.testing.assert_close(norms, expected_norms, rtol=TOLERANCE, atol=TOLERANCE)
    for ours, expected in zip(sums, expected_sums, strict=True):
        torch.testing.assert_close(ours, expected, rtol=TOLERANCE, atol=TOLERANCE)


def square(module: nn.Module) -> Loss:
    return lambda x: module(x).flatten(1).square().sum(1)


def penalise(module: nn.Module) -> Loss:
    """A WGAN critic's private part: the score of a record and the exact gradient penalty of its own mixture."""

    def loss(batch: tuple[Tensor, Tensor]) -> Tensor:
        mixed, real = batch
        mixed = mixed.clone().requires_grad_(True)
        score = module(mixed)
        (slope,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
        loss: Tensor = 10 * (slope.flatten(1).norm(dim=1) - 1).square() - module(real).flatten(1).sum(1)
        return loss

    return loss


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.inner = kind(3, 4, batch_first=True, **options)
        self.out = nn.Linear(8 if options.get("bidirectional") else 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.inner(x)[0][:, -1])
        return result


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 7), nn.LeakyReLU(0.2), nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, 1))


def conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(4, 6, 3, padding=1, groups=2),
        nn.GroupNorm(2, 6),
        nn.Softplus(),
        nn.Flatten(),
        nn.Linear(6 * 16, 1),
    )


def odd_conv() -> nn.Module:  # strides that do not divide the input, dilation
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2), nn.Tanh(), nn.Conv2d(4, 3, 2, stride=3, dilation=2), nn.Flatten(), nn.Linear(3, 1)
    )


def deep_conv() -> nn.Module:  # few positions and large filters, whose norms come from their factors
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Conv2d(4, 16, 3, stride=2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(16, 1),
    )


def make_transposed() -> nn.Module:
    return nn.Sequential(
        nn.Linear(3, 32),
        nn.Unflatten(1, (2, 4, 4)),
        nn.ConvTranspose2d(2, 4, 4, stride=2, padding=1, output_padding=1),
        nn.Tanh(),
        nn.ConvTranspose2d(4, 2, 3, groups=2),
    )


def one_dimension() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(2 * 10, 1),
    )


SHAPES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (5,)),
    "conv": (conv, (2, 8, 8)),
    "odd conv": (odd_conv, (2, 12, 12)),
    "deep conv": (deep_conv, (2, 8, 8)),
    "transposed conv": (make_transposed, (3,)),
    "one dimension": (one_dimension, (2, 10)),
    "lstm": (lambda: Recurrent(nn.LSTM), (6, 3)),
    "lstm, two layers": (lambda: Recurrent(nn.LSTM, num_layers=2), (4, 3)),
    "lstm, both ways": (lambda: Recurrent(nn.LSTM, bidirectional=True), (4, 3)),
    "gru": (lambda: Recurrent(nn.GRU), (6, 3)),
    "gru without bias": (lambda: Recurrent(nn.GRU, bias=False, num_layers=2), (4, 3)),
    "linear on sequences": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)), (7, 3)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 1)), (4,)),
}
shapes = pytest.mark.parametrize("name", SHAPES)


@shapes
@pytest.mark.parametrize("size", [0, 1, 7])
def test_every_layer(name: str, size: int) -> None:
    make, shape = SHAPES[name]
    module = make()
    check(module, square(module), torch.randn(size, *shape))


@shapes
@pytest.mark.parametrize("size", [1, 5])
def test_every_layer_under_a_gradient_penalty(name: str, size: int) -> None:
    make, shape = SHAPES[name]
    module = make()
    check(module, penalise(module), (torch.randn(size, *shape), torch.randn(size, *shape)))


@pytest.mark.parametrize("grouping", [group_all, group_weights_and_biases, by_layer])
@pytest.mark.parametrize("name", ["mlp", "conv", "deep conv", "lstm"])
def test_groups_are_clipped_by_themselves(name: str, grouping: Callable[[nn.Module], Groups]) -> None:
    make, shape = SHAPES[name]
    module = make()
    check(module, square(module), torch.randn(6, *shape), grouping(module))


def test_a_shared_layer() -> None:
    layer = nn.Linear(5, 5)
    module = nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh(), layer)
    check(module, square(module), torch.randn(6, 5))
    check(module, penalise(module), (torch.randn(6, 5), torch.randn(6, 5)))


def test_two_forward_passes() -> None:
    module = mlp()
    check(module, lambda b: module(b[0]).square().sum(1) - module(b[1]).sum(1), (torch.randn(6, 5), torch.randn(6, 5)))


def test_a_layer_on_vectors_and_on_sequences() -> None:
    layer = nn.Linear(3, 3)
    check(
        layer,
        lambda b: layer(b[0]).square().sum(1) + layer(b[1]).sum((1, 2)),
        (torch.randn(4, 3), torch.randn(4, 5, 3)),
    )


def test_an_embedding_that_is_looked_up_twice() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

        def forward(self, index: Tensor) -> Tensor:
            result: Tensor = self.out(self.table(index).mean(1))
            return result

    words = Words()
    check(words, square(words), torch.randint(0, 3, (6, 5)))  # few rows: every example repeats some


def test_a_parameter_that_nothing_touches_has_no_gradient() -> None:
    module = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])
    check(module, lambda x: module[0](x).square().sum(1), torch.randn(4, 3))


@settings(max_examples=40, database=None)
@given(
    batch=st.integers(0, 6),
    channels=st.integers(1, 3),
    out=st.integers(1, 4),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    size=st.integers(7, 10),
)
def test_convolutions_of_any_shape(
    batch: int, channels: int, out: int, kernel: int, stride: int, padding: int, dilation: int, size: int
) -> None:
    torch.set_default_dtype(torch.float64)
    layer = nn.Conv2d(channels, out, kernel, stride=stride, padding=padding, dilation=dilation)
    module = nn.Sequential(layer, nn.Tanh())
    check(module, square(module), torch.randn(batch, channels, size, size))
    if batch:
        check(
            module,
            penalise(module),
            (torch.randn(batch, channels, size, size), torch.randn(batch, channels, size, size)),
        )


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor, self.out = nn.Parameter(torch.randn(3)), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(x * self.factor)
        return result


def test_what_cannot_be_tapped_is_done_the_slow_way_and_said() -> None:
    module = Custom()
    assert find_unsupported(module) == ["the model (Custom)"]
    with pytest.warns(UserWarning, match="are materialised"):
        check(module, square(module), torch.randn(5, 3))


def test_a_weight_that_is_used_behind_its_layers_back_is_noticed() -> None:
    layer = nn.Linear(3, 3)
    with pytest.warns(UserWarning, match="outside of its layer"):
        check(layer, lambda x: layer(x).square().sum(1) + (x @ layer.weight).sum(1), torch.randn(5, 3))


def test_batch_statistics_are_refused() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with pytest.raises(SundogError, match="mixes the examples"):
        clip_and_sum(module, square(module), torch.randn(4, 3), group_all(module), lambda n: n)


@shapes
def test_tapped_layers_compute_the_same(name: str) -> None:
    make, shape = SHAPES[name]
    module = make()
    x = torch.randn(3, *shape)
    expected = module(x)
    with record_layers(module):
        torch.testing.assert_close(module(x), expected)
    assert "forward" not in vars(next(module.modules()))


def test_gradients_that_were_there_stay() -> None:
    module = mlp()
    square(module)(torch.randn(2, 5)).sum().backward()  # type: ignore[no-untyped-call]
    before = [p.grad.clone() for p in module.parameters() if p.grad is not None]
    clip_and_sum(
        module, square(module), torch.randn(4, 5), group_all(module), lambda n: compute_clip_weights(n, torch.ones(1))
    )
    after = [p.grad for p in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True) if a is not None)


def test_nothing_is_written_down_where_it_can_be_tapped() -> None:
    module = conv()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(module, square(module), torch.randn(2, 2, 8, 8))
