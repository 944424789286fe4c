"""Which torch layers are recorded, and how.

`record_layers(module)` replaces the forward of every supported layer by its recorded counterpart. If a layer with
trainable parameters is not in the registry (`find_unsupported`), the engine computes per-example gradients of the whole
model by vmap.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from sundog.errors import SundogError
from sundog.training.per_example import recording
from sundog.training.per_example.recurrent import run_gru, run_lstm
from sundog.training.stacked_modules import StackedLinear

Forward = Callable[..., Any]


@contextlib.contextmanager
def record_layers(module: nn.Module) -> Iterator[None]:
    """Replace the forward of every supported layer inside the block."""
    layers = [layer for layer in module.modules() if type(layer) in _FORWARDS]
    for layer in layers:
        layer.forward = functools.partial(_FORWARDS[type(layer)], layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def find_unsupported(module: nn.Module) -> list[str]:
    """List the layers with trainable parameters that cannot be recorded, by name and type."""
    found = []
    for name, layer in module.named_modules():
        own = [p for p in layer.parameters(recurse=False) if p.requires_grad]
        if own and not _is_supported(layer):
            found.append(f"{name or 'the model'} ({type(layer).__name__})")
    return found


def refuse_batch_statistics(module: nn.Module) -> None:
    """Raise if a layer mixes the examples of a batch: their gradients could not be clipped one by one."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) or getattr(layer, "track_running_stats", False):
            raise SundogError(
                f"layer {name} ({type(layer).__name__}) mixes the examples of a batch; use GroupNorm or LayerNorm"
            )


def _is_supported(layer: nn.Module) -> bool:
    if type(layer) not in _FORWARDS:
        return False
    padded = getattr(layer, "padding_mode", "zeros") != "zeros" or isinstance(getattr(layer, "padding", 0), str)
    # a weight that is computed from other tensors (weight_norm) is not a parameter of the layer
    own = all(
        name in layer._parameters for name in ("weight", "bias") if isinstance(getattr(layer, name, None), Tensor)
    )
    special = any(getattr(layer, name, 0) for name in ("proj_size", "dropout", "max_norm", "sparse"))
    return own and not padded and not special and getattr(layer, "padding_idx", None) is None


def _run_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return recording.record_linear(x, layer.weight, layer.bias)


def _run_stacked_linear(layer: StackedLinear, x: Tensor) -> Tensor:
    return recording.record_stacked_linear(x, layer.weight, layer.bias)


def _run_embedding(layer: nn.Embedding, index: Tensor) -> Tensor:
    return recording.record_embedding(index, layer.weight)


def _run_layer_norm(layer: nn.LayerNorm, x: Tensor) -> Tensor:
    y = functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)
    return _scale_and_shift(y, layer.weight, layer.bias, tuple(layer.normalized_shape))


def _run_group_norm(layer: nn.GroupNorm, x: Tensor) -> Tensor:
    y = functional.group_norm(x, layer.num_groups, eps=layer.eps)
    return _scale_and_shift(y, layer.weight, layer.bias, (layer.num_channels, *[1] * (x.dim() - 2)))


def _scale_and_shift(x: Tensor, weight: Tensor | None, bias: Tensor | None, view: tuple[int, ...]) -> Tensor:
    if weight is not None:
        x = recording.record_scale(x, weight, view)
    return x if bias is None else recording.record_shift(x, bias, view)


def _run_convolution(layer: Any, x: Tensor) -> Tensor:
    return _add_bias(layer, recording.record_convolution(x, layer.weight, _get_geometry(layer)))


def _run_transposed_convolution(layer: Any, x: Tensor, output_size: Any = None) -> Tensor:
    if output_size is not None:
        raise SundogError("a transposed convolution with output_size cannot be trained privately; use output_padding")
    y = recording.record_convolution(x, layer.weight, _get_geometry(layer), transposed=True, extra=layer.output_padding)
    return _add_bias(layer, y)


def _add_bias(layer: Any, y: Tensor) -> Tensor:
    return y if layer.bias is None else recording.record_shift(y, layer.bias, (len(layer.bias), *[1] * (y.dim() - 2)))


def _get_geometry(layer: Any) -> dict[str, Any]:
    return {
        "kernel_size": list(layer.kernel_size),
        "stride": list(layer.stride),
        "padding": list(layer.padding),
        "dilation": list(layer.dilation),
        "groups": layer.groups,
    }


_FORWARDS: dict[type[nn.Module], Forward] = {
    nn.Linear: _run_linear,
    StackedLinear: _run_stacked_linear,
    nn.Embedding: _run_embedding,
    nn.LayerNorm: _run_layer_norm,
    nn.GroupNorm: _run_group_norm,
    nn.Conv1d: _run_convolution,
    nn.Conv2d: _run_convolution,
    nn.ConvTranspose1d: _run_transposed_convolution,
    nn.ConvTranspose2d: _run_transposed_convolution,
    nn.LSTM: run_lstm,
    nn.GRU: run_gru,
}
