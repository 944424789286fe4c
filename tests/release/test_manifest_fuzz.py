"""Changed and hostile manifests are release errors or harmless."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contracts.material import KINDS
from tests.release.material import fit

from sundog.errors import ReleaseError
from sundog.release.archive import Archive, write_archive
from sundog.release.release import Release


@cache
def _mix() -> tuple[dict[str, Any], dict[str, Any]]:
    release = fit(KINDS["mix"], n=50)
    archive_manifest = json.loads(json.dumps(release.document.manifest))
    return archive_manifest, release.model.state().tensors


def _list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _list_places(inner, (*path, key))


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 7, 64, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30]),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e-300, 5e-324, 1e-9, 1e308, -1.5, 1e16]),
    st.sampled_from(["", "a", "integer", "set", "2020-01-01", "9999-12-31", "independent", "\0", "🚲", "1e5", "NaN"]),
    st.sampled_from([[], {}, [[]], [1, 1], ["a", "a"], [None], {"type": "integer"}, {"": 0}, [10**6, 10**6]]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_changed_field_is_a_release_error_or_harmless(data: st.DataObject, tmp_path: Path) -> None:
    manifest, tensors = _mix()
    place = data.draw(st.sampled_from(sorted(_list_places(manifest), key=repr)), label="place")
    if data.draw(st.booleans(), label="removed"):
        _check(_change(manifest, place, None, remove=True), tensors, tmp_path)
    else:
        _check(_change(manifest, place, data.draw(junk, label="value"), remove=False), tensors, tmp_path)


HARD: dict[str, tuple[tuple[Any, ...], Any]] = {
    "hardly any noise": (("certificate", "charges", 0, "event", "sigma"), 1e-300),
    "all the noise there is": (("certificate", "charges", 0, "event", "sigma"), 1e300),
    "a Gaussian of hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "gaussian", "noise_multiplier": 1e-200},
    ),
    "a huge loss": (("certificate", "charges", 0, "event"), {"kind": "pure", "epsilon": 1e300}),
    "a geometric of hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "discrete_laplace", "rate": 1e300},
    ),
    "sampled with hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "sampled_gaussian", "noise_multiplier": 1e-200, "sample_rate": 0.5},
    ),
    "a failure": (("certificate", "charges", 0, "event"), {"kind": "failure", "delta": 0.999}),
    "no delta": (("certificate", "delta"), 0.0),
    "a negative delta": (("certificate", "delta"), -1.0),
    "a delta of two": (("certificate", "delta"), 2.0),
    "the smallest delta": (("certificate", "delta"), 5e-324),
    "the largest epsilon": (("certificate", "epsilon"), 1e308),
    "an epsilon whose exponential is too large": (("certificate", "epsilon"), 710.0),
    "no epsilon": (("certificate", "epsilon"), 0.0),
    "a negative epsilon": (("certificate", "epsilon"), -1.0),
    "a million charges": (("certificate", "charges", 0, "count"), 10**6),
    "a million million charges": (("certificate", "charges", 0, "count"), 10**12),
    "a negative cap": (("certificate", "cap"), -1),
    "a billion bins": (
        ("schema", "columns", 1),
        {"name": "integer", "type": "integer", "min": 0, "max": 10**15, "bins": 10**9},
    ),
    "two columns of one name": (("schema", "columns", 0, "name"), "integer"),
    "more records than there can be": (("model", "config", "records"), 10**30),
    "an escape in a purpose": (("certificate", "charges", 0, "purpose"), "a\x1b[2J"),
    "an escape in the unit": (("certificate", "unit"), "a\x1b[2J"),
    "an escape in what is public": (("certificate", "assumed_public", 0), "a\x1b[2J"),
    "an escape in the noise": (("certificate", "noise"), "a\x1b[2J"),
    "charges that round to no order": (("certificate", "charges", 0, "count"), 18_963),
    "two lines of purpose": (("certificate", "charges", 0, "purpose"), "a\nNOT PRIVATE"),
}


def test_hostile_manifests_are_release_errors_or_harmless(tmp_path: Path) -> None:
    """Each in a process of its own with 4 GiB and 20 seconds: none may stop the machine."""
    manifest, tensors = _mix()
    for name, (place, value) in HARD.items():
        with contextlib.suppress(ReleaseError):
            write_archive(tmp_path / name, Archive(_change(manifest, place, value, remove=False), tensors))
    done = subprocess.run(
        [sys.executable, "-c", _JUDGE, *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=1500,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 10
    assert {name: outcome for name, outcome in outcomes.items() if outcome not in ("ok", "refused")} == {}


def _change(manifest: dict[str, Any], place: tuple[Any, ...], value: Any, *, remove: bool) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    target: Any = changed
    for key in place[:-1]:
        target = target[key]
    if remove:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return changed


def _check(manifest: dict[str, Any], tensors: dict[str, Any], folder: Path) -> None:
    path = folder / "fuzzed.sundog"
    try:
        write_archive(path, Archive(manifest, tensors))
        loaded = Release.load(path)
    except ReleaseError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    loaded.sample(5, seed=1, as_="arrays")
    loaded.verify()
    str(loaded.certificate)
    assert loaded.hash


_JUDGE = """
import json, os, resource, sys, warnings
warnings.simplefilter("error")
from sundog.errors import ReleaseError, SundogError
import sundog.data.writing.write, sundog.models.independent.independent, sundog.privacy.pld
from sundog.release.release import Release
from sundog.release.signing import sign

def judge(path):
    try:
        release = Release.load(path)
    except ReleaseError as error:
        return "refused" if "\\n" not in str(error) else "several lines"
    release.sample(5, seed=1, as_="arrays")
    release.verify()
    str(release.certificate)
    assert release.records is None or release.records < 2**53, "too many records"
    return "ok"

def in_a_fork(path):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        resource.setrlimit(resource.RLIMIT_CPU, (int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 20,) * 2)
        try:
            said = judge(path)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    return os.read(read, 10_000).decode() or "killed after 20 seconds"

print(json.dumps({os.path.basename(path): in_a_fork(path) for path in sys.argv[1:]}))
"""
