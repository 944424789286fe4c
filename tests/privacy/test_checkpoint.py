"""The checkpoint: a locked folder for its owner alone, in which every result is whole."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sundog.errors import SundogError
from sundog.privacy.checkpoint import Checkpoint

pytestmark = pytest.mark.usefixtures("no_fsync")


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_the_folder_is_for_the_owners_eyes_only(umask: int, tmp_path: Path) -> None:
    """Also if the folder was there before, or others were allowed to read it since."""
    before = os.umask(umask)
    try:
        Checkpoint.locate_folder(tmp_path / "o.sundog").mkdir(0o755)  # one with nothing in it is no fit
        checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
        assert stat.S_IMODE(checkpoint.folder.stat().st_mode) == 0o700
        checkpoint.release()
        checkpoint.folder.chmod(0o755)
        again = Checkpoint.resume(tmp_path / "o.sundog", {})
        assert stat.S_IMODE(again.folder.stat().st_mode) == 0o700
        again.remove()
    finally:
        os.umask(before)


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {"epsilon": 1.0, "settings": {"a": (1, 2)}})
    tensors = {"x": np.arange(6.0).reshape(2, 3), "y": np.zeros(0)}
    checkpoint.save_tensors("model", tensors)
    checkpoint.save_json("model", {"result": {"ε": 0.1}})
    checkpoint.release()
    again = Checkpoint.resume(tmp_path / "o.sundog", {"epsilon": 1.0, "settings": {"a": (1, 2)}})
    assert again.run == checkpoint.run
    assert again.load_json("model") == {"result": {"ε": 0.1}}
    assert again.load_json("records") is None
    assert {name: tensor.tolist() for name, tensor in (again.load_tensors("model") or {}).items()} == {
        name: tensor.tolist() for name, tensor in tensors.items()
    }
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_result_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    checkpoint.save_json("records", {"count": 1})
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(SundogError, match=r"o\.sundog\.partial: cannot be written \(no space\)"):
        checkpoint.save_json("records", {"count": 2})
    with pytest.raises(SundogError, match="no space"):
        checkpoint.save_tensors("records", {"x": np.zeros(3)})
    assert checkpoint.load_json("records") == {"count": 1}
    assert sorted(path.name for path in checkpoint.folder.iterdir()) == ["fit.json", "records.json"]
    checkpoint.release()


_HOLD = """
import sys
from pathlib import Path
from sundog.privacy.checkpoint import Checkpoint
checkpoint = Checkpoint.begin(Path(sys.argv[1]), {})
print("held", flush=True)
sys.stdin.read()  # until it is killed
"""


def test_another_process_is_kept_out_until_the_first_one_ends(tmp_path: Path) -> None:
    out = tmp_path / "o.sundog"
    command, pipe = [sys.executable, "-c", _HOLD, str(out)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            with pytest.raises(SundogError, match="another fit is using this folder"):
                Checkpoint.resume(out, {})
        finally:
            process.kill()
    Checkpoint.resume(out, {}).remove()  # a process that was killed holds nothing
    assert list(tmp_path.iterdir()) == []
