"""The front door: `Synthesizer` takes private data and gives a release."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sundog.data.match import match
from sundog.data.read import open_source
from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError
from sundog.fitting import Fit
from sundog.models import AUTO, get_model
from sundog.models.base import Model, State
from sundog.models.choice import best_model
from sundog.preflight import refuse_fit_output
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.progress import Progress, silent
from sundog.release.release import Release
from sundog.request import Request

_OPTIONS = ("clusters", "public")  # which a model is told beside its settings


class Synthesizer:
    """Learns a private dataset and releases a model of it.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [31, 47, 25, 62] * 50, "sex": ["Female", "Male"] * 100})
    >>> columns = {
    ...     "age": {"type": "integer", "min": 18, "max": 90},
    ...     "sex": {"type": "categorical", "values": ["Female", "Male"]},
    ... }
    >>> schema = Schema.from_dict({"columns": columns})
    >>> synth = Synthesizer(model="independent", epsilon=1.0, delta=1e-6).fit(df, schema)
    >>> synth.release_.sample(3, seed=7, where={"sex": "Female"})["sex"].tolist()
    ['Female', 'Female', 'Female']

    Args:
        model: `auto` or the name of a model.
        epsilon: what this release may spend.
        delta: the δ at which ε is meant; by default 1 / (10·n^1.1) for about n records, never above 1e-5 nor above that
            of the ledger.
        clusters: how many components; more than one makes a mixture of the model, each for a cluster of records.
        public: data that is public, of the same schema, for models that can make use of it.
        device: where neural models train: `cpu` or `cuda`.
        ledger: a ledger, or the path of a ledger file, shared with other fits on the same data.
        seed: fixes initialisation, never privacy noise.
        settings: settings of the model by name.
        noise: a test's noise source; every certificate then reads NOT PRIVATE.
        show_loss: tell `progress` the training loss on private records. That is NOT PRIVATE: for your eyes only.
    """

    release_: Release
    private_: State | None  # what stays with the curator, such as a critic

    def __init__(
        self,
        model: str = "auto",
        epsilon: float = 1.0,
        delta: float | None = None,
        clusters: int = 1,
        public: Any = None,
        device: str = "cpu",
        ledger: Ledger | str | Path | None = None,
        seed: int | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        noise: NoiseSource | None = None,
        show_loss: bool = False,
    ) -> None:
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.clusters = clusters
        self.public = public
        self.device = device
        self.ledger = ledger
        self.seed = seed
        self.settings = settings
        self.noise = noise
        self.show_loss = show_loss

    def fit(
        self,
        data: Any,
        schema: Schema,
        *,
        labels: Any = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Progress = silent,
    ) -> Self:
        """Learns the data; `release_` is the result, and a second fit spends again.

        Args:
            data: a path, a DataFrame, an array of images or series, a sparse matrix or lists of sets.
            schema: what is publicly known about the data.
            labels: class labels of images or series, when they are not part of the data.
            out: where to save the release; an interrupted fit then leaves a checkpoint beside it.
            resume: go on from that checkpoint.
            overwrite: replace a release that is there already, once the new one is complete; what it spent is counted
                only if both fits share a ledger.
            progress: is told what is being done, and how much of it is.
        """
        place = None if out is None else Path(out)
        if place is not None:
            inputs = {"data": data, "labels": labels, "public data": self.public, "ledger": self.ledger}
            refuse_fit_output(place, inputs, overwrite=overwrite)
        model = self._checked_model(schema)
        self._warn(schema)
        if self.public is not None and labels is not None:
            _refuse_lacking(self.public, schema)
        told = {"clusters": self.clusters, "public": self.public is not None}
        settings = {**(self.settings or {}), **{name: value for name, value in told.items() if name in model.defaults}}
        is_open = self.model == AUTO and self.clusters == 1 and not (self.settings or self.show_loss)
        request = Request(
            model, self.epsilon, self.delta, self.seed, settings, self.device, self.show_loss, self.public, is_open
        )
        fit = Fit(request, schema, self.ledger, self.noise, progress)
        try:
            fit.run(data, labels=labels, out=place, resume=resume)
        finally:
            if fit.release is not None:  # what could not be saved here can be saved elsewhere
                self.release_, self.private_ = fit.release, fit.private
        return self

    def _warn(self, schema: Schema) -> None:
        if not schema.reviewed:
            warnings.warn(
                "the schema was drafted from the data and not reviewed: what it reveals is outside the guarantee; "
                "look through it, then set `reviewed: true`",
                stacklevel=3,
            )

    def _named(self, schema: Schema) -> str:
        if self.model != AUTO:
            return self.model
        return best_model(
            schema,
            epsilon=self.epsilon,
            records=schema.records,
            device=self.device,
            public=self.public is not None,
            clusters=self.clusters,
        )

    def _checked_model(self, schema: Schema) -> type[Model]:
        for name in (name for name in self.settings or {} if name in _OPTIONS):
            raise SundogError(f"{name!r} is no setting of a model; use --{name} (in Python, the argument {name})")
        model = base = get_model(self._named(schema))
        if self.clusters != 1:
            from sundog.mixture.mixture import mixture_of

            model = mixture_of(base)
        given = {
            "public": self.public is not None,
            "device": self.device != "cpu",
            "show_loss": self.show_loss,
        }
        for option in (name for name, used in given.items() if used and name not in model.options):
            raise SundogError(f"model {base.name!r} makes no use of {option}; leave it out")
        for name in (name for name in self.settings or {} if name not in model.defaults):
            known = ", ".join(name for name in model.defaults if name not in _OPTIONS) or "none"
            raise SundogError(f"model {base.name!r} has no setting {name!r}; its settings: {known}")
        if self.device != "cpu":
            _refuse_missing(self.device)
        return model


def _refuse_lacking(public: Any, schema: Schema) -> None:
    """Raises where public data lacks a column: labels are those of the private data."""
    source = open_source(public, schema)
    plan = match(source, schema)
    for column in (name for name in schema.columns if name not in plan):
        raise DataError(
            f"{source.name}: column {column!r} is missing; public data is one file (npz, for images) with all columns"
        )


def _refuse_missing(device: str) -> None:
    """Raises where this machine cannot train on the device."""
    if device != "cuda":
        raise SundogError(f"there is no device {device!r}; choose cpu or cuda")
    import torch

    if not torch.cuda.is_available():
        raise SundogError(
            "device 'cuda': torch finds no CUDA device here; leave the device out, or install a build of torch for CUDA"
        )
