"""A first fit with default settings: 5,000 records of Adult, from the start of the process to the file.

The model is that chosen by `auto`. It is fitted on an idle machine, and beside processes that keep every core busy. The
peer uses every core and always compiles its steps. Compiling and training are timed separately.

    python benchmarks/first_hour.py [--quick] [--json FILE]
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pandas as pd
from report import Row, parse_arguments, publish

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DEFAULTS, EVERY_CORE, COMPILED = "defaults", "every core", "every core, always compiled"

# The command `sundog fit`, with timers around compiling and training.
PROGRAM = """
import json, sys, time
kind, seconds, *arguments = sys.argv[1], {"compiling": 0.0, "training": 0.0}, *sys.argv[2:]
import torch
from sundog.training import step, trainer
if kind != "defaults":
    torch.set_num_threads = lambda count: None
if "compiled" in kind:
    trainer._COMPILING = -1.0

def timed(owner, method, name):
    plain = getattr(owner, method)
    def clocked(*given, **named):
        started = time.perf_counter()
        try:
            return plain(*given, **named)
        finally:
            seconds[name] += time.perf_counter() - started
    setattr(owner, method, clocked)

timed(step.PrivateStep, "compile", "compiling")
timed(trainer.Trainer, "run", "training")
from sundog.cli.main import _run
code = _run(["fit", *arguments])
seconds["training"] -= seconds["compiling"]
print(json.dumps(seconds))
sys.exit(code)
"""


def time_fit(folder: Path, kind: str, *, quick: bool) -> dict[str, float]:
    """Return the seconds of one fit: in total, compiling, and training."""
    out = folder / "out.sundog"
    out.unlink(missing_ok=True)
    options = ["--model", "rbm", "--set", "epochs=1"] if quick else []
    command = [sys.executable, "-c", PROGRAM, kind, "data.csv", "--schema", str(SCHEMA), "--epsilon", "1"]
    started = time.perf_counter()
    done = subprocess.run([*command, *options, "-o", str(out)], cwd=folder, check=True, capture_output=True, text=True)
    total = time.perf_counter() - started
    return {"total": total, **json.loads(done.stdout.splitlines()[-1])}


@contextlib.contextmanager
def keep_busy() -> Iterator[None]:
    """Keep every core busy with another process."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    options = parse_arguments(__doc__ or "")
    source = Path(str(resources.files("sundog.demo") / "adult.csv.gz"))
    peer = EVERY_CORE if options.quick else COMPILED
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = pd.read_csv(source, dtype=str, keep_default_na=False).head(500 if options.quick else 5000)
        records.to_csv(folder / "data.csv", index=False)
        alone = time_fit(folder, DEFAULTS, quick=options.quick)
        other = time_fit(folder, peer, quick=options.quick)
        with keep_busy():
            beside = time_fit(folder, DEFAULTS, quick=options.quick)
    count = f"fit of {len(records):,} records"
    publish(
        [
            Row(count, alone["total"], "s", peer, other["total"]),
            Row(f"{count}, all cores busy", beside["total"], "s", "the same alone", alone["total"]),
            Row("compiling", alone["compiling"], "s", "training", alone["training"]),
            Row(f"compiling ({peer})", other["compiling"], "s", "its training", other["training"]),
        ],
        options,
    )


if __name__ == "__main__":
    main()
