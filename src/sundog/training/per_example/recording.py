"""Layer functions that record the factors of per-example gradients in the backward pass.

Each public function computes the same as its torch counterpart and can be differentiated any number of times. Inside
`record_factors()`, its *last* backward pass (the one without `create_graph`) records the factors of the parameter's
gradient and computes no gradient for the parameter. An inner backward pass, as in a gradient penalty, runs through the
adjoint of the layer, which is a recording function too and contributes further terms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from sundog.training.per_example.convolution import Convolution
from sundog.training.per_example.factors import Dense, Lookup, Outer, OuterSum, StackedDense, StackedOuter

_recordings: list[dict[int, list[Any]]] = []


@contextlib.contextmanager
def record_factors() -> Iterator[dict[int, list[Any]]]:
    """Record the factors of every parameter, by its id, in the backward passes inside the block."""
    factors: dict[int, list[Any]] = {}
    _recordings.append(factors)
    try:
        yield factors
    finally:
        _recordings.pop()


def _apply(function: Any, *arguments: Any) -> Any:
    return function.apply(*arguments)


def _is_last_pass() -> bool:
    return not torch.is_grad_enabled()  # autograd enables gradients in a backward pass only to differentiate it again


def _record(parameter: Tensor, factors: Any) -> None:
    _recordings[-1].setdefault(id(parameter), []).append(factors)


def _make_outer(left: Tensor, right: Tensor) -> Outer | OuterSum:
    if left.dim() == 2:
        return Outer(left, right)
    return OuterSum(left.flatten(1, -2), right.flatten(1, -2))


class _Linear(Function):
    """y = x Wᵀ + b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, weight, bias = ctx.saved_tensors
        if _is_last_pass():
            _record(weight, _make_outer(grad, x))
            if bias is not None:
                _record(bias, Dense(_sum_to(grad, bias.shape), bias.shape))
        return (_apply(_LinearAdjoint, grad, weight) if ctx.needs_input_grad[0] else None), None, None


class _LinearAdjoint(Function):
    """z = y W: what a linear layer does to gradients."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(y, weight)
        return functional.linear(y, weight.T.contiguous()) if y.is_cuda else y @ weight  # aligned rows are faster

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        y, weight = ctx.saved_tensors
        if _is_last_pass():
            _record(weight, _make_outer(y, grad))
        return (_apply(_Linear, grad, weight, None) if ctx.needs_input_grad[0] else None), None


class _StackedLinear(Function):
    """y[j] = x[j] W[j]ᵀ + b[j]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        return x @ weight.mT if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, weight, bias = ctx.saved_tensors
        if _is_last_pass():
            _record(weight, StackedOuter(grad, x))
            if bias is not None:
                _record(bias, StackedDense(grad))
        return (_apply(_StackedAdjoint, grad, weight) if ctx.needs_input_grad[0] else None), None, None


class _StackedAdjoint(Function):
    """z[j] = y[j] W[j]."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(y, weight)
        return y @ weight

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        y, weight = ctx.saved_tensors
        if _is_last_pass():
            _record(weight, StackedOuter(y, grad))
        return (_apply(_StackedLinear, grad, weight, None) if ctx.needs_input_grad[0] else None), None


class _Shift(Function):
    """y = x + b, with b along one dimension (or several last ones)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, view: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(bias)
        ctx.view = view
        return x + bias.view(view)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        (bias,) = ctx.saved_tensors
        if _is_last_pass():
            _record(bias, Dense(_sum_to(grad, ctx.view), bias.shape))
        return grad, None, None


class _Scale(Function):
    """y = x ⊙ w: its own adjoint."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, view: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.view = view
        return x * weight.view(view)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, weight = ctx.saved_tensors
        if _is_last_pass():
            _record(weight, Dense(_sum_to(grad * x, ctx.view), weight.shape))
        return (_apply(_Scale, grad, weight, ctx.view) if ctx.needs_input_grad[0] else None), None, None


class _Embedding(Function):
    """Rows of a table."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(index, weight)
        return weight[index]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        index, weight = ctx.saved_tensors
        if _is_last_pass():
            tokens = index.flatten(1) if index.dim() > 1 else index[:, None]
            _record(weight, Lookup(tokens, grad.reshape(*tokens.shape, grad.shape[-1]), len(weight)))
        return None, None


class _Convolution(Function):
    """A convolution, or a transposed one: each is the adjoint of the other, with the same weight."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, geometry: dict[str, Any], transposed: bool, extra: list[int]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry, ctx.transposed, ctx.size = geometry, transposed, x.shape
        return _convolve(x, weight, geometry, transposed, extra)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, weight = ctx.saved_tensors
        if _is_last_pass():
            small, large = (x, grad) if ctx.transposed else (grad, x)
            _record(weight, Convolution(small, large, weight.shape, ctx.geometry))
        back = None
        if ctx.needs_input_grad[0]:
            extra = (
                [0] * (grad.dim() - 2)
                if ctx.transposed
                else _compute_output_padding(ctx.size, grad.shape, ctx.geometry)
            )
            back = _apply(_Convolution, grad, weight, ctx.geometry, not ctx.transposed, extra)
        return back, None, None, None, None


def _convolve(x: Tensor, weight: Tensor, geometry: dict[str, Any], transposed: bool, extra: list[int]) -> Tensor:
    stride, padding, dilation, groups = (geometry[key] for key in ("stride", "padding", "dilation", "groups"))
    if not transposed or x.dim() != 4 or not x.shape[0]:
        result: Tensor = torch.convolution(x, weight, None, stride, padding, dilation, transposed, extra, groups)
        return result
    # A transposed convolution is the backward pass of a convolution, for which torch has faster code.
    sizes = zip(x.shape[2:], geometry["kernel_size"], stride, padding, dilation, extra, strict=True)
    shape = [(m - 1) * step - 2 * pad + gap * (kernel - 1) + 1 + more for m, kernel, step, pad, gap, more in sizes]
    like = x.new_empty(x.shape[0], weight.shape[1] * groups, *shape)
    only_input = [True, False, False]
    back: Tensor = torch.ops.aten.convolution_backward(
        x, like, weight, None, stride, padding, dilation, False, [0, 0], groups, only_input
    )[0]
    return back


def _compute_output_padding(large: torch.Size, small: torch.Size, geometry: dict[str, Any]) -> list[int]:
    """Return the output padding of the adjoint: the input's length beyond the shortest with this output size."""
    sizes = zip(
        large[2:],
        small[2:],
        geometry["kernel_size"],
        geometry["stride"],
        geometry["padding"],
        geometry["dilation"],
        strict=True,
    )
    return [n - ((m - 1) * stride - 2 * pad + gap * (kernel - 1) + 1) for n, m, kernel, stride, pad, gap in sizes]


def _sum_to(gradient: Tensor, view: Sequence[int]) -> Tensor:
    """Sum, for each example, over the dimensions along which the parameter was broadcast."""
    offset = gradient.dim() - len(view)
    repeated = [i for i in range(1, gradient.dim()) if i < offset or view[i - offset] == 1]
    return gradient.sum(dim=repeated) if repeated else gradient


def record_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply `torch.nn.functional.linear`, recorded."""
    y: Tensor = _apply(_Linear, x, weight, bias)
    return y


def record_stacked_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply `StackedLinear.forward`, recorded."""
    y: Tensor = _apply(_StackedLinear, x, weight, bias)
    return y


def record_shift(x: Tensor, bias: Tensor, view: tuple[int, ...]) -> Tensor:
    """Add bias.view(view), recorded."""
    y: Tensor = _apply(_Shift, x, bias, view)
    return y


def record_scale(x: Tensor, weight: Tensor, view: tuple[int, ...]) -> Tensor:
    """Multiply by weight.view(view), recorded."""
    y: Tensor = _apply(_Scale, x, weight, view)
    return y


def record_embedding(index: Tensor, weight: Tensor) -> Tensor:
    """Look up rows of an embedding table, recorded."""
    y: Tensor = _apply(_Embedding, index, weight)
    return y


def record_convolution(
    x: Tensor, weight: Tensor, geometry: dict[str, Any], *, transposed: bool = False, extra: Sequence[int] = ()
) -> Tensor:
    """Apply a convolution in one or two dimensions, recorded; `extra` is the output padding of a transposed one."""
    extra = extra or [0] * (x.dim() - 2)
    y: Tensor = _apply(_Convolution, x, weight, geometry, transposed, list(extra))
    return y
