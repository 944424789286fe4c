"""How a release was fitted, as far as the release tells, so that its fit can be repeated.

A release holds its schema, its model and its budget, but not the settings of the model, such as epochs. Whoever audits
it gives them again. The certificate shows whether they are the right ones: it lists the charges that were planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sundog.data.columns import Scale, Unknown
from sundog.data.schema import Schema
from sundog.fit.request import choose_configuration
from sundog.mixture.mixture import Mixture
from sundog.models.configuration import Configuration
from sundog.models.registry import get_model
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, merge_blocks
from sundog.privacy.record_count import compute_count_epsilon, exclude_counts, is_count
from sundog.release.release import Release, get_library_versions


@dataclass(frozen=True, eq=False)
class FitRecipe:
    """The fit of a release, to be repeated.

    Args:
        release: that was fitted.
        settings: of its model; those that are not given have their defaults.
    """

    release: Release
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The name of the model, or of the components of a mixture."""
        model = self.release.model
        return model.components[0].name if isinstance(model, Mixture) else model.name

    @property
    def clusters(self) -> int:
        """The number of components."""
        model = self.release.model
        return len(model.components) if isinstance(model, Mixture) else 1

    @property
    def epsilon(self) -> float:
        """The budget of the fit."""
        return self.release.certificate.epsilon

    @property
    def delta(self) -> float:
        """The δ to which noise was calibrated."""
        given = self.release.certificate.conditional
        return self.release.certificate.delta if given is None else given.delta

    @property
    def requested_delta(self) -> float | None:
        """The δ that was asked for; None if it followed from the number of records."""
        return self.release.certificate.delta if self.release.certificate.conditional is None else None

    @property
    def records(self) -> int | None:
        """The number of records that the model was planned for: declared or counted; None if neither."""
        certificate = self.release.certificate
        if self.release.schema.records is not None:
            return self.release.schema.records
        if certificate.conditional is not None:
            return certificate.conditional.records
        return self.release.records if any(map(is_count, certificate.charges)) else None

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration of the model; raise ArgumentError if a setting is wrong."""
        return choose_configuration(
            self.model,
            self.release.schema,
            epsilon=self.epsilon,
            records=self.records,
            clusters=self.clusters,
            settings=self.settings,
        )

    def find_obstacle(self) -> str | None:
        """Return why the fit cannot be repeated, if so."""
        made, here = self.release.libraries.get("sundog"), get_library_versions()["sundog"]
        if made != here:
            return f"the release was made by sundog {made}, and a fit by {here} would say nothing about it"
        if self.release.model.state().config.get("public"):
            return "the fit used public records, which are not in the release"
        return None

    def reproduces_charges(self) -> bool:
        """Return whether a model with these settings is planned to be charged as the certificate says.

        >>> import pandas as pd
        >>> from sundog import Schema, Synthesizer
        >>> schema = Schema.from_dict({"columns": {"x": {"type": "boolean"}}})
        >>> data, settings = pd.DataFrame({"x": [True, False] * 50}), {"epochs": 2}
        >>> release = Synthesizer("vae", epsilon=4.0, settings=settings).fit(data, schema).release_
        >>> FitRecipe(release, settings).reproduces_charges(), FitRecipe(release).reproduces_charges()
        (True, False)
        """
        certificate = self.release.certificate
        before, own = _split_charges(certificate.charges, {part.charge for part in certificate.learned})
        plan = get_model(self.configuration.name).plan(
            self.release.schema.modelled,
            Budget(self.epsilon - compute_count_epsilon(before), self.delta),
            self.configuration,
            already=exclude_counts(before),
            records=self.records,
        )
        return merge_blocks(plan.charges) == merge_blocks(own)

    def undo_learning(self) -> Schema:
        """Return the schema without what was learned, as it was declared; the same if nothing was."""
        declared = self.release.schema.to_dict()
        for name, column in self.release.schema.columns.items():
            learned = ["edges"] if column.scale is Scale.INTERVAL and column.has_measured_edges else []
            if column.learn:
                learned += ["values"] if column.unknown is Unknown.VALUES else ["min", "max"]
            for key in learned:
                declared["columns"][name].pop(key, None)
        return Schema.from_dict(declared)


def _split_charges(charges: list[Charge], learning: set[str]) -> tuple[list[Charge], list[Charge]]:
    """Return the charges of the stages before the model, and those of the model."""
    before = [charge for charge in charges if is_count(charge) or charge.purpose in learning]
    return before, [charge for charge in charges if charge not in before]
