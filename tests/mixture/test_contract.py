"""What every model promises, of mixtures: those whose components are fitted in turn, and those fitted at once."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import pytest
from tests.contracts.material import KINDS, constant_records, decode_records, random_records, schema_of
from tests.contracts.model_contract import ModelContract
from tests.mixture.two_kinds import CLUSTERED, QUICK

from sundog.fit.synthesizer import Synthesizer
from sundog.mixture.mixture import Mixture
from sundog.models.configuration import Configuration
from sundog.models.registry import configure
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger


def of_few_kinds(contract: type[ModelContract]) -> type[ModelContract]:
    """The same tests, with fewer kinds of records: components have contracts of their own, with all of them."""
    for name, test in vars(ModelContract).items():
        marks = [_with_few(mark) for mark in getattr(test, "pytestmark", ())]
        if isinstance(test, FunctionType) and marks and name not in vars(contract):
            few: Any = FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
            few.__kwdefaults__, few.__annotations__, few.pytestmark = test.__kwdefaults__, test.__annotations__, marks
            setattr(contract, name, few)
    return contract


def _with_few(mark: pytest.Mark) -> pytest.Mark:
    if mark.name == "parametrize" and isinstance(mark.args[1], dict):
        names, kinds = mark.args
        few = {"numbered_set"} if kinds is KINDS else {"wide_integer", "image"}  # many tests have a mix of all anyway
        return pytest.mark.parametrize(names, [kind for kind in kinds if kind in few]).mark
    return mark


@of_few_kinds
class MixtureContract(ModelContract):
    """What a model promises, of components that promise it: by name there are no mixtures, only by clusters."""

    model = Mixture
    component: ClassVar[str]
    epsilon: ClassVar[float] = 8.0  # so that some of fifty records are left of three clusters
    settings: ClassVar[dict[str, Any]] = CLUSTERED

    def configuration(self) -> Configuration:
        return configure(self.component, self.settings, clusters=3)

    def synthesizer(self, **options: Any) -> Synthesizer:
        return Synthesizer(
            self.component, epsilon=self.epsilon, delta=1e-6, clusters=3, settings=self.settings, **options
        )

    def test_interrupted_after_a_charge_it_goes_on_and_charges_nothing_twice(self, tmp_path: Path) -> None:
        schema, out = schema_of(KINDS["mix"], records=100), tmp_path / "o.sundog"
        data = decode_records(random_records(schema, 50))
        spend = Ledger.spend

        def stop(ledger: Ledger, *charges: Charge) -> None:
            spend(ledger, *charges)
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "spend", stop)
            with pytest.raises(KeyboardInterrupt):
                self.synthesizer().fit(data, schema, out=out)
        release = self.synthesizer().fit(data, schema, out=out, resume=True).release_
        assert release.certificate.charges == self.synthesizer().fit(data, schema).release_.certificate.charges
        assert release.verify() == []

    def test_the_plan_does_not_depend_on_the_data(self) -> None:
        schema = schema_of(KINDS["mix"], records=100)
        one, other = (decode_records(constant_records(schema, n, last=n > 50)) for n in (3, 90))
        charges = [self.synthesizer().fit(data, schema).release_.certificate.charges for data in (one, other)]
        assert charges[0] == charges[1]


class TestOfMarginals(MixtureContract):
    """Their components have arrays of different shapes."""

    component = "marginals"


class TestOfIndependent(MixtureContract):
    component = "independent"


class TestOfVae(MixtureContract):
    component = "vae"
    settings: ClassVar[dict[str, Any]] = {**CLUSTERED, **QUICK}


@pytest.mark.slow
class TestOfRbm(MixtureContract):
    component = "rbm"
    settings: ClassVar[dict[str, Any]] = {
        **CLUSTERED,
        "hidden": 6,
        "chains": 20,
        "batch": 50,
        "epochs": 2,
    }
