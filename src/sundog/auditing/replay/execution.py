"""One fit as an audit sees it: its transcript, its messages, and everything that it leaves behind."""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from sundog.auditing.replay.loss_randomness import LossRandomness
from sundog.data.schema import Schema
from sundog.evaluation.inputs import EvaluationRequest, read_inputs
from sundog.evaluation.publication import Publication
from sundog.fit.synthesizer import Synthesizer
from sundog.models.protocol import State
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.privacy.transcript import ReplayDivergenceError, Transcript
from sundog.release.release import Release
from sundog.training import pacing, progress_messages

Files = tuple[tuple[str, int], ...]  # the names and sizes of files

_TIME_LEFT = re.compile(r", \d+ (s|min|h) left")
_ENDLESS = 1e12  # seconds


@dataclass(frozen=True, eq=False)
class Execution:
    """What one run did.

    Args:
        transcript: of its charges and draws; what is kept beside each are the files of the checkpoint.
        error: the type and the message of the error that ended it; None if it ended well.
        divergence: how it drew what the recorded run did not; None if it did not.
        messages: of progress, with the part that is done.
        warnings: texts of warnings and of log records.
        outputs: everything that it returned or wrote, by name.
    """

    transcript: Transcript
    error: str | None
    divergence: str | None
    messages: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...]
    outputs: Mapping[str, Any]


class Subject(Protocol):
    """What is replayed: a run on a source, with the noise that it is given."""

    @property
    def schema(self) -> Schema:
        """The schema of the records."""

    @property
    def seed(self) -> int:
        """The seed of the test noise."""

    def run(self, data: Any, noise: NoiseSource, transcript: Transcript) -> Execution:
        """Run it with a source that writes the transcript."""


@dataclass(frozen=True)
class FitSettings:
    """The settings of the fit that is replayed; all are those of `Synthesizer`.

    Args:
        schema: of the records.
        model: `auto` or the name of a model.
        epsilon: of the fit.
        delta: of the fit.
        clusters: how many components.
        public: public records.
        settings: of the model.
        seed: of initial weights and of the test noise.
    """

    schema: Schema
    model: str = "auto"
    epsilon: float = 1.0
    delta: float | None = None
    clusters: int = 1
    public: Any = None
    settings: Mapping[str, Any] | None = None
    seed: int = 0

    def run(self, data: Any, noise: NoiseSource, transcript: Transcript) -> Execution:
        """Run the fit with a source that writes the transcript, to a file in a folder that is removed afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "fit.sundog"
            transcript.look = lambda: _list_files(Checkpoint.locate_folder(out))

            def fit(progress: Callable[[str, float], None]) -> dict[str, Any]:
                synth = Synthesizer(
                    self.model,
                    self.epsilon,
                    self.delta,
                    self.clusters,
                    self.public,
                    seed=self.seed,
                    settings=self.settings,
                    noise=noise,
                )
                synth.fit(data, self.schema, out=out, progress=progress)
                # not their sizes: the release has the time in it, and is compressed; its content is compared in full
                return {**list_outputs(synth), "files": tuple(name for name, _ in _list_files(out.parent))}

            return watch(fit, transcript)


@dataclass(frozen=True)
class PublicationSettings:
    """Figures about a release that are published: measured on real records, for a budget.

    Args:
        release: of the real records.
        epsilon: what the figures cost.
        seed: of the test noise.
    """

    release: Release
    epsilon: float
    seed: int = 0

    @property
    def schema(self) -> Schema:
        """The schema of the release."""
        return self.release.schema

    def run(self, data: Any, noise: NoiseSource, transcript: Transcript) -> Execution:
        """Measure the figures; the plan is that for private noise, and is then paid by a ledger with test noise."""

        def publish(progress: Callable[[str, float], None]) -> dict[str, Any]:
            delta = self.release.certificate.delta
            planned = Publication.plan(
                self.release, (), epsilon=self.epsilon, ledger=Ledger(epsilon=self.epsilon, delta=delta)
            )
            planned = replace(planned, run=Ledger(epsilon=self.epsilon, delta=delta, noise=noise))
            request = EvaluationRequest(self.release, data, seed=self.seed, progress=progress)
            inputs = read_inputs(request, whole_holdout=True)
            found = planned.measure(inputs.real, inputs.comparison.synthetic, {}, 0)
            return {name: repr(each) for name, each in found.items()}

        return watch(publish, transcript)


def watch(run: Callable[[Callable[[str, float], None]], dict[str, Any]], transcript: Transcript) -> Execution:
    """Run a function that is given a progress callback, and return what could be seen of it.

    Args:
        run: returns its outputs by name.
        transcript: is written by its noise source.
    """
    messages: list[tuple[str, float]] = []
    error, divergence, outputs = None, None, {}

    def progress(stage: str, done: float) -> None:
        messages.append((_TIME_LEFT.sub("", stage), done))

    with ExitStack() as stack:
        stack.enter_context(_use_steady_pace())
        stack.enter_context(LossRandomness(transcript))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        logged = stack.enter_context(_keep_log())
        warnings.simplefilter("always")
        try:
            outputs = run(progress)
        except ReplayDivergenceError as difference:
            divergence = str(difference)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
    texts = tuple(f"{each.category.__name__}: {each.message}" for each in caught) + tuple(logged)
    return Execution(transcript, error, divergence, tuple(messages), texts, outputs)


def list_outputs(synth: Synthesizer) -> dict[str, Any]:
    """Return everything in a release and in what stays with the curator, by name; without the time."""
    release, private = synth.release_, synth.private_
    manifest = {name: value for name, value in release.document.manifest.items() if name != "created"}
    found = dict(_flatten("release", manifest))
    found |= _list_state("weights", release.model.state())
    found["certificate text"], found["schema"] = str(release.certificate), release.schema
    return found if private is None else found | _list_state("critic", private)


def _list_state(name: str, state: State) -> dict[str, Any]:
    tensors = {
        f"{name}.{key}": (str(array.dtype), array.shape, array.tobytes()) for key, array in state.tensors.items()
    }
    return {**tensors, **dict(_flatten(f"{name} config", state.config))}


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of JSON values, with their paths."""
    if isinstance(value, Mapping):
        yield f"{name} keys", tuple(value)
        for key, each in value.items():
            yield from _flatten(f"{name}.{key}", each)
    elif isinstance(value, list | tuple):
        yield f"{name} length", len(value)
        for place, each in enumerate(value):
            yield from _flatten(f"{name}[{place}]", each)
    else:
        yield name, value


def _list_files(folder: Path) -> Files:
    if not folder.is_dir():
        return ()
    return tuple(sorted((path.name, path.stat().st_size) for path in folder.iterdir() if path.is_file()))


@contextmanager
def _use_steady_pace() -> Iterator[None]:
    """Let the length of blocks of steps, the number of threads and messages depend on no clock."""
    before = pacing.BLOCK_SECONDS, progress_messages._INTERVAL, torch.get_num_threads()
    pacing.BLOCK_SECONDS, progress_messages._INTERVAL = _ENDLESS, 0.0  # blocks grow as fast as they may
    torch.set_num_threads(1)
    try:
        yield
    finally:
        pacing.BLOCK_SECONDS, progress_messages._INTERVAL = before[:2]
        torch.set_num_threads(before[2])


@contextmanager
def _keep_log() -> Iterator[list[str]]:
    """Keep what the package logs."""
    kept: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(f"{record.levelname}: {record.getMessage()}")

    logger, handler = logging.getLogger("sundog"), Keeper()
    logger.addHandler(handler)
    try:
        yield kept
    finally:
        logger.removeHandler(handler)
