"""The normal distribution that latent variables have after a training, measured and put into the decoder.

A variational autoencoder assumes that z is N(0, I), which holds only roughly after training. 1. For each record z is
drawn from the encoder, whose weights are public by now, and its first and second moments are summed with noise; one
Gaussian covers all parts, as a record is in one. 2. Where z ~ N(m, L Lᵀ), it is m + L e for a standard normal e, and
the first layer of the decoder takes that in: W z + b = (W L) e + (W m + b). Samples are still drawn from N(0, I).
3. Moments smaller than their noise are dropped: m is shrunk towards 0 and the covariance towards I (James and
Stein 1961).
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.models.neural.features import FeatureRows, Features
from sundog.models.protocol import FitContext, Parts
from sundog.models.released import LATENT
from sundog.privacy.draws import RowsDraw
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import gaussian_group_sums
from sundog.privacy.mechanisms.sums import clip_rows

_LEAST, _MOST = 0.1, 3.0  # variances are clipped to this range
_ROWS, _NUMBERS = 8192, 2**22  # at a time
_GRAIN = 2.0**-10

Floats = npt.NDArray[np.float64]


def make_latent_charge(noise_multiplier: float) -> Charge:
    """Return the charge for the moments of all parts."""
    return Charge(event=Gaussian(noise_multiplier=noise_multiplier), purpose=LATENT)


def fit_decoders_to_latents(
    encoders: Sequence[nn.Module],
    decoders: Sequence[nn.Sequential],
    features: Features,
    examples: FeatureRows,
    parts: Parts,
    *,
    noise_multiplier: float,
    ledger: Ledger,
    context: FitContext,
) -> None:
    """Measure the moments of each part, and change the first layer of its decoder."""
    first: list[Any] = [decoder[0] for decoder in decoders]
    last: Any = list(encoders[0].children())[-1]
    latent = int(last.out_features) // 2
    upper = np.triu_indices(latent)
    radius = _choose_radius(latent)
    norm = radius * math.sqrt(1 + radius**2)  # of (z, z zᵀ), of which a half is enough

    def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
        _, sums = gaussian_group_sums(
            _yield_moments(encoders, features, examples, parts, upper, radius, ledger),
            groups=len(parts.sizes),
            width=latent + len(upper[0]),
            clip_norm=norm,
            noise_multiplier=noise_multiplier,
            ledger=ledger,
            purpose=LATENT,
            counted=False,
        )
        return {"sums": sums}

    sums = measure_once("latent", [make_latent_charge(noise_multiplier)], measure, ledger, context.checkpoint)["sums"]
    for layer, row, size in zip(first, sums, np.maximum(1.0, parts.sizes), strict=True):
        mean, factor = _regularise(row / size, latent, upper, scale=norm * noise_multiplier / size)
        with torch.no_grad():
            weight = layer.weight[:, :latent].double()
            layer.bias += (weight @ torch.from_numpy(mean)).float()
            layer.weight[:, :latent] = (weight @ torch.from_numpy(factor)).float()


def _regularise(moments: Floats, latent: int, upper: tuple[Any, Any], *, scale: float) -> tuple[Floats, Floats]:
    """Return the mean and a factor of the covariance, with eigenvalues in a plausible range."""
    mean, products = _shrink(moments[:latent], scale), np.zeros((latent, latent))
    products[upper] = moments[latent:]
    covariance = np.triu(products) + np.triu(products, 1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(np.eye(latent) + _shrink(covariance - np.eye(latent), scale))
    return np.clip(mean, -_MOST, _MOST), vectors * np.sqrt(np.clip(values, _LEAST, _MOST))


def _shrink(found: Floats, scale: float) -> Floats:
    """Shrink noisy numbers by the share of the noise in their squared norm (James and Stein).

    >>> _shrink(np.array([3.0, 4.0]), 2.5).tolist(), _shrink(np.array([3.0, 4.0]), 5.0).tolist()
    ([1.5, 2.0], [0.0, 0.0])
    """
    noise = found.size * scale**2
    return found * (1 - noise / max(noise, float(np.square(found).sum()))) if noise else found


@torch.no_grad()
def _yield_moments(
    encoders: Sequence[nn.Module],
    features: Features,
    examples: FeatureRows,
    parts: Parts,
    upper: tuple[Any, Any],
    radius: float,
    ledger: Ledger,
) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Yield the moments of one z for each record, part by part; the draws are as secret as the noise."""
    draw = np.random.default_rng(ledger.noise.draw_seed())
    rows = max(1, min(_ROWS, _NUMBERS // len(upper[0])))
    owner = np.zeros(len(examples), np.int64) if parts.owner is None else parts.owner
    for part, trained in enumerate(encoders):
        places = np.flatnonzero(owner == part)
        encoder = copy.deepcopy(trained).double()
        for start in range(0, len(places), rows):
            index = places[start : start + rows]
            x: Tensor = features.to_dense(examples.take(index)).cpu().double()
            mean, log_variance = encoder(x).chunk(2, dim=-1)
            spread = (log_variance / 2).exp().numpy()
            normals = ledger.noise.hide(RowsDraw(index), functools.partial(draw.standard_normal, mean.shape))
            z = mean.numpy() + spread * normals
            # How a matrix product rounds a row depends on how many rows there are beside it. No record may change the z
            # of another, so z is rounded to a grain that is far coarser than such differences.
            z = clip_rows(np.rint(z / _GRAIN) * _GRAIN, radius)
            yield np.full(len(index), part), np.concatenate([z, (z[:, :, None] * z[:, None])[:, *upper]], axis=1)


def _choose_radius(latent: int) -> float:
    """Return the norm that a standard normal z exceeds about once in fifty times.

    >>> round(_choose_radius(8), 1)
    4.2
    """
    return math.sqrt(latent + 2 * math.sqrt(2 * latent) + 2)
