"""The demo: from a private table to a signed release, and how tampering and overspending are refused."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.demo.digits import EPSILON, show_digits
from sundog.demo.example import SCHEMA, TABLE, copy_example_file
from sundog.demo.plots import draw_marginals
from sundog.errors import BudgetExceededError, ReleaseError
from sundog.evaluation.comparison import shuffle_columns
from sundog.evaluation.total_variation import compute_marginal_distance
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release
from sundog.release.signing import generate_key, load_private_key, load_public_key
from sundog.training.speed.threads import use_one_thread

Say = Callable[[str], None]

_PAIRS = (("relationship", "marital_status"), ("education", "occupation"), ("hours_per_week", "income"))


def run_walkthrough(folder: Path, *, epsilon: float, say: Say) -> None:
    """Run every step, print each with `say`, and write all files to `folder`."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    with use_one_thread():
        _show_census(folder, epsilon, say)
        say("\n7. Images: 1,497 handwritten digits. A mixture of ten Boltzmann machines, one for each of ten clusters")
        say(f"   that are found privately. These are few images, so ε = {EPSILON:g}, much more than for the census.\n")
        show_digits(folder, Schema.load(copy_example_file(folder / "digits.schema.yaml")), say=say)
    say(f"\nThis took {time.perf_counter() - started:.1f} s; all files are in {folder}/.")
    say("\nNow your own data:")
    say("  sundog schema YOUR.csv -o your.schema.yaml      # a draft: review it")
    say("  sundog fit YOUR.csv --schema your.schema.yaml --epsilon 1 -o your.sundog")
    say("  sundog sample your.sundog -n 1000 -o synthetic.csv")


def _show_census(folder: Path, epsilon: float, say: Say) -> None:
    """Run the steps on the census table."""
    data = copy_example_file(folder / TABLE)
    schema = Schema.load(copy_example_file(folder / SCHEMA))

    say("1. The private data: 10,000 records of the 1994 US census (UCI Adult). Only you may see it.\n")
    _show_rows(data, say)

    say(f"\n2. A model learns it with ε = {epsilon:g}, which is all that the ledger holds. For tables this is")
    say("   `marginals`: it counts, with noise, each column and the pairs of columns that matter most.\n")
    release, ledger = _fit(folder, data, schema, epsilon, say)

    say("\n3. The certificate, which travels with the release.\n")
    say(textwrap.indent(str(release.certificate).split("\n\nAssumed")[0], "   "))

    say("\n4. Anybody can draw any number of records.\n")
    release.write(folder / "synthetic.csv", 10_000, seed=7)
    _show_rows(folder / "synthetic.csv", say)

    say("\n5. How close is it? (Distance between real and synthetic marginals: 0 the same, 1 nothing in common.)\n")
    _compare_marginals(folder, data, schema, release, say)

    say("\n6. Sign it and verify it; then try to tamper with it and to overspend the budget.\n")
    _sign_and_attack(folder, data, schema, ledger, say)


def _show_rows(path: Path, say: Say) -> None:
    """Print the first rows and columns of a table."""
    say(textwrap.indent(pd.read_csv(path, keep_default_na=False).iloc[:4, :8].to_string(index=False), "   "))


def _fit(folder: Path, data: Path, schema: Schema, epsilon: float, say: Say) -> tuple[Release, Path]:
    """Fit a release with a new ledger, and return both."""
    ledger = folder / "adult.ledger"
    ledger.unlink(missing_ok=True)
    Ledger.create(ledger, epsilon=epsilon, delta=1e-5)
    started = time.perf_counter()
    synthesizer = Synthesizer(epsilon=epsilon, ledger=ledger)
    synthesizer.fit(data, schema, out=folder / "adult.sundog", overwrite=True)
    say(f"   {folder / 'adult.sundog'} written in {time.perf_counter() - started:.1f} s")
    return synthesizer.release_, ledger


def _compare_marginals(folder: Path, data: Path, schema: Schema, release: Release, say: Say) -> None:
    real, synthetic = (encode(read(file, schema), schema) for file in (data, folder / "synthetic.csv"))
    for name in schema.columns:
        distance = compute_marginal_distance(real, synthetic, name)
        say(f"   {name:<16} {distance:.3f}  {'▇' * round(distance * 400)}")
    picture = folder / "marginals.png"
    draw_marginals(
        real, synthetic, ["age", "education", "hours_per_week", "occupation"], picture, release.certificate.epsilon
    )
    say(f"   plotted in {picture}")

    say("\n   Distances of pairs of columns (in brackets, the distance of independent columns):\n")
    independent = shuffle_columns(real, np.random.default_rng(0))
    for pair in _PAIRS:
        ours, floor = (compute_marginal_distance(real, other, *pair) for other in (synthetic, independent))
        say(f"   {' × '.join(pair):<31} {ours:.3f}  ({floor:.3f})")
    pairs = list(combinations(schema.columns, 2))
    means = [
        sum(compute_marginal_distance(real, other, *pair) for pair in pairs) / len(pairs)
        for other in (synthetic, independent)
    ]
    say(f"   {f'all {len(pairs)} pairs, on average':<31} {means[0]:.3f}  ({means[1]:.3f})")


def _sign_and_attack(folder: Path, data: Path, schema: Schema, ledger: Path, say: Say) -> None:
    path, private, public = folder / "adult.sundog", folder / "curator.key", folder / "curator.pub"
    for key in (private, public):
        key.unlink(missing_ok=True)
    generate_key(private, public)
    Release.load(path).sign(load_private_key(private)).save(path)
    problems = Release.load(path).verify(load_public_key(public))
    say(f"   signed release        verify says: {problems or 'it holds'}")

    forged = folder / "forged.sundog"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    forged.write_bytes(content)
    try:
        say(f"   one bit flipped       verify says: {Release.load(forged).verify(load_public_key(public))}")
    except ReleaseError as error:
        say(f"   one bit flipped       {error}")
    forged.unlink()

    try:
        Synthesizer(model="independent", epsilon=0.5, ledger=ledger).fit(data, schema)
    except BudgetExceededError as error:
        say(f"   a second fit          {error}")
