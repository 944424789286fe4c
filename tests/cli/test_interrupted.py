"""Ctrl-C while the C++ compiler runs, and output that nobody reads any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.test_killed import PROGRAM, prepare

# Compiles whether it pays or not.
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
    """The C++ compilers that run in a process group; one that has ended and waits to be reaped does not run."""
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
    """The compilers that do not end by themselves; those that got a signal just now need a moment for it."""
    deadline = time.monotonic() + seconds
    while (found := _list_compilers(group)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see a compiler run")
def test_ctrl_c_while_the_compiler_runs_is_one_line_and_breaks_nothing(tmp_path: Path) -> None:
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
        start_new_session=True,  # a group of its own, all of which gets the signal, as from a terminal
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
    assert len(err.splitlines()) < 15, err  # a line for each stage before
    assert _list_left_running(process.pid) == []
    assert list(temporary.iterdir()) == []  # nothing half-compiled
    assert list(shared.rglob("*.so")) == []
    done = subprocess.run(
        [str(PROGRAM), *_FIT, "--resume"], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


COMMANDS = {
    "version": ("--version",),
    "help": ("--help",),
    "certificate": ("certificate", "people.sundog", "--json"),
    "verify": ("verify", "people.sundog"),
    "sample": ("sample", "people.sundog", "-n", "10", "-o", "sampled.csv"),
}


def _run_to_end(command: str, folder: Path, stdout: int) -> subprocess.CompletedProcess[str]:
    arguments = [str(PROGRAM), *COMMANDS[command]]
    return subprocess.run(arguments, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=folder)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_is_no_error(command: str, here: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = _run_to_end(command, here, writes)
    finally:
        os.close(writes)
    # `verify` still answers by its code, which is that of a release that nobody has signed.
    expected = _run_to_end(command, here, subprocess.DEVNULL).returncode if command == "verify" else 0
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
