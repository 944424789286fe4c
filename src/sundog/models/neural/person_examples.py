"""Records for a training in which an example is a person, with all of that person's records.

Then a person is drawn or not, has one gradient, and that is clipped: the guarantee is the person's, and says so
whatever the cap is (docs/gan.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sundog.data.records import Records
from sundog.models.neural.features import Compact, FeatureRows, Features
from sundog.training.batches.examples import Device
from sundog.training.batches.poisson import Index
from sundog.training.batches.stacked_examples import rank_by_owner

HELD = "held"  # which of a person's places have a record


class PeopleRows:
    """One example for each person: up to `cap` records, padded to `cap`.

    >>> from sundog.data.schema import Schema
    >>> columns = {"on": {"type": "boolean"}}
    >>> schema = Schema.from_dict({"unit": "who", "cap": 2, "columns": columns})
    >>> records = Records(schema, {"on": np.array([0, 1, 1], np.uint8)}, 3, unit=np.array([0, 1, 0]))
    >>> rows = PeopleRows(Features(schema), records)
    >>> len(rows), rows.take(np.array([0, 1]))["held"].tolist()
    (2, [[True, True], [True, False]])

    Args:
        features: of the records.
        records: with the number of the person that each is of.
        device: where batches are wanted.
    """

    def __init__(self, features: Features, records: Records, device: Device = None) -> None:
        self._rows = FeatureRows(features, records, device)
        self._features = features
        self.device = self._rows.device
        self._places = _find_places(records)

    def __len__(self) -> int:
        return len(self._places)

    def take(self, index: Index) -> Compact:
        """Return the people at these places: (people, cap, …)."""
        places = self._places[index]
        # Padding repeats a record of the same person, so that an overflow (0 · ∞) cannot leak another person's.
        filled = np.where(places >= 0, places, places[:, :1])
        rows = self._rows.take(filled.ravel())
        shaped = {name: values.view(*places.shape, *values.shape[1:]) for name, values in rows.items()}
        return {**shaped, HELD: torch.from_numpy(places >= 0).to(self.device)}

    def take_vectors(self, index: Index) -> Tensor:
        """Return the mean of each person's vectors."""
        batch = self.take(index)
        return average_over_records(self._features.to_dense(batch).movedim(-1, 0), batch[HELD]).movedim(0, -1)


def average_over_records(values: Tensor, held: Tensor) -> Tensor:
    """Return the mean over a person's records: (…, people, cap) to (…, people)."""
    weights = held.to(values.dtype)
    return (values * weights).sum(dim=-1) / weights.sum(dim=-1).clamp_min(1.0)


def _find_places(records: Records) -> npt.NDArray[np.int64]:
    """Return the records of each person, at least one: (people, cap), padded with −1."""
    if records.unit is None:
        raise ValueError("records of people need the number of their person")
    people, unit = np.unique(records.unit, return_inverse=True)  # people without records are not examples
    places = np.full((len(people), records.schema.cap), -1, np.int64)
    places[unit, rank_by_owner(unit, len(people))] = np.arange(len(records))
    return places
