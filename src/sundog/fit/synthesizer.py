"""The public interface of a fit: `Synthesizer` turns private data into a release."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sundog.data.reading.column_matching import match
from sundog.data.reading.read import open_source
from sundog.data.schema import Schema
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError, DataError, NotFittedError, SundogError
from sundog.fit.device import check_device, refuse_missing_cuda
from sundog.fit.fitting import Fitted, run_fit
from sundog.fit.preflight import refuse_fit_output
from sundog.fit.request import Request, choose_configuration
from sundog.fit.run import RunOptions
from sundog.models.configuration import Configuration
from sundog.models.protocol import State
from sundog.models.registry import AUTO, configure, refuse_unknown
from sundog.privacy.budget import LARGEST_DELTA, check_budget
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.progress import Progress, silent
from sundog.release.release import Release

_OPTIONS = ("clusters", "public")  # arguments of their own, which are not settings
_FITTED = ("release_", "private_")
_OF_RELEASE = ("batches", "certificate", "sample", "save", "verify", "write")  # of the release, not of the synthesizer


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
        delta: the δ of the guarantee; by default 1 / (10·n^1.1) for about n records, never above 1e-5 nor above that
            of the ledger.
        clusters: how many components; more than one makes a mixture, with one model for each cluster of records.
        public: public data of the same schema, for models that can use it.
        device: where neural models train: `cpu` or `cuda`.
        ledger: a ledger, or the path of a ledger file, shared with other fits on the same data.
        seed: fixes initialisation, never privacy noise.
        settings: settings of the model by name.
        noise: a test's noise source; every certificate then reads NOT PRIVATE.
        show_loss: tell `progress` the training loss on private records. That is NOT PRIVATE: for your eyes only.
    """

    release_: Release
    private_: State | None  # the state that stays with the curator, such as a critic

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

        self._check()

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  as scikit-learn has it
        """Return the arguments by name, as scikit-learn asks for them.

        >>> Synthesizer("rbm", epsilon=2.0).get_params()["epsilon"]
        2.0
        """
        return {name: getattr(self, name) for name in _ARGUMENTS}

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or none of them if one is wrong.

        >>> Synthesizer().set_params(model="vae").model
        'vae'
        """
        for name in (name for name in params if name not in _ARGUMENTS):
            raise ArgumentError(f"there is no argument {name!r}; {suggest(name, _ARGUMENTS)}")
        type(self)(**{**self.get_params(), **params})
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a clone with the same arguments, not copied: a copied ledger would spend its budget twice."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        given = {name: value for name, value in self.get_params().items() if value is not defaults[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    if not TYPE_CHECKING:  # or a type checker would believe in every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise an error that says where to find the attribute: after a fit, or in the release."""
            kind = type(self).__name__
            if name in (*_FITTED, *_OF_RELEASE) and "release_" not in vars(self):
                then = "" if name in _FITTED else f", then use release_.{name}"
                raise NotFittedError(f"this {kind} is not fitted yet; call fit(data, schema) first{then}")
            hint = f"; use release_.{name}" if name in _OF_RELEASE else ""
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{hint}")

    def _check(self) -> None:
        """Raise if an argument is wrong, whatever the data."""
        check_budget(
            _to_number(self.epsilon, "epsilon"),
            LARGEST_DELTA if self.delta is None else _to_number(self.delta, "delta"),
        )
        if not isinstance(self.model, str):
            raise ArgumentError(f"model must be {AUTO} or the name of a model, not {self.model!r}")
        if self.model != AUTO:
            refuse_unknown(self.model)
        if not _is_whole(self.clusters) or self.clusters < 1:
            raise ArgumentError(f"clusters must be a whole number of 1 or more, not {self.clusters!r}")
        check_device(self.device)
        if self.seed is not None and not (_is_whole(self.seed) and self.seed >= 0):
            raise ArgumentError(f"seed must be a whole number of 0 or more, or None, not {self.seed!r}")
        for name, kinds, what in _KINDS:
            if not isinstance(getattr(self, name), kinds):
                raise ArgumentError(f"{name} must be {what}, not {getattr(self, name)!r}")
        for name in self.settings or {}:
            if name in _OPTIONS:
                raise ArgumentError(
                    f"{name!r} is not a setting of a model; use --{name} (in Python, the argument {name})"
                )
        if self.model != AUTO:
            configure(self.model, self.settings or {}, clusters=self.clusters, public=self.public is not None)

    def fit(
        self,
        data: Any,
        schema: Schema | str | os.PathLike[str] | Mapping[str, Any],
        *,
        labels: Any = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Progress = silent,
    ) -> Self:
        """Fit the model to the data; `release_` is the result. A second fit spends again.

        Args:
            data: a path or a database URL, a DataFrame (pandas or polars), an Arrow table, an array of images or
                series, a sparse matrix or lists of sets.
            schema: what is publicly known about the data: a `Schema`, the path of a schema file, or a dict.
            labels: class labels of images or series, when they are not part of the data.
            out: where to save the release; an interrupted fit then leaves a checkpoint beside it.
            resume: continue from that checkpoint.
            overwrite: replace a release that is there already, once the new one is complete; what it spent is counted
                only if both fits share a ledger.
            progress: is called with the current stage and the part of it that is done.
        """
        options = RunOptions(self.ledger, self.noise, None if out is None else Path(out), resume)
        if options.out is not None:
            inputs = {"data": data, "labels": labels, "public data": self.public, "ledger": self.ledger}
            inputs |= {} if isinstance(schema, Schema) else {"schema": schema}
            refuse_fit_output(options.out, inputs, overwrite=overwrite)
        schema = Schema.of(schema)
        request = self._make_request(schema)
        if self.public is not None and labels is not None:
            _refuse_lacking(self.public, schema)
        run_fit(request, schema, data, options, labels=labels, progress=progress, deliver=self._take)
        return self

    def _take(self, fitted: Fitted) -> None:
        self.release_, self.private_ = fitted.release, fitted.curator_state

    def _make_request(self, schema: Schema) -> Request:
        self._check()  # again: attributes can be set
        return Request(
            configuration=self._choose_configuration(schema),
            epsilon=float(self.epsilon),
            delta=None if self.delta is None else float(self.delta),
            seed=None if self.seed is None else int(self.seed),
            device=self.device,
            show_loss=self.show_loss,
            public=self.public,
            is_open=self.model == AUTO and self.clusters == 1 and not (self.settings or self.show_loss),
        )

    def _choose_configuration(self, schema: Schema) -> Configuration:
        """Return the configuration for this schema, by public facts; raise if the model has no use for an argument."""
        configuration = choose_configuration(
            self.model,
            schema,
            epsilon=self.epsilon,
            records=schema.records,
            device=self.device,
            public=self.public is not None,
            clusters=self.clusters,
            settings=self.settings,
        )
        given = {
            "public": self.public is not None,
            "device": self.device != "cpu" and self.model != AUTO,  # `auto` may find that no network is needed
            "show_loss": self.show_loss,
        }
        for option in (option for option, used in given.items() if used and not configuration.accepts(option)):
            name = configuration.name if self.model == AUTO else self.model
            raise SundogError(f"model {name!r} does not use {option}; leave it out")
        if self.device != "cpu":
            refuse_missing_cuda()
        return configuration


def _refuse_lacking(public: Any, schema: Schema) -> None:
    """Raise if public data lacks a column: `labels` are those of the private data."""
    source = open_source(public, schema)
    plan = match(source, schema)
    for column in (name for name in schema.columns if name not in plan):
        raise DataError(
            f"{source.name}: column {column!r} is missing; public data is one file (npz, for images) with all columns"
        )


_ARGUMENTS = tuple(inspect.signature(Synthesizer).parameters)
_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("ledger", (Ledger, str, os.PathLike, type(None)), "a Ledger or the path of a ledger file"),
    ("settings", (Mapping, type(None)), "a mapping of names to values"),
    ("noise", (NoiseSource, type(None)), "a NoiseSource"),
    ("show_loss", bool, "True or False"),
)


def _to_number(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentError(f"{name} must be a number, not {value!r}")
    return float(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
