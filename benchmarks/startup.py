"""Start-up time: importing sundog, `sundog --help`, and verifying a release of a neural network.

In CPU seconds, which depend less on other load than wall time.

python benchmarks/startup.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable

from report import Row, parse_arguments, publish, time_interleaved

FIT = """
import numpy as np, sundog
rng = np.random.default_rng(0)
data = {f"c{i}": rng.integers(0, 5, 1000) for i in range(12)}
schema = sundog.Schema.from_dict({"columns": {name: {"type": "integer", "min": 0, "max": 4} for name in data}})
sundog.Synthesizer("rbm", epsilon=2.0, settings={"epochs": 1}).fit(data, schema).release_.save("a.sundog")
"""


def run_python(code: str, folder: str | None = None) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def run_command(folder: str, *words: str) -> Callable[[], None]:
    return lambda: run_python(f"from sundog.cli.main import _run; assert _run({list(words)!r}) in (0, 3)", folder)


def measure_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = parse_arguments(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        run_python(FIT, folder)
        run_python("from sundog.cli.main import _run; _run(['key', 'k'])", folder)
        measure(options, folder)


def measure(options: argparse.Namespace, folder: str) -> None:
    seconds = time_interleaved(
        {
            "sundog verify (rbm)": run_command(folder, "verify", "a.sundog"),
            "sundog certificate (rbm)": run_command(folder, "certificate", "a.sundog"),
            "sundog sign (rbm)": run_command(folder, "sign", "a.sundog", "--key", "k.key"),
            "import sundog": lambda: run_python("import sundog"),
            "sundog --help": lambda: run_python("from sundog.cli.main import _run; _run(['--help'])"),
            "sundog plan": lambda: run_python(
                "from sundog.cli.main import _run; _run('plan --records 60000 --epsilon 4 --delta 1e-5 --batch 64 "
                "--epochs 20'.split())"
            ),
            "import pandas": lambda: run_python("import pandas"),
        },
        repeats=1 if options.quick else 7,
        clock=measure_cpu_seconds,
    )
    peer = seconds.pop("import pandas")
    publish([Row(name, value, "s", "import pandas", peer) for name, value in seconds.items()], options)


if __name__ == "__main__":
    main()
