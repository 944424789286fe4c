"""What the benchmark of tables rests on: distances, bins that peers get, and figures that are kept."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sundog

FOLDER = Path(__file__).parents[2] / "benchmarks"
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "min": 18, "max": 90},
    "job": {"type": "categorical", "values": ["cook", "nurse", "?"]},
    "paid": {"type": "continuous", "min": 0, "max": 100, "resolution": 0.5},
    "rich": {"type": "boolean"},
}


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, paid = rng.integers(18, 91, n), rng.integers(0, 201, n) / 2
    return pd.DataFrame({"age": age, "job": rng.choice(["cook", "nurse", "?"], n), "paid": paid, "rich": paid > 60})


def table() -> Any:
    from tabular.datasets import Table

    schema = sundog.Schema.from_dict({"columns": COLUMNS})
    edges: dict[str, list[float]] = {"age": [30, 50], "paid": [10.0, 20.0, 80.0]}
    return Table("people", people(400, 0), people(300, 1), schema, edges, "rich", True)


def test_the_distance_is_that_of_pandas() -> None:
    from tabular.measures import pair_distance

    given, other = table(), people(200, 2)
    binned = [
        frame.assign(age=np.digitize(frame["age"], [30, 50]), paid=np.digitize(frame["paid"], [10, 20, 80]))
        for frame in (given.train, other)
    ]
    expected = []
    for pair in itertools.combinations(COLUMNS, 2):
        real, fake = (frame.value_counts(subset=list(pair), normalize=True) for frame in binned)
        expected.append(0.5 * real.sub(fake, fill_value=0).abs().sum())
    assert pair_distance(given.encode(given.train), given.encode(other)) == pytest.approx(np.mean(expected))


def test_classifiers_learn_what_is_there_and_nothing_else() -> None:
    from tabular.measures import measure

    given = table()
    real = measure(given, given.train, seed=0, trees=20)
    assert real["distance"] == 0
    assert min(real["auc"], real["forest"]) > 0.95
    shuffled = given.train.assign(rich=np.random.default_rng(3).permutation(given.train["rich"]))
    assert max(measure(given, shuffled, seed=0, trees=20)[name] for name in ("auc", "forest")) < 0.8
    constant = measure(given, given.train.assign(rich=True), seed=0, trees=20)
    assert (constant["auc"], constant["forest"]) == (0.5, 0.5)


def test_a_longer_estimate_has_the_same_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    from tabular.convergence import fit_longer
    from tabular.measures import pair_distance

    given = table()

    def compare(times: int) -> float:
        usual, longer = fit_longer(given, epsilon=1.0, delta=1e-5, seed=0, times=times)
        return pair_distance(given.encode(usual), given.encode(longer))

    assert compare(1) == 0
    assert compare(4) < 0.01
    monkeypatch.setattr("sundog.models.marginals.learner._LAST_TOLERANCE", 5.0)
    assert compare(4) > 0.01


def test_peers_get_bins_and_values_come_back_within_them(tmp_path: Path) -> None:
    from tabular.measures import pair_distance
    from tabular.peers import read_bins, write_bins

    given, path = table(), tmp_path / "table.npz"
    write_bins(given, path)
    with np.load(path) as file:
        assert file["sizes"].tolist() == [3, 3, 4, 2]
        assert file["codes"][:, 0].tolist() == np.digitize(given.train["age"], [30, 50]).tolist()
    back = read_bins(given, path, seed=0)
    assert pair_distance(given.encode(given.train), given.encode(back)) == 0
    assert (back["age"] != given.train["age"]).any()
    assert (back["job"] == given.train["job"]).all()


def test_peers_do_not_learn_what_rules_derive(tmp_path: Path) -> None:
    from tabular.datasets import Table
    from tabular.peers import read_bins, write_bins

    given, path = table(), tmp_path / "table.npz"
    rule = {"column": "sick", "from": "job", "table": {"cook": False, "nurse": False, "?": True}}
    schema = sundog.Schema.from_dict({"columns": {"sick": {"type": "boolean"}, **COLUMNS}, "rules": [rule]})
    records = given.train.assign(sick=given.train["job"] == "?")
    derived = Table("people", records, records, schema, given.edges, "rich", True)
    write_bins(derived, path)
    with np.load(path) as file:
        assert file["sizes"].tolist() == [3, 3, 4, 2]
    back = read_bins(derived, path, seed=0)
    assert list(back) == ["sick", *COLUMNS]
    assert (back["sick"] == (back["job"] == "?")).all()


def test_an_adapter_writes_records_and_their_cost(tmp_path: Path) -> None:
    given, drawn = tmp_path / "table.npz", tmp_path / "drawn.npz"
    np.savez(given, codes=np.arange(8).reshape(4, 2) % 2, sizes=np.array([2, 2]))
    program = (
        "from tabular.adapter import Fitted, run_adapter\n"
        "def fit(codes, sizes, *, epsilon):\n"
        "    ballast = bytearray(b'1' * (300 << 20))\n"
        "    return Fitted(lambda n: codes[:n], {'epsilon': epsilon, 'sizes': sizes})\n"
        "run_adapter(fit)\n"
    )
    command = [sys.executable, "-c", program, str(given), str(drawn), '{"epsilon": 2}']
    subprocess.run(command, check=True, cwd=FOLDER)
    with np.load(drawn) as file:
        assert file["codes"].tolist() == [[0, 1]] * 4
    cost = json.loads(drawn.with_suffix(".json").read_text())
    assert (cost["epsilon"], cost["sizes"]) == (2, [2, 2])
    assert cost["cpu_s"] > 0
    assert cost["peak_mib"] > 300


def test_figures_of_peers_are_measured_once(tmp_path: Path) -> None:
    from report import Kept

    path, asked = tmp_path / "kept.json", []

    def measure() -> dict[str, float]:
        asked.append(1)
        return {"auc": 0.9}

    assert Kept(path).get("a peer", measure) == {"auc": 0.9}
    assert Kept(path).get("a peer", measure) == {"auc": 0.9}
    assert len(asked) == 1
    Kept(None).get("a peer", measure)
    assert len(asked) == 2


def test_peers_are_measured_several_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import Namespace

    import tables
    from report import Kept

    both = threading.Barrier(2, timeout=60)

    def judge(draw: Any, table: Any, epsilon: float, options: Any, seed: int) -> dict[str, float]:
        both.wait()
        return {"auc": epsilon + seed}

    monkeypatch.setattr(tables, "judge", judge)
    monkeypatch.setattr("tabular.peers.Peer.is_installed", lambda *_: True)
    asked = Namespace(quick=False, only=["AIM, converged"], peers=tmp_path, epsilons=[1.0, 3.0], seeds=1, jobs=2)
    kept = Kept(tmp_path / "kept.json")
    tables.measure_ahead(table(), asked, kept)
    ahead = {f"people, AIM, converged, ε={epsilon}, seed 0": {"auc": epsilon} for epsilon in (1, 3)}
    assert Kept(tmp_path / "kept.json").figures == kept.figures == ahead


def test_rows_have_our_model_beside_each_other_contestant() -> None:
    from tables import OURS, compare

    found = {OURS: [{"auc": 0.9, "cpu_s": 4.0}, {"auc": 0.8, "cpu_s": 6.0}], "AIM": [{"auc": 0.5, "cpu_s": 50.0}]}
    rows = {row.name: (row.value, row.peer, row.peer_value) for row in compare("x", found)}
    assert rows == {"boosting AUC, x": (pytest.approx(0.85), "AIM", 0.5), "fit, x": (5.0, "AIM", 50.0)}


def test_what_is_not_installed_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tables import main

    for arguments, said in (
        (["--table", "affairs"], "--make-peers"),
        (["--seeds", "1", "--epsilons", "1", "--only", "AIM, converged"], "not installed"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["tables.py", "--peers", str(tmp_path / "none"), *arguments])
            main()
        assert said in capsys.readouterr().out
