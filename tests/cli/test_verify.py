"""`sundog certificate`, `verify`, `key` and `sign` with valid input: output, files, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.calling import Sundog

from sundog.release.release import Release


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
