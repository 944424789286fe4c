"""Every command with valid input: its output, its files, its exit code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.cli.calling import Sundog

from sundog.cli.main import app
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
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

PLAIN = ("--model", "independent")  # the quickest
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


# --- sample ---


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npz", "tsv"])
def test_samples_are_written_in_every_format(suffix: str, sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-n", "50", "--seed", "7", "-o", f"fake.{suffix}")
    assert called.code == 0
    assert called.out == f"fake.{suffix}: 50 synthetic records\n"
    schema = Release.load("people.sundog").schema
    records = encode(read(Path(f"fake.{suffix}"), schema), schema)
    expected = next(Release.load("people.sundog").batches(50, seed=7))
    assert {name: codes.tolist() for name, codes in records.codes.items()} == {
        name: codes.tolist() for name, codes in expected.codes.items()
    }


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npz"])
def test_samples_of_no_record_and_of_one_are_written(n: int, suffix: str, sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-n", n, "-o", f"fake.{suffix}")
    assert called.code == 0
    assert called.out == f"fake.{suffix}: {n} synthetic records\n"
    if suffix.startswith("csv"):
        assert pd.read_csv(f"fake.{suffix}").shape == (n, 4)


def test_images_are_written_as_a_picture(sundog: Sundog, here: Path) -> None:
    Path("digits.yaml").write_text(
        "columns:\n  image: {type: image, shape: [3, 3], levels: 4}\n  label: {type: categorical, values: [0, 1]}\n"
    )
    rng = np.random.default_rng(0)
    np.savez("digits.npz", image=rng.integers(0, 4, (60, 3, 3)), label=rng.integers(0, 2, 60))
    fitted = sundog("fit", "digits.npz", "--schema", "digits.yaml", "--epsilon", "5", "-o", "digits.sundog", *PLAIN)
    assert fitted.err.endswith("or   sundog sample digits.sundog -o synthetic.png\n")
    assert sundog("sample", "digits.sundog", "-o", "digits.png").out == "digits.png: 100 synthetic records\n"
    assert Path("digits.png").read_bytes().startswith(b"\x89PNG")
    assert sundog("sample", "digits.sundog", "-n", "7", "--where", "label=1", "-o", "ones.png").code == 0


def test_a_table_is_not_written_as_a_picture(sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-o", "fake.png")
    assert called.code == 2
    assert "fake.png: a picture shows images or series, and the schema has neither" in called.err
    assert not Path("fake.png").exists()


def test_by_default_a_sample_is_as_large_as_the_data(sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-o", "fake.csv", "--json")
    assert called.json == {"file": "fake.csv", "records": Release.load("people.sundog").records}


def test_only_samples_with_the_same_seed_are_equal(sundog: Sundog, here: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert sundog("sample", "people.sundog", "-n", "40", "--seed", seed, "-o", f"{name}.csv").code == 0
    a, b, c = (Path(f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_a_sample_satisfies_conditions(sundog: Sundog, here: Path) -> None:
    conditions = ("--where", "sex=f", "--where", " age = 42 ", "--where", "seen=2020-02-29")
    assert sundog("sample", "people.sundog", "-n", "20", *conditions, "-o", "fake.csv").code == 0
    frame = pd.read_csv("fake.csv")
    assert set(frame["sex"]) == {"f"}
    assert set(frame["age"]) == {42}
    assert set(frame["seen"]) == {"2020-02-29"}
    assert frame["height"].nunique() > 1


def test_conditions_take_values_literally(sundog: Sundog, here: Path) -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "values": ["a", " a ", "NA"]}}})
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit({"x": ["a", " a ", "NA"] * 20}, schema, out="x.sundog")
    for value in ("a", " a ", "NA"):
        assert sundog("sample", "x.sundog", "-n", "5", "--where", f"x={value}", "-o", "fake.csv", "--force").code == 0
        assert set(pd.read_csv("fake.csv", keep_default_na=False)["x"]) == {value}
    complaint = sundog("sample", "x.sundog", "-n", "5", "--where", "x=a ", "-o", "never.csv").complaint
    assert complaint.startswith("where: column 'x': 'a ' is not a declared value, but ' a ' is; ")
    assert complaint.endswith("; ask for a value that the schema declares")
    assert not Path("never.csv").exists()


def test_a_condition_may_require_a_missing_value(sundog: Sundog, here: Path) -> None:
    assert sundog("sample", "people.sundog", "-n", "5", "--where", "height=", "-o", "fake.csv").code == 0
    assert pd.read_csv("fake.csv")["height"].isna().all()
    complaint = sundog("sample", "people.sundog", "-n", "5", "--where", "age=", "-o", "never.csv").complaint
    assert complaint.startswith("where: column 'age': ")
    assert "row" not in complaint
    assert complaint.endswith("; ask for a value that the schema declares")


def test_a_sample_replaces_a_file_with_force(sundog: Sundog, here: Path) -> None:
    for n in (30, 5):
        assert sundog("sample", "people.sundog", "-n", n, "-o", "fake.csv", "--force").code == 0
    assert len(pd.read_csv("fake.csv")) == 5
    assert not list(here.glob(".*"))


# --- certificate, verify, key, sign ---


def test_a_certificate_is_printed_as_text_and_as_json(sundog: Sundog, here: Path) -> None:
    release = Release.load("people.sundog")
    assert sundog("certificate", "people.sundog").out == f"{release.certificate}\n"
    called = sundog("certificate", "people.sundog", "--json")
    assert called.json == release.certificate.to_dict()
    assert called.err == ""


def test_a_signature_is_verified_with_the_right_key_only(sundog: Sundog, here: Path) -> None:
    unsigned = sundog("verify", "people.sundog")
    assert unsigned.code == 3
    assert "adds up; UNSIGNED: nobody vouches for it" in unsigned.out
    assert "holds" not in unsigned.out
    assert "signed by  nobody" in unsigned.out
    for name in ("hospital", "stranger"):
        assert sundog("key", name).code == 0
    assert Path("hospital.key").stat().st_mode & 0o077 == 0
    not_signed = sundog("verify", "people.sundog", "--key", "hospital.pub")
    assert (not_signed.code, not_signed.out.splitlines()[0]) == (1, "people.sundog: NO: it is not signed")
    signed = sundog("sign", "people.sundog", "--key", "hospital.key")
    assert signed.code == 0
    right = sundog("verify", "people.sundog", "--key", "hospital.pub")
    assert right.code == 0
    assert "people.sundog: holds" in right.out
    assert "(the given key)" in right.out
    wrong = sundog("verify", "people.sundog", "--key", "stranger.pub")
    assert wrong.code == 1
    assert wrong.out.splitlines()[0] == "people.sundog: NO: the signature is not by the given key"
    nobody = sundog("verify", "people.sundog")
    assert nobody.code == 3
    assert "holds" not in nobody.out
    assert "compare with the owner's" in nobody.out
    assert sundog("verify", "people.sundog", "--json").json["status"] == "signed by an unknown key"


def test_verify_prints_json(sundog: Sundog, here: Path) -> None:
    called = sundog("verify", "people.sundog", "--json")
    assert called.code == 3
    release = Release.load("people.sundog")
    found = {"ok": False, "status": "unsigned", "problems": [], "warnings": [], "hash": release.hash, "signed_by": None}
    assert called.json == found
    sundog("key", "hospital")
    no = sundog("verify", "people.sundog", "--key", "hospital.pub", "--json")
    assert no.code == 1
    assert (no.json["status"], no.json["problems"]) == ("no", ["it is not signed"])
    sundog("sign", "people.sundog", "--key", "hospital.key")
    yes = sundog("verify", "people.sundog", "--key", "hospital.pub", "--json")
    assert yes.code == 0
    assert (yes.json["ok"], yes.json["status"]) == (True, "holds")


def test_a_release_that_fails_a_check_is_not_signed(sundog: Sundog, here: Path) -> None:
    release = Release.load("people.sundog")
    release.document.manifest["certificate"]["epsilon"] = 0.5
    release.save("false.sundog")
    before = Path("false.sundog").read_bytes()
    sundog("key", "hospital")
    refused = sundog("sign", "false.sundog", "--key", "hospital.key")
    assert refused.code == 1
    assert "above the claimed 0.5" in refused.out
    assert "not signed" in refused.out
    assert Path("false.sundog").read_bytes() == before


def test_a_closed_pipe_does_not_change_the_exit_code_of_verify(sundog: Sundog, here: Path) -> None:
    """`sundog verify … | true` asks for the exit code alone."""
    sundog("key", "hospital")
    sundog("sign", "people.sundog", "--key", "hospital.key")
    program = "from sundog.cli.main import main; main()"
    for arguments, expected in ((["--key", "hospital.pub"], 0), (["--json"], 3)):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-c", program, "verify", "people.sundog", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (expected, b"")


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
    from sundog.demo import digits, walkthrough

    monkeypatch.setitem(walkthrough.SETTINGS, "epochs", 1)
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


def test_a_sample_satisfies_ranges_and_lists(sundog: Sundog, here: Path) -> None:
    conditions = ("age>=40", "age<65", "sex in f", "seen>=2020-03-01", "height!=")
    asked = [word for condition in conditions for word in ("--where", condition)]
    assert sundog("sample", "people.sundog", "-n", "200", *asked, "-o", "fake.csv").code == 0
    frame = pd.read_csv("fake.csv")
    assert frame["age"].between(40, 64).all()
    assert set(frame["sex"]) == {"f"}
    assert (frame["seen"] >= "2020-03-01").all()
    assert not frame["height"].isna().any()
