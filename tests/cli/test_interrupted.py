"""Ctrl-C while the C++ compiler runs, and output to a closed pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.test_killed import PROGRAM, prepare

# Compiles even if that takes longer than it saves.
_COMPILING = """
import sys
from sundog.training import trainer
from sundog.cli.main import main
trainer._COMPILE_SECONDS = -1.0
main(sys.argv[1:])
"""
_FIT = (
    "fit",
    "data.csv",
    "--schema",
    "s.yaml",
    "--epsilon",
    "2",
    "--model",
    "rbm",
    "--set",
    "epochs=5",
    "-o",
    "o.sundog",
)


def _list_compilers(group: int) -> list[int]:
    """Return the C++ compilers that run in a process group, without those that have ended and wait to be reaped."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
            state, _, its_group, *_ = rest.split()
        except (OSError, ValueError):
            continue
        if name.endswith(("(cc1plus", "(g++", "(c++")) and state not in "ZX" and int(its_group) == group:
            found.append(int(folder.name))
    return found


def _list_left_running(group: int, *, seconds: float = 60) -> list[int]:
    """Return the compilers that still run after some seconds: those that got the signal need a moment to end."""
    deadline = time.monotonic() + seconds
    while (found := _list_compilers(group)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see a compiler run")
def test_ctrl_c_while_the_compiler_runs_prints_one_line_and_the_fit_can_be_resumed(tmp_path: Path) -> None:
    from sundog.training.speed.compile import has_compiler

    if not has_compiler():
        pytest.skip("needs a C++ compiler")
    folder, shared = prepare(tmp_path / "here"), tmp_path / "cache"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(shared),
        "TMPDIR": str(temporary),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", _COMPILING, *_FIT]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # its own process group, all of which gets the signal, as from a terminal
    )
    try:
        while not _list_compilers(process.pid):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=900)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, ""), err
    assert [line for line in err.splitlines() if "sundog: " in line] == [err.splitlines()[-1]]
    assert err.splitlines()[-1].startswith("sundog: interrupted")
    assert "Traceback" not in err
    assert "rror" not in err
    assert len(err.splitlines()) < 15, err  # a line for each earlier stage
    assert _list_left_running(process.pid) == []
    assert list(temporary.iterdir()) == []  # no incomplete compilation
    assert list(shared.rglob("*.so")) == []
    done = subprocess.run(
        [str(PROGRAM), *_FIT, "--resume"], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


COMMANDS = {
    "version": ("--version",),
    "help": ("--help",),
    "certificate": ("certificate", "people.sundog", "--json"),
    "sample": ("sample", "people.sundog", "-n", "10", "-o", "sampled.csv"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_is_not_an_error(command: str, here: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        arguments = [str(PROGRAM), *COMMANDS[command]]
        done = subprocess.run(arguments, stdout=writes, stderr=subprocess.PIPE, text=True, cwd=here)
    finally:
        os.close(writes)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
