"""Signatures and certificates of releases, and what a changed release is refused for."""

from __future__ import annotations

import copy
import dataclasses
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.contracts.material import schema_of
from tests.release.material import COLUMNS, fit

from sundog.errors import ReleaseError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import METHODS, compute_epsilon
from sundog.privacy.noise import NoiseSource
from sundog.release.archive import Archive, read_archive, write_archive
from sundog.release.certificate import NOT_PRIVATE, Certificate
from sundog.release.release import Release
from sundog.release.signing import sign

KEY, OTHER_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in (1, 2))


def sign_anyway(release: Release) -> Release:
    """Signed whatever it says, as no program of ours would."""
    return dataclasses.replace(release, signature=sign(release.hash, KEY))


# --- signing ---


def test_a_signed_release_verifies_with_its_key_alone(release: Release, tmp_path: Path) -> None:
    signed = release.sign(KEY)
    signed.save(tmp_path / "a.sundog")
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.verify() == []
    assert loaded.verify(KEY.public_key()) == []
    assert loaded.verify(OTHER_KEY.public_key()) == ["the signature is not by the given key"]
    assert loaded.hash == release.hash
    again = loaded.sign(OTHER_KEY)
    assert again.verify(OTHER_KEY.public_key()) == []
    assert again.verify(KEY.public_key()) != []


def test_an_unsigned_release_fails_every_key(release: Release) -> None:
    assert release.verify() == []
    assert release.verify(KEY.public_key()) == ["it is not signed"]


def test_repacking_does_not_break_a_signature(release: Release, tmp_path: Path) -> None:
    release.sign(KEY).save(tmp_path / "a.sundog")
    with zipfile.ZipFile(tmp_path / "a.sundog") as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    with zipfile.ZipFile(tmp_path / "b.sundog", "w") as zipped:
        for name in reversed(members):
            spaced = name != "weights.safetensors"
            data = json.dumps(json.loads(members[name]), indent=3).encode() if spaced else members[name]
            zipped.writestr(zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6)), data)
    assert (tmp_path / "b.sundog").read_bytes() != (tmp_path / "a.sundog").read_bytes()
    assert Release.load(tmp_path / "b.sundog").verify(KEY.public_key()) == []


# --- tampering ---

Tampering = Callable[[dict[str, Any], dict[str, Any]], None]


def set_field(*places: Any, to: Any) -> Tampering:
    def tamper(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        target: Any = manifest
        for place in places[:-1]:
            target = target[place]
        target[places[-1]] = to

    return tamper


def _lighten_noise(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["marginal.0"] = np.roll(tensors["marginal.0"], 1)


def _drop_charge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["certificate"]["charges"].pop()


CHEATS: dict[str, Tampering] = {
    "a smaller epsilon": set_field("certificate", "epsilon", to=0.5),
    "a smaller delta": set_field("certificate", "delta", to=1e-12),
    "a larger delta": set_field("certificate", "delta", to=1e-3),
    "a charge removed": _drop_charge,
    "all charges removed": set_field("certificate", "charges", to=[]),
    "a charge for more noise": set_field("certificate", "charges", 0, "event", "sigma", to=1e6),
    "a charge counted less often": set_field("certificate", "charges", 0, "event", "sigma", to=10.0),
    "spent less": set_field("certificate", "spent", "pld", to=0.1),
    "spent nothing": set_field("certificate", "spent", "pld", to=None),
}
FORGERIES: dict[str, Tampering] = {
    **CHEATS,
    "a larger epsilon": set_field("certificate", "epsilon", to=2.0),
    "other weights": _lighten_noise,
    "other bounds": set_field("schema", "columns", 2, "max", to="2021-12-31"),
    "another order of columns": lambda manifest, _: manifest["schema"]["columns"].reverse(),
    "another unit": set_field("certificate", "unit", to="hospital"),
    "another date": set_field("created", to="1999-01-01T00:00:00+00:00"),
    "other libraries": set_field("libraries", "numpy", to="0.0.1"),
    "other assumptions": set_field("certificate", "assumed_public", to=[]),
    "another purpose": set_field("certificate", "charges", 0, "purpose", to="nothing"),
    "another number of records": set_field("model", "config", "records", to=7),
    "something added": set_field("approved_by", to="the data protection officer"),
    "something added to the model": set_field("model", "licence", to="mine"),
    "something added to its configuration": set_field("model", "config", "licence", to="mine"),
}


def save_tampered(release: Release, path: Path, tamper: Tampering) -> None:
    release.save(path)
    archive = read_archive(path)
    manifest, tensors = copy.deepcopy(archive.manifest), dict(archive.tensors)
    tamper(manifest, tensors)
    write_archive(path, Archive(manifest, tensors, archive.signature))


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_certificate_that_does_not_add_up_is_noticed_without_a_signature(
    release: Release, cheat: str, tmp_path: Path
) -> None:
    save_tampered(release, tmp_path / "a.sundog", CHEATS[cheat])
    assert Release.load(tmp_path / "a.sundog").verify() != []


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_signature_holds_for_nothing_else(release: Release, forgery: str, tmp_path: Path) -> None:
    save_tampered(release.sign(KEY), tmp_path / "a.sundog", FORGERIES[forgery])
    try:
        loaded = Release.load(tmp_path / "a.sundog")
    except ReleaseError:
        return
    assert loaded.verify() != []
    assert loaded.verify(KEY.public_key()) != []


@pytest.mark.parametrize(
    "forgery",
    [
        set_field("created", to="now\x1b[2J"),
        set_field("libraries", to={"numpy\n": "1"}),
        set_field("libraries", "numpy", to="\r"),
    ],
)
def test_nothing_in_it_moves_a_cursor(release: Release, forgery: Tampering, tmp_path: Path) -> None:
    save_tampered(release, tmp_path / "a.sundog", forgery)
    with pytest.raises(ReleaseError, match="the manifest is malformed"):
        Release.load(tmp_path / "a.sundog")


def test_a_signature_from_another_release_does_not_hold(release: Release, tmp_path: Path) -> None:
    other = fit()
    stolen = dataclasses.replace(release, signature=other.sign(KEY).signature)
    stolen.save(tmp_path / "a.sundog")
    assert Release.load(tmp_path / "a.sundog").verify() == ["the signature does not hold"]


# --- test noise ---


def test_test_noise_is_not_private_wherever_it_goes(tmp_path: Path) -> None:
    release = fit(noise=NoiseSource.seeded(1))
    with pytest.raises(ReleaseError, match="not signed, because it does not add up: NOT PRIVATE"):
        release.sign(KEY)
    sign_anyway(release).save(tmp_path / "a.sundog")
    for found in (release, Release.load(tmp_path / "a.sundog")):
        assert str(found.certificate).splitlines()[0].startswith("NOT PRIVATE")
        assert any("NOT PRIVATE" in problem for problem in found.verify())
    assert any("NOT PRIVATE" in problem for problem in Release.load(tmp_path / "a.sundog").verify(KEY.public_key()))


def test_private_cannot_be_forged_back_into_a_signed_release(tmp_path: Path) -> None:
    release = sign_anyway(fit(noise=NoiseSource.seeded(1)))
    save_tampered(release, tmp_path / "a.sundog", set_field("certificate", "private", to=True))
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.certificate.private
    assert loaded.verify(KEY.public_key()) == [NOT_PRIVATE, "the signature does not hold"]
    assert loaded.verify() == [NOT_PRIVATE, "the signature does not hold"]


def test_private_and_its_noise_forged_back_break_the_signature_still(tmp_path: Path) -> None:
    def forge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        manifest["certificate"] |= {"private": True, "noise": "ChaCha20 and AES-256 keyed by the operating system"}

    save_tampered(sign_anyway(fit(noise=NoiseSource.seeded(1))), tmp_path / "a.sundog", forge)
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.certificate.private
    assert loaded.verify(KEY.public_key()) == ["the signature does not hold"]
    assert loaded.verify() == ["the signature does not hold"]


# --- to the letter ---


def _repeat_charge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["schema"]["columns"][1]["out_of_bounds"] = "error"


def _widen_purpose(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    charge = manifest["certificate"]["charges"][0]
    charge["purpose"] = f"  {charge['purpose'].replace(' ', '   ')} "


def _leave_defaults_out(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    del manifest["certificate"]["charges"][0]["count"]


# Other words for the same thing: they load as the same release, and are not what was signed.
RESPELLINGS: dict[str, Tampering] = {
    "space in a purpose": _widen_purpose,
    "a default said aloud": _repeat_charge,
    "a default left out": _leave_defaults_out,
    "no ledger left out": lambda manifest, _: manifest["certificate"].pop("ledger"),
    "a number without its point": set_field("certificate", "epsilon", to=1),
    "a whole number with a point": set_field("schema", "columns", 1, "min", to=0.0),
}


@pytest.mark.parametrize("respelling", RESPELLINGS)
def test_a_signature_covers_the_manifest_to_the_letter(release: Release, respelling: str, tmp_path: Path) -> None:
    save_tampered(release.sign(KEY), tmp_path / "a.sundog", RESPELLINGS[respelling])
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.schema == release.schema
    assert loaded.certificate == release.certificate
    assert loaded.hash != release.hash
    assert loaded.verify() == ["the signature does not hold"]
    assert loaded.verify(KEY.public_key()) == ["the signature does not hold"]


@pytest.mark.parametrize("respelling", RESPELLINGS)
def test_what_was_read_is_what_is_saved_and_signed_again(release: Release, respelling: str, tmp_path: Path) -> None:
    save_tampered(release, tmp_path / "a.sundog", RESPELLINGS[respelling])
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.verify() == []
    loaded.sign(KEY).save(tmp_path / "b.sundog")
    assert read_archive(tmp_path / "b.sundog").manifest == read_archive(tmp_path / "a.sundog").manifest
    again = Release.load(tmp_path / "b.sundog")
    assert again.hash == loaded.hash
    assert again.verify(KEY.public_key()) == []


# --- what the model knows was paid for ---


@pytest.mark.parametrize("name", COLUMNS)
def test_a_marginal_that_no_charge_pays_for_is_noticed(release: Release, name: str, tmp_path: Path) -> None:
    """Even where the rest adds up: the charge is gone, and what was spent is said to be less."""

    def unpaid(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        certificate = manifest["certificate"]
        certificate["charges"] = [c for c in certificate["charges"] if c["purpose"] != f"marginal of {name}"]
        charges = Certificate.from_dict(certificate).charges
        delta = certificate["delta"]
        certificate["spent"] = {method: compute_epsilon(charges, delta=delta, method=method) for method in METHODS}

    save_tampered(release, tmp_path / "a.sundog", unpaid)
    assert Release.load(tmp_path / "a.sundog").verify() == [f"no charge pays for the marginal of {name!r}"]


@pytest.mark.parametrize(
    "charge",
    [
        {"event": {"kind": "failure", "delta": 1e-12}, "count": 1, "purpose": "marginal of age"},
        {"event": {"kind": "pure", "epsilon": 1e-9}, "count": 1, "purpose": "marginal of age"},
        {"event": {"kind": "discrete_gaussian", "sigma": 1e9}, "count": 1, "purpose": "marginal of ages"},
        {"event": {"kind": "discrete_gaussian", "sigma": 1e9}, "count": 2, "purpose": "marginal of age"},
    ],
    ids=["a failure", "another kind", "another purpose", "another count"],
)
def test_a_charge_for_something_else_does_not_pay(release: Release, charge: dict[str, Any], tmp_path: Path) -> None:
    def other(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        charges = manifest["certificate"]["charges"]
        charges[[c["purpose"] for c in charges].index("marginal of age")] = charge

    save_tampered(release, tmp_path / "a.sundog", other)
    assert "no charge pays for the marginal of 'age'" in Release.load(tmp_path / "a.sundog").verify()


def test_a_public_marginal_needs_no_charge(tmp_path: Path) -> None:
    release = fit({**COLUMNS, "name": {**COLUMNS["name"], "public": True}})
    assert [charge.purpose for charge in release.certificate.charges] == ["marginal of age", "marginal of born"]
    assert release.verify() == []
    save_tampered(release, tmp_path / "a.sundog", set_field("schema", "columns", 0, "public", to=False))
    problems = Release.load(tmp_path / "a.sundog").verify()
    assert "no charge pays for the marginal of 'name'" in problems
    assert any("who is protected" in problem for problem in problems)


def test_columns_of_any_name_are_paid_for() -> None:
    names = ["a\x1b[2J", "x" * 500, " ", "two\nlines", "\u202e"]
    schema = schema_of({name: {"type": "boolean"} for name in names})
    data = {name: [True, False] * 20 for name in names}
    assert Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema).release_.verify() == []


def test_each_of_two_columns_of_one_purpose_is_paid_for(tmp_path: Path) -> None:
    """Long names are cut in a purpose, and may then be the same: one charge pays for one of them."""
    names = ["x" * 300 + "a", "x" * 300 + "b"]
    schema = schema_of({name: {"type": "boolean"} for name in names})
    data = {name: [True, False] * 20 for name in names}
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema).release_
    assert release.verify() == []
    save_tampered(release, tmp_path / "a.sundog", _drop_charge)
    assert any("no charge pays" in problem for problem in Release.load(tmp_path / "a.sundog").verify())
