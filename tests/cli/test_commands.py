"""Help, fit, schema, plan, ledger and demo with valid input: output, files, exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.cli.calling import PLAIN, Sundog

from sundog.cli.main import app
from sundog.data.schema import Schema
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.calibration import make_training_charges
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

COMMANDS = [str(command.name) for command in app.registered_commands]
PROGRAM = Path(sys.executable).with_name("sundog")


# --- help ---


def test_the_commands_are_those_of_the_documentation() -> None:
    assert {"schema", "fit", "sample", "certificate", "verify", "plan", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_names_the_command(command: str, sundog: Sundog) -> None:
    called = sundog(command, "--help")
    assert called.code == 0
    assert called.err == ""
    assert re.search(rf": sundog {command}\b", called.out.partition("\n")[2])  # after the line of usage
    assert "Options:" in called.out


def test_help_lists_every_command(sundog: Sundog) -> None:
    called = sundog("--help")
    assert called.code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", called.out, re.MULTILINE)
    assert "..." not in called.out.partition("Commands:")[2]  # no summary is truncated


def test_help_names_formats_that_can_be_written(sundog: Sundog) -> None:
    assert "xlsx" in sundog("fit", "--help").out
    assert "xlsx" not in sundog("sample", "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_in_help_use_options_that_exist(command: str, sundog: Sundog) -> None:
    text = sundog(command, "--help").out
    example, _, options = text.partition("\n\n")[2].partition("Options:")
    for option in set(re.findall(r"(?<=\s)--?[a-z][\w-]*", example)):
        assert re.search(rf"(^|[\s,]){option}\b", options), option


def test_without_a_command_the_help_is_printed() -> None:
    done = subprocess.run([str(PROGRAM)], capture_output=True, text=True)
    assert (done.stdout + done.stderr).startswith("Usage: sundog [OPTIONS] COMMAND")
    assert len((done.stdout + done.stderr).splitlines()) > 10


def test_the_version_is_printed(sundog: Sundog) -> None:
    called = sundog("--version")
    assert called.code == 0
    assert called.out.startswith("sundog 0.")


# --- fit ---

FIT = ("fit", "people.csv", "--schema", "people.yaml", "--epsilon", "1", "--delta", "1e-6", *PLAIN)


def test_fit_writes_a_release_and_prints_what_it_spent(sundog: Sundog, here: Path) -> None:
    called = sundog(*FIT, "-o", "new.sundog")
    assert called.code == 0
    assert re.fullmatch(r"new\.sundog: ε = (0\.99\d+|1) of 1 spent \(δ = 1e-06\)\n", called.out)
    assert "next: sundog certificate new.sundog" in called.err
    release = Release.load("new.sundog")
    assert release.verify() == []
    assert sorted(path.name for path in here.iterdir()) == ["new.sundog", "people.csv", "people.sundog", "people.yaml"]


def test_fit_as_json_prints_the_certificate(sundog: Sundog, here: Path) -> None:
    called = sundog(*FIT, "-o", "new.sundog", "--json")
    assert called.code == 0
    assert called.json["release"] == "new.sundog"
    assert called.json["certificate"] == Release.load("new.sundog").certificate.to_dict()


def test_fit_accepts_options_that_have_no_effect_on_the_model(sundog: Sundog, here: Path) -> None:
    options = ("--model", "independent", "--clusters", "1", "--device", "cpu", "--seed", "3")
    assert sundog(*FIT, *options, "-o", "new.sundog").code == 0


def test_fits_share_a_ledger(sundog: Sundog, here: Path) -> None:
    assert sundog("ledger", "all.ledger", "--epsilon", "1.2").code == 0
    fit = (*FIT[:6], *PLAIN)
    assert sundog(*fit, "--ledger", "all.ledger", "-o", "one.sundog").code == 0
    refused = sundog(*fit, "--ledger", "all.ledger", "-o", "two.sundog")
    assert "refused" in refused.err.splitlines()[-1]
    assert refused.code == 2
    assert refused.out == ""
    assert not Path("two.sundog").exists()
    assert not Path("two.sundog.partial").exists()
    purposes = [charge.purpose for charge in Ledger.open("all.ledger").charges]
    bins = [f"bins of {name}" for name in ("height", "seen")]
    marginals = [f"marginal of {name}" for name in ("age", "sex", "height", "seen")]
    assert purposes == ["number of records", *bins, *marginals]
    assert sundog("certificate", "one.sundog", "--json").json["ledger"]["epsilon"] == 1.2


def test_fit_reads_labels_from_another_file(sundog: Sundog, here: Path) -> None:
    np.savez("images.npz", x=np.zeros((60, 2, 2), np.uint8))
    np.savez("labels.npz", digit=np.arange(60) % 3)
    columns = {
        "image": {"type": "image", "shape": [2, 2]},
        "digit": {"type": "integer", "min": 0, "max": 2},
    }
    Schema.from_dict({"columns": columns}).save("images.yaml")
    fit = ("fit", "images.npz", "--labels", "labels.npz", "--schema", "images.yaml", "--epsilon", "2", *PLAIN)
    assert sundog(*fit, "-o", "images.sundog").code == 0
    assert sundog("sample", "images.sundog", "-n", "5", "--where", "digit=2", "-o", "fake.npz").code == 0
    with np.load("fake.npz") as fake:
        assert fake["image"].shape == (5, 2, 2)
        assert fake["digit"].tolist() == [2] * 5


def test_an_unreviewed_schema_and_a_large_delta_warn_in_one_line_each(sundog: Sundog, here: Path) -> None:
    schema = Path("people.yaml").read_text().replace("reviewed: true", "reviewed: false")
    Path("draft.yaml").write_text(schema)
    called = sundog(
        "fit", "people.csv", "--schema", "draft.yaml", "--epsilon", "1", "--delta", "0.001", "-o", "new.sundog", *PLAIN
    )
    assert called.code == 0
    warned = [line for line in called.err.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 2
    assert "not reviewed" in warned[0]
    assert "delta = 0.001 is large" in warned[1]
    verified = sundog("verify", "new.sundog")
    assert verified.code == 3
    assert "but        NOT REVIEWED" in verified.out
    sundog("key", "hospital")
    assert "warning: NOT REVIEWED" in sundog("sign", "new.sundog", "--key", "hospital.key").err


def test_columns_with_coarse_bins_are_named_in_a_log(sundog: Sundog, here: Path) -> None:
    said = sundog(*FIT, "--epsilon", "0.1", "-o", "new.sundog").err
    assert "coarse bins: 'height'" in said
    assert "declare it as `special`, or declare `edges`" in said


def test_test_noise_is_marked_from_end_to_end(sundog: Sundog, here: Path) -> None:
    called = sundog(*FIT, "--unsafe-noise-seed", "1", "-o", "new.sundog")
    assert called.code == 0
    assert called.out.splitlines()[1].startswith("NOT PRIVATE")
    assert sundog("certificate", "new.sundog").out.startswith("NOT PRIVATE")
    verified = sundog("verify", "new.sundog")
    assert verified.code == 1
    assert verified.out.startswith("new.sundog: NO: NOT PRIVATE")
    assert sundog("verify", "new.sundog", "--json").json["ok"] is False


# --- schema ---


def test_a_draft_is_written_to_stdout_and_to_a_file(sundog: Sundog, here: Path) -> None:
    called = sundog("schema", "people.csv")
    assert called.code == 0
    draft = yaml.safe_load(called.out)
    assert draft["reviewed"] is False
    assert list(draft["columns"]) == ["age", "sex", "height", "seen"]
    assert sundog("schema", "people.csv", "-o", "draft.yaml").code == 0
    assert Schema.load("draft.yaml").to_dict() == Schema.from_dict(draft).to_dict()
    fit = ("fit", "people.csv", "--schema", "draft.yaml", "--epsilon", "1", "-o", "drafted.sundog", *PLAIN)
    assert sundog(*fit).code == 0


def test_the_header_of_a_draft_says_that_it_is_not_private(sundog: Sundog, here: Path) -> None:
    sundog("schema", "people.csv", "-o", "draft.yaml")
    assert "NOT PRIVATE" in Path("draft.yaml").read_text().partition("columns:")[0]


def test_a_draft_does_not_overwrite_a_file(sundog: Sundog, here: Path) -> None:
    before = Path("people.yaml").read_bytes()
    assert "people.yaml: exists already" in sundog("schema", "people.csv", "-o", "people.yaml").complaint
    assert Path("people.yaml").read_bytes() == before


# --- plan ---


def test_plan_prints_the_noise_for_a_budget(sundog: Sundog) -> None:
    asked = ("plan", "--records", "60000", "--epsilon", "4", "--delta", "1e-5", "--batch", "64", "--epochs", "20")
    called = sundog(*asked, "--json")
    assert called.code == 0
    plan = called.json
    assert plan["sample_rate"] == 64 / 60_000
    assert plan["steps"] == 18_750
    charges = make_training_charges(
        noise_multiplier=plan["noise_multiplier"], sample_rate=plan["sample_rate"], steps=plan["steps"]
    )
    assert 0.998 * 4 <= compute_epsilon(charges, delta=1e-5) <= 4
    text = sundog(*asked)
    assert text.code == 0
    assert f"noise multiplier  {plan['noise_multiplier']:.4f}" in text.out


def test_plan_prints_the_steps_for_a_noise_multiplier(sundog: Sundog) -> None:
    called = sundog("plan", "--records", "1000", "--epsilon", "1", "--noise", "20", "--batch", "1000", "--json")
    assert called.json["steps"] == 28 + (called.json["delta"] != 1e-5) * (called.json["steps"] - 28)
    charges = make_training_charges(noise_multiplier=20.0, sample_rate=1.0, steps=called.json["steps"])
    more = make_training_charges(noise_multiplier=20.0, sample_rate=1.0, steps=called.json["steps"] + 1)
    assert compute_epsilon(charges, delta=called.json["delta"]) <= 1 < compute_epsilon(more, delta=called.json["delta"])


def test_the_plan_for_a_schema_has_the_charges_of_the_fit(sundog: Sundog, here: Path) -> None:
    planned = sundog("plan", "--schema", "people.yaml", "--epsilon", "1", "--delta", "1e-6", "--json").json
    assert planned["charges"] == Release.load("people.sundog").certificate.to_dict()["charges"]
    text = sundog("plan", "--schema", "people.yaml", "--epsilon", "1").out
    assert "bins of height" in text
    assert "marginal of height" in text


# --- ledger ---


def test_a_ledger_is_created_and_shown(sundog: Sundog, here: Path) -> None:
    made = sundog("ledger", "a.ledger", "--epsilon", "3", "--delta", "1e-7")
    assert made.code == 0
    assert "ε = 0 of 3 spent (δ = 1e-07)" in made.out
    assert sundog(*FIT[:6], *PLAIN, "--ledger", "a.ledger", "-o", "new.sundog").code == 0
    shown = sundog("ledger", "a.ledger")
    assert "marginal of age" in shown.out
    plain = sundog("ledger", "a.ledger", "--json").json
    assert plain["private"] is True
    assert len({entry["run"] for entry in plain["entries"]}) == 1
    assert plain["entries"][0]["charges"][0]["purpose"] == "number of records"  # which determined δ
    assert 0.975 <= plain["spent"]["pld"] <= 1
    assert "exists already" in sundog("ledger", "a.ledger", "--epsilon", "9").complaint


# --- demo ---


def test_the_demo_runs_to_its_end(sundog: Sundog, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sundog.demo import digits

    monkeypatch.setitem(digits.SETTINGS, "epochs", 10)
    called = sundog("demo", "-o", "show")
    assert called.code == 0
    for step in range(1, 8):
        assert f"\n{step}. " in f"\n{called.out}"
    assert "verify says: it holds" in called.out
    assert "refused" in called.out
    names = {path.name for path in Path("show").iterdir()}
    assert {"adult.sundog", "synthetic.csv", "marginals.png", "curator.pub", "digits.sundog", "digits.png"} <= names
    assert not [name for name in names if name.startswith(".") or name.endswith(".partial")]
    assert Release.load("show/adult.sundog").verify() == []
    assert Release.load("show/digits.sundog").verify() == []
    learned, best = (int(found) for found in re.findall(r"reads (\d+)%", called.out))
    assert 50 < learned < best  # guessing gives 10
    shutil.rmtree("show")


# --- in a separate process ---


def test_the_program_fits_and_samples(made: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(PROGRAM), *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)

    data, schema = str(made / "adult.csv.gz"), str(made / "adult.schema.yaml")
    fitted = run("fit", data, "--schema", schema, "--epsilon", "1", "-o", "adult.sundog", "--json", *PLAIN)
    assert json.loads(fitted.stdout)["certificate"]["private"] is True
    assert "budget: ε = 1" in fitted.stderr  # plain lines without a terminal
    assert "\x1b" not in fitted.stderr
    run("sample", "adult.sundog", "-n", "100", "--where", "sex=Female", "-o", "women.csv")
    assert set(pd.read_csv(tmp_path / "women.csv")["sex"]) == {"Female"}


def test_a_pipe_that_is_closed_early_is_not_an_error(made: Path) -> None:
    command = f"{PROGRAM} certificate {made / 'people.sundog'} | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == "sundog certificate\n"
    assert done.stderr == ""
