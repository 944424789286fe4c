"""Recurrent layers, unrolled into recorded linear layers: torch's fused kernels do not expose their factors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sundog.training.per_example import recording


def run_lstm(layer: Any, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Apply `nn.LSTM.forward`: any number of layers, one or two directions, batch or time first."""
    sequence, batch = _put_steps_first(layer, x)
    hidden, memory = (
        state if state is not None else (_make_zero_state(layer, x, batch), _make_zero_state(layer, x, batch))
    )
    last: list[tuple[Tensor, Tensor]] = []
    for depth in range(layer.num_layers):
        outputs = []
        for direction in range(1 + layer.bidirectional):
            start = (hidden[len(last)], memory[len(last)])
            output, end = _unroll(layer, depth, direction, sequence, start, _step_lstm)
            outputs.append(output)
            last.append(end)
        sequence = torch.cat(outputs, dim=2)
    ends = torch.stack([h for h, _ in last]), torch.stack([c for _, c in last])
    return _restore_order(layer, sequence), ends


def run_gru(layer: Any, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Apply `nn.GRU.forward`: any number of layers, one or two directions, batch or time first."""
    sequence, batch = _put_steps_first(layer, x)
    hidden = state if state is not None else _make_zero_state(layer, x, batch)
    last: list[Tensor] = []
    for depth in range(layer.num_layers):
        outputs = []
        for direction in range(1 + layer.bidirectional):
            output, end = _unroll(layer, depth, direction, sequence, hidden[len(last)], _step_gru)
            outputs.append(output)
            last.append(end)
        sequence = torch.cat(outputs, dim=2)
    return _restore_order(layer, sequence), torch.stack(last)


def _unroll(layer: Any, depth: int, direction: int, sequence: Tensor, state: Any, cell: Any) -> tuple[Tensor, Any]:
    suffix = f"_l{depth}" + "_reverse" * direction
    weights: list[Any] = [
        getattr(layer, name + suffix, None) for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    # all time steps at once: (T, B, ·)
    inputs = recording.record_linear(sequence.transpose(0, 1), weights[0], weights[1]).transpose(0, 1)
    steps = range(len(inputs) - 1, -1, -1) if direction else range(len(inputs))
    outputs: list[Any] = [None] * len(inputs)
    for t in steps:
        outputs[t], state = cell(inputs[t], state, (weights[2], weights[3]))
    return torch.stack(outputs), state


def _step_lstm(x: Tensor, state: tuple[Tensor, Tensor], recurrent: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    hidden, memory = state
    gates = x + recording.record_linear(hidden, *recurrent)
    enter, forget, candidate, leave = gates.chunk(4, dim=1)
    memory = forget.sigmoid() * memory + enter.sigmoid() * candidate.tanh()
    hidden = leave.sigmoid() * memory.tanh()
    return hidden, (hidden, memory)


def _step_gru(x: Tensor, hidden: Tensor, recurrent: Any) -> tuple[Tensor, Tensor]:
    x_reset, x_update, x_new = x.chunk(3, dim=1)
    h_reset, h_update, h_new = recording.record_linear(hidden, *recurrent).chunk(3, dim=1)
    update = (x_update + h_update).sigmoid()
    new = (x_new + (x_reset + h_reset).sigmoid() * h_new).tanh()
    hidden = new + update * (hidden - new)
    return hidden, hidden


def _put_steps_first(layer: Any, x: Tensor) -> tuple[Tensor, int]:
    sequence = x.transpose(0, 1) if layer.batch_first else x
    return sequence, sequence.shape[1]


def _restore_order(layer: Any, sequence: Tensor) -> Tensor:
    return sequence.transpose(0, 1) if layer.batch_first else sequence


def _make_zero_state(layer: Any, x: Tensor, batch: int) -> Tensor:
    return x.new_zeros(layer.num_layers * (1 + layer.bidirectional), batch, layer.hidden_size)
