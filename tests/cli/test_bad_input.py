"""Invalid input gives one line that names the place and exit code 2, and leaves no files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.calling import Sundog

from sundog.data.schema import Schema
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

PROGRAM = Path(sys.executable).with_name("sundog")
COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "sex": {"type": "categorical", "values": ["f", "m"]},
    "height": {"type": "continuous", "min": 0, "max": 3},
}
GOOD = "age,sex,height\n31,f,1.7\n47,m,1.8\n"
LEARNED = {**COLUMNS, "age": {"type": "integer", "learn": True}, "sex": {"type": "categorical", "learn": True}}

# the content of the file, and what the message must name
BAD_DATA: dict[str, tuple[str, str]] = {
    "a missing column": ("age,height\n31,1.7\n", "'sex'"),
    "a misspelled column": ("Age,sex,height\n31,f,1.7\n", "'age'"),
    "an undeclared category": (GOOD + "50,x,1.7\n", "'sex'"),
    "a category in capitals": (GOOD + "50,F,1.7\n", "'sex'"),
    "a number above": (GOOD + "500,f,1.7\n", "'age'"),
    "a number below": (GOOD + "-1,f,1.7\n", "'age'"),
    "text for a number": (GOOD + "old,f,1.7\n", "'age'"),
    "a fraction for a whole number": (GOOD + "3.7,f,1.7\n", "'age'"),
    "NaN": (GOOD + "50,f,NaN\n", "'height'"),
    "an infinity": (GOOD + "50,f,inf\n", "'height'"),
    "an empty value": (GOOD + ",f,1.7\n", "'age'"),
    "an empty category": (GOOD + "50,,1.7\n", "'sex'"),
    "an empty file": ("", "bad.csv"),
    "blank lines": ("\n\n\n", "bad.csv"),
    "a header and nothing else": ("age,sex,height\n", "bad.csv"),
    "a header twice": ("age,sex,height,age\n31,f,1.7,31\n", "'age'"),
    "another delimiter": (GOOD.replace(",", ";"), "delimiter"),
    "too few fields": (GOOD + "50,f\n", "row 3"),
    "too many fields": (GOOD + "50,f,1.7,9\n", "row 3"),
    "an open quote": (GOOD + '50,"f,1.7\n', "bad.csv"),
}


@pytest.mark.parametrize("bad", BAD_DATA)
@pytest.mark.parametrize("ledger_is_there", [True, False], ids=["ledger", "no ledger"])
def test_bad_data_gives_one_line_and_leaves_no_files(
    bad: str, ledger_is_there: bool, sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, named = BAD_DATA[bad]
    Path("bad.csv").write_text(content)
    Schema.from_dict({"reviewed": False, "columns": COLUMNS}).save("s.yaml")  # only a good fit warns of that
    if ledger_is_there:
        Ledger.create("l", epsilon=5.0, delta=1e-5)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    called = sundog("fit", "bad.csv", "--schema", "s.yaml", "--epsilon", "1", "--ledger", "l", "-o", "o.sundog")
    assert "bad.csv" in called.complaint
    assert named in called.complaint
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "bad",
    [
        "a missing column",
        "text for a number",
        "a fraction for a whole number",
        "NaN",
        "an empty value",
        "an empty category",
        "a header and nothing else",
    ],
)
def test_bad_data_is_refused_before_anything_is_learned(
    bad: str, sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, named = BAD_DATA[bad]
    header, _, rest = content.partition("\n")
    many = "".join(f"{i % 50},{'fm'[i % 2]},1.7\n" for i in range(2000)) if rest and "sex" in header else ""
    Path("bad.csv").write_text(f"{header}\n{many}{rest}")
    Schema.from_dict({"columns": LEARNED}).save("s.yaml")
    called = sundog("fit", "bad.csv", "--schema", "s.yaml", "--epsilon", "2", "--ledger", "l", "-o", "o.sundog")
    assert "bad.csv" in called.complaint
    assert named in called.complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "s.yaml"]


def test_a_file_whose_content_does_not_match_its_name_is_refused(
    sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Schema.from_dict({"columns": COLUMNS}).save("s.yaml")
    Path("binary.csv").write_bytes(bytes(range(256)) * 10)
    Path("cut.csv.gz").write_bytes(gzip.compress(GOOD.encode() * 1000)[:200])
    Path("text.parquet").write_text(GOOD)
    Path("text.npz").write_text(GOOD)
    Path("what.xyz").write_text(GOOD)
    Path("folder.csv").mkdir()
    for name in ("binary.csv", "cut.csv.gz", "text.parquet", "text.npz", "what.xyz", "folder.csv", "missing.csv"):
        called = sundog("fit", name, "--schema", "s.yaml", "--epsilon", "1", "-o", "o.sundog")
        assert name in called.complaint
    assert not list(tmp_path.glob("o.sundog*"))


# --- schemas ---


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "s.yaml"),
        ("", "s.yaml"),
        ("columns: [", "s.yaml"),
        ("columns: {}", "columns"),
        ("columns: {age: {type: integr, min: 0, max: 9}}", "age"),
        ("columns: {age: {type: integer, min: 9, max: 0}}", "age"),
        ("columns: {age: {type: integer, max: 0}}", "age"),
        ("columns: {age: {type: integer, min: 0, max: 9, colour: red}}", "colour"),
        ("unit: age\ncolumns: {age: {type: integer, min: 0, max: 9}}", "age"),
    ],
    ids=str,
)
def test_a_bad_schema_gives_one_line(
    content: str | None, named: str, sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text(GOOD)
    if content is not None:
        Path("s.yaml").write_text(content)
    for command in (
        ("fit", "good.csv", "--schema", "s.yaml", "--epsilon", "1", "-o", "o.sundog"),
        ("plan", "--schema", "s.yaml", "--epsilon", "1"),
    ):
        said = sundog(*command).complaint
        assert "s.yaml" in said
        assert named in said
    assert not list(tmp_path.glob("o.sundog*"))


# --- options ---

FIT = ("fit", "people.csv", "--schema", "people.yaml", "--model", "independent", "-o", "o.sundog")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("fitt",), "fitt"),
        (("--verbose",), "--verbose"),
        (("fit",), ""),
        (("fit", "people.csv"), ""),
        (FIT, "--epsilon"),
        ((*FIT, "--epsilon", "much"), "--epsilon"),
        ((*FIT, "--epsilon", "0"), "epsilon"),
        ((*FIT, "--epsilon", "-1"), "epsilon"),
        ((*FIT, "--epsilon", "nan"), "epsilon"),
        ((*FIT, "--epsilon", "1", "--delta", "0"), "delta"),
        ((*FIT, "--epsilon", "1", "--delta", "0.5"), "promises nothing"),
        ((*FIT, "--epsilon", "1", "--model", "nonsense"), "nonsense"),
        ((*FIT, "--epsilon", "1", "--set", "depth=3"), "depth"),
        ((*FIT, "--epsilon", "1", "--set", "depth"), "name=value"),
        ((*FIT, "--epsilon", "1", "--device", "cuda"), "device"),
        ((*FIT, "--epsilon", "1", "--clusters", "501"), "clusters must be"),
        ((*FIT, "--epsilon", "1", "--clusters", "0"), "--clusters"),
        ((*FIT, "--epsilon", "1", "--public", "people.csv"), "public"),
        ((*FIT, "--epsilon", "1", "--resume"), "nothing to resume"),
        ((*FIT, "--epsilon", "1", "--labels", "people.csv"), ""),
        ((*FIT, "--epsilon", "1", "--ledger", "people.csv"), "people.csv"),
        ((*FIT, "--epsilon", "1", "--ledger", "missing/l"), "missing/l"),
        ((*FIT[:-1], "missing/o.sundog", "--epsilon", "1"), "missing/o.sundog"),
        (("sample", "people.sundog"), "--out"),
        (("sample", "people.sundog", "-n", "-1", "-o", "a.csv"), "-n"),
        (("sample", "people.sundog", "-n", "many", "-o", "a.csv"), "-n"),
        (("sample", "people.sundog", "--seed", "-1", "-o", "a.csv"), "--seed"),
        (("sample", "people.sundog", "-n", "3", "-o", "a.xlsx"), "a.xlsx"),
        (("sample", "people.sundog", "-n", "3", "-o", "a"), "a: "),
        (("sample", "people.sundog", "-n", "3", "-o", "missing/a.csv"), "a.csv"),
        (("sample", "people.sundog", "-n", "3", "-o", "folder.csv"), "folder.csv"),
        (("sample", "missing.sundog", "-n", "3", "-o", "a.csv"), "missing.sundog"),
        (("sample", "people.csv", "-n", "3", "-o", "a.csv"), "people.csv"),
        (("sample", "people.sundog", "-n", "3", "--where", "colour=red", "-o", "a.csv"), "'colour'"),
        (("sample", "people.sundog", "-n", "3", "--where", "sex=x", "-o", "a.csv"), "'sex'"),
        (("sample", "people.sundog", "-n", "3", "--where", "age=old", "-o", "a.csv"), "'age'"),
        (("sample", "people.sundog", "-n", "3", "--where", "age=1000", "-o", "a.csv"), "'age'"),
        (("sample", "people.sundog", "-n", "3", "--where", "seen=never", "-o", "a.csv"), "'seen'"),
        (("sample", "people.sundog", "-n", "3", "--where", "sex", "-o", "a.csv"), "column=value"),
        (("sample", "people.sundog", "-n", "3", "--where", "=f", "-o", "a.csv"), "column=value"),
        (("sample", "people.sundog", "-n", "3", "--where", "sex=f", "--where", "sex=m", "-o", "a.csv"), "'sex'"),
        (("certificate", "missing.sundog"), "missing.sundog"),
        (("certificate", "people.csv"), "people.csv"),
        (("verify", "missing.sundog"), "missing.sundog"),
        (("verify", "people.sundog", "--key", "missing.pub"), "missing.pub"),
        (("verify", "people.sundog", "--key", "people.csv"), "people.csv"),
        (("sign", "people.sundog"), "--key"),
        (("sign", "people.sundog", "--key", "missing.key"), "missing.key"),
        (("key", "missing/name"), "missing/name"),
        (("schema", "missing.csv"), "missing.csv"),
        (("ledger", "missing.ledger"), "missing.ledger"),
        (("ledger", "people.csv"), "people.csv"),
        (("ledger", "new.ledger", "--epsilon", "-3"), "epsilon"),
        (("plan", "--epsilon", "1"), "--records"),
        (("plan", "--records", "100", "--epsilon", "0"), "epsilon"),
        (("plan", "--records", "0", "--epsilon", "1"), "--records"),
        (("plan", "--records", "100", "--epsilon", "1", "--batch", "1000"), "--batch"),
        (("plan", "--records", "100", "--epsilon", "1", "--delta", "1.5"), "delta"),
        (("plan", "--records", "100", "--epsilon", "0.01", "--noise", "0.1", "--batch", "10"), "--noise"),
        (("plan", "--records", "100", "--epsilon", "1", "--noise", "0", "--batch", "10"), "--noise"),
        (("plan", "--records", "100", "--epsilon", "1", "--noise", "-1", "--batch", "10"), "--noise"),
        (("plan", "--records", "100", "--epsilon", "1", "--epochs", "-1", "--batch", "10"), "--epochs"),
        (("plan", "--schema", "missing.yaml", "--epsilon", "1"), "missing.yaml"),
        (("plan", "--schema", "people.yaml", "--epsilon", "1", "--model", "nonsense"), "nonsense"),
    ],
    ids=lambda value: " ".join(value[1:])[:60] if isinstance(value, tuple) and len(value) > 1 else str(value),
)
def test_a_bad_option_gives_one_line_and_leaves_no_files(
    arguments: tuple[str, ...], named: str, sundog: Sundog, here: Path
) -> None:
    (here / "folder.csv").mkdir()
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    assert named in sundog(*arguments).complaint
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    assert not [path for path in here.iterdir() if path.name.endswith(".partial")]


def test_a_release_with_the_name_of_a_folder_is_refused_before_anything_is_spent(sundog: Sundog, here: Path) -> None:
    (here / "o.sundog").mkdir()
    Ledger.create("l", epsilon=1.0, delta=1e-5)
    assert "o.sundog" in sundog(*FIT, "--epsilon", "1", "--ledger", "l").complaint
    assert Ledger.open("l").charges == ()


def test_a_draft_in_a_missing_folder_gives_one_line_after_the_warning(sundog: Sundog, here: Path) -> None:
    called = sundog("schema", "people.csv", "-o", "missing/s.yaml")
    assert called.code == 2
    complaints = [line for line in called.err.splitlines() if line.startswith("sundog: ")]
    assert len(complaints) == 1
    assert "missing/s.yaml" in complaints[0]


def test_a_key_is_never_overwritten(sundog: Sundog, here: Path) -> None:
    assert sundog("key", "hospital").code == 0
    kept = Path("hospital.key").read_bytes()
    assert "hospital.key: exists already" in sundog("key", "hospital").complaint
    assert Path("hospital.key").read_bytes() == kept


def test_a_plan_for_an_unlearned_schema_is_refused(sundog: Sundog, here: Path) -> None:
    Schema.from_dict({"columns": LEARNED}).save("learn.yaml")
    assert "learn.yaml" in sundog("plan", "--schema", "learn.yaml", "--epsilon", "1").complaint


# --- edited releases ---


def test_a_damaged_release_is_bad_input_for_every_command(sundog: Sundog, here: Path) -> None:
    content = bytearray(Path("people.sundog").read_bytes())
    content[len(content) // 2] ^= 1
    Path("people.sundog").write_bytes(content)
    for command in (
        ("sample", "people.sundog", "-n", "3", "-o", "a.csv"),
        ("certificate", "people.sundog"),
        ("verify", "people.sundog"),
    ):
        called = sundog(*command)
        assert called.code == 2
        assert "people.sundog" in called.err.splitlines()[-1]
        assert len(called.err.splitlines()) == 1
    assert not Path("a.csv").exists()


def test_a_forged_claim_is_rejected(sundog: Sundog, here: Path) -> None:
    from sundog.release.archive import Archive, read_archive, write_archive

    archive = read_archive("people.sundog")
    manifest = json.loads(json.dumps(archive.manifest))
    manifest["certificate"]["epsilon"] = 0.1
    write_archive("people.sundog", Archive(manifest, archive.tensors))
    called = sundog("verify", "people.sundog")
    assert called.code == 1
    assert called.out.startswith("people.sundog: NO: the events add up to ε = ")
    assert called.err == ""
    assert Release.load("people.sundog").certificate.epsilon == 0.1


# --- in a separate process ---


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("nonsense",), 2), (("certificate", "missing.sundog"), 2), (("sample", "--nonsense"), 2), (("--help",), 0)],
    ids=str,
)
def test_the_program_exits_with_its_code(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = subprocess.run([str(PROGRAM), *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code
    if code == 2:
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
