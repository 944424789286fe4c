"""A command never overwrites its inputs, nor a file that it may not replace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.calling import Sundog

from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

PLAIN = ("fit", "people.csv", "--schema", "people.yaml", "--epsilon", "1", "--delta", "1e-6", "--model", "independent")
FIT = (*PLAIN, "--ledger", "all.ledger")


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def get_refusal(sundog: Sundog, *arguments: object) -> str:
    """Return the complaint of a call, and check that it changed no file."""
    before = read_files(Path.cwd())
    complaint = sundog(*arguments).complaint
    assert read_files(Path.cwd()) == before
    return complaint


@pytest.fixture
def ledger(here: Path) -> Path:
    Ledger.create(here / "all.ledger", epsilon=3.0, delta=1e-5)
    return here / "all.ledger"


# --- fit ---


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "forced"])
@pytest.mark.parametrize("way", ["itself", "absolute", "symbolic link", "hard link", "dots"])
@pytest.mark.parametrize(
    ("role", "name"), [("data", "people.csv"), ("schema", "people.yaml"), ("ledger", "all.ledger")]
)
def test_a_release_never_replaces_an_input(
    role: str, name: str, way: str, force: tuple[str, ...], ledger: Path, sundog: Sundog
) -> None:
    Path("symbolic link").symlink_to(name)
    os.link(name, "hard link")
    ways = {"itself": name, "absolute": str(Path(name).absolute()), "dots": f"../{Path.cwd().name}/{name}"}
    assert f"is the {role} itself" in get_refusal(sundog, *FIT, "-o", ways.get(way, way), *force)
    assert Ledger.open(ledger).charges == ()


@pytest.mark.parametrize("role", ["labels", "public data"])
def test_a_release_never_replaces_labels_or_public_records(role: str, here: Path, sundog: Sundog) -> None:
    Path("extra.csv").write_bytes(Path("people.csv").read_bytes())
    option = "--labels" if role == "labels" else "--public"
    assert f"is the {role} itself" in get_refusal(sundog, *PLAIN, option, "extra.csv", "-o", "extra.csv")


@pytest.mark.parametrize("suffix", [".private", ".partial/people.csv"])
def test_a_release_never_replaces_data_in_the_files_beside_it(suffix: str, here: Path, sundog: Sundog) -> None:
    place = Path(f"o.sundog{suffix}")
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(Path("people.csv").read_bytes())
    arguments = ("fit", place, *PLAIN[2:], "-o", "o.sundog", "--force")
    assert "the data" in get_refusal(sundog, *arguments)
    assert place.read_bytes() == Path("people.csv").read_bytes()


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "forced"])
@pytest.mark.parametrize("content", [b"my shopping list", b"", b"PK\5\6" + bytes(18)])
def test_a_release_never_replaces_a_file_that_is_not_a_release(
    content: bytes, force: tuple[str, ...], ledger: Path, sundog: Sundog
) -> None:
    for name in ("o.sundog", "o.sundog.private"):
        Path(name).write_bytes(content)
        assert f"{name}: exists already; it" in get_refusal(sundog, *FIT, "-o", "o.sundog", *force)
        Path(name).unlink()
    assert Ledger.open(ledger).charges == ()


def test_an_earlier_release_is_replaced_only_with_force(ledger: Path, sundog: Sundog) -> None:
    first = Path("people.sundog").read_bytes()
    complaint = get_refusal(sundog, *FIT, "-o", "people.sundog")
    assert "people.sundog: exists already; choose another name, or add --force" in complaint
    assert "--ledger" in complaint
    assert Ledger.open(ledger).charges == ()
    assert sundog(*FIT, "-o", "people.sundog", "--force").code == 0
    assert Path("people.sundog").read_bytes() != first
    assert Release.load("people.sundog").verify() == []


def test_an_earlier_release_stays_until_the_new_one_is_complete(
    ledger: Path, sundog: Sundog, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Path("people.sundog").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Release, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert sundog(*FIT, "-o", "people.sundog", "--force").code == 130
    assert Path("people.sundog").read_bytes() == first
    assert sundog(*FIT, "-o", "people.sundog", "--resume").code == 2  # it is not what the interrupted fit wrote
    assert sundog(*FIT, "-o", "people.sundog", "--resume", "--force").code == 0
    assert list(Ledger.open(ledger).charges) == Release.load("people.sundog").certificate.charges


@pytest.mark.parametrize("place", ["nowhere/o.sundog", ".", "people.csv/o.sundog", "x" * 250])
def test_an_impossible_path_gives_one_line(place: str, ledger: Path, sundog: Sundog) -> None:
    get_refusal(sundog, *FIT, "-o", place)
    assert Ledger.open(ledger).charges == ()


# --- the other commands ---


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "forced"])
def test_a_sample_never_replaces_its_release(force: tuple[str, ...], here: Path, sundog: Sundog) -> None:
    os.link("people.sundog", "link.csv")
    for out in ("people.sundog", "link.csv"):
        assert "is the release itself" in get_refusal(sundog, "sample", "people.sundog", "-n", 3, "-o", out, *force)


def test_a_sample_replaces_a_file_only_with_force(here: Path, sundog: Sundog) -> None:
    call = ("sample", "people.sundog", "-n", 3, "-o", "people.csv")
    assert "people.csv: exists already; choose another name, or add --force" in get_refusal(sundog, *call)
    assert sundog(*call, "--force").code == 0


@pytest.mark.usefixtures("fast_reports")
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_report_replaces_a_report_and_nothing_else(command: str, here: Path, sundog: Sundog) -> None:
    releases = ("people.sundog",) * (2 if command == "compare" else 1)
    call = (command, *releases, "--real", "people.csv")
    for out in ("people.csv", "people.sundog"):
        assert "itself" in get_refusal(sundog, *call, "-o", out)
    Path("mine.html").write_text("<!doctype html><p>mine")
    assert "it is not a report of sundog" in get_refusal(sundog, *call, "-o", "mine.html")
    assert sundog(*call, "-o", "report.html").code == 0
    assert sundog(*call, "-o", "report.html").code == 0


def test_a_draft_replaces_nothing(here: Path, sundog: Sundog) -> None:
    assert "is the data itself" in get_refusal(sundog, "schema", "people.csv", "-o", "people.csv")
    assert "exists already" in get_refusal(sundog, "schema", "people.csv", "-o", "people.yaml")


# --- ledgers ---


def test_a_ledger_that_lost_charges_is_detected_by_its_releases(ledger: Path, sundog: Sundog) -> None:
    old = ledger.read_bytes()
    assert sundog(*FIT, "-o", "o.sundog").code == 0
    assert sundog("ledger", "all.ledger").code == 0
    assert sundog("verify", "o.sundog", "--ledger", "all.ledger", "--json").json["problems"] == []
    ledger.write_bytes(old)
    called = sundog("ledger", "all.ledger")
    assert called.code == 1
    assert called.out.startswith("NO: all.ledger lacks charges that it had when o.sundog was made from it")
    assert sundog("ledger", "all.ledger", "--json").json["contradicted_by"] == ["o.sundog"]
    (problem,) = sundog("verify", "o.sundog", "--ledger", "all.ledger", "--json").json["problems"]
    assert problem.startswith("the ledger lacks lines")


def test_a_ledger_with_a_torn_tail_is_shown_with_a_warning(ledger: Path, sundog: Sundog) -> None:
    assert sundog(*FIT, "-o", "o.sundog").code == 0
    ledger.write_bytes(ledger.read_bytes()[:-9])
    Path("o.sundog").unlink()
    called = sundog("ledger", "all.ledger")
    assert called.code == 0
    assert called.err.startswith("warning: all.ledger: the last line is incomplete")
