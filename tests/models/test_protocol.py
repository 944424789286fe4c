"""The models are what the protocols declare: mypy checks the signatures, and this the declared options."""

from __future__ import annotations

from sundog.mixture.mixture import Mixture
from sundog.models.gan.gan import Gan
from sundog.models.independent.independent import Independent
from sundog.models.marginals.marginals import Marginals
from sundog.models.protocol import Model, PartsModel
from sundog.models.rbm.rbm import Rbm
from sundog.models.registry import MODELS, get_configuration, get_model
from sundog.models.vae.vae import Vae

ALL: list[type[Model]] = [Independent, Marginals, Rbm, Vae, Gan, Mixture]
COMPONENTS: list[type[PartsModel]] = [Independent, Marginals, Rbm, Vae]


def test_the_registry_has_all_models() -> None:
    assert [get_model(name) for name in MODELS] == ALL
    assert [model.name for model in ALL] == list(MODELS)


def test_models_that_accept_clusters_are_those_that_are_fitted_on_parts() -> None:
    accepting = [get_model(name) for name in MODELS if "clusters" in get_configuration(name).options]
    assert accepting == COMPONENTS
