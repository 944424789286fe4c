"""Small files that ask for much are answered in little time and memory, by a process of their own."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.release.small_files import FILES

# What importing takes is counted, too, and so is a machine with much else to do; the files used to take a minute or
# more, or 8 GB, each.
SECONDS, BYTES = 12, 200 * 2**20
IMPORTS = "import re, sys; from pathlib import Path; from sundog.cli.main import _run; "
VERIFY = "code = _run(['verify', sys.argv[1]]); "
# of this program alone: `ru_maxrss` would count what the tests held when they started it
USAGE = r"print(code, re.search(r'VmHWM:\s+(\d+)', Path('/proc/self/status').read_text())[1], file=sys.stderr)"


def limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_costs_little(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.sundog"
    FILES[name](path)
    assert path.stat().st_size < 2**20
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + VERIFY + USAGE, str(path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_resources,
    )
    assert done.returncode == 0, done.stderr  # not killed by a limit
    *said, usage = done.stderr.splitlines()
    code, kilobytes = map(int, usage.split())
    assert code in (1, 2)
    assert len(said) == (code == 2)
    assert kilobytes * 1024 < BYTES
