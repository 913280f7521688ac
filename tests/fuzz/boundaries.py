"""Everything that Nephoscope reads from outside, as functions of bytes that a test can mutate.

A boundary either reads a case or refuses it in one sentence; anything else is a finding.
"""

from __future__ import annotations

import functools
import json
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.store import factory as store_factory

from nephoscope import capabilities, catalog, plans, programs
from nephoscope.census import files as census_files
from nephoscope.commands.output import one_line
from nephoscope.comparison import number_files
from nephoscope.errors import NephoscopeError
from nephoscope.lab import files as topology_files
from nephoscope.plans.files import load as plan_files
from nephoscope.store import Store
from nephoscope.store.export import export
from nephoscope.store.pkb import import_file
from nephoscope.targets.probe.output import parse_output

from .mutation import mutated, mutated_bytes

ROOT = Path(__file__).parents[2]
CASE_S = 5.0
"""A case that takes longer hangs."""
MEMORY_BYTES = 500 << 20
SENTENCE_MAX = 1200
_PROGRAM_EXITS = {0, 2, 3, 4, 124}
_DEADLINE_S = "2"


@dataclass(frozen=True)
class Boundary:
    """seeds: valid inputs. read: reads a case; raises what the product raises. structured: turns
    an input into the JSON value that is mutated, and back; None where only bytes are."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    structured: tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None = None

    def case(self, draw: random.Random) -> bytes:
        """Returns a drawn mutation of a drawn valid input."""
        seed = draw.choice(self.seeds())
        if self.structured is None or draw.random() < 0.25:
            return mutated_bytes(seed, draw)
        parse, write = self.structured
        return write(mutated(parse(seed), draw))

    def attack(self, case: bytes) -> str | None:
        """Returns what is wrong with how a case was taken; None when it was read or refused."""
        began_s = time.monotonic()
        try:
            with _alarm(CASE_S):
                self.read(case)
        except NephoscopeError as error:
            if len(sentence := one_line(str(error))) > SENTENCE_MAX:
                return f"a sentence of {len(sentence)} characters"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{type(error).__name__}: {str(error)[:300]}"
        if time.monotonic() - began_s > CASE_S:
            return f"took {time.monotonic() - began_s:.1f} s"
        return None


class HangError(BaseException):
    """A case that does not end; no handler of the product may take it for its own."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise HangError(f"did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def _yaml_bytes(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True).encode(errors="replace")


YAML = (yaml.safe_load, _yaml_bytes)
JSON = (json.loads, _json_bytes)


def _lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines() if line]


def _json_lines(values: Any) -> bytes:
    listed = values if isinstance(values, list) else [values]
    return b"".join(_json_bytes(value) + b"\n" for value in listed)


JSON_LINES = (_lines, _json_lines)


@functools.cache
def _files(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for one in patterns for path in sorted(ROOT.glob(one)))


def _in_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def reading(case: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "case")
            file.write_bytes(case)
            return read(file)

    return reading


def _plan(case: bytes) -> object:
    plan = plan_files.from_text(_text(case), "plan.yaml", {}, catalog.load())
    return plans.expand(plan, catalog.load())


_OUTPUT = _json_lines(
    [
        {"sample": {"metric": "null_ns", "value": 100.0, "factors": {}}},
        {"sample": {"metric": "null_latency_ns", "value": 3, "count": 5, "at_ns": 7}},
        {"document": {"name": "d", "value": {"a": [1, 2]}}},
        {"done": {"samples": 3, "elapsed_ns": 5, "counters": {"steal_ratio": None}}},
    ]
)


def _probe_output(case: bytes) -> object:
    return parse_output(catalog.load().benchmark("null"), case, 0)


def _import(file: Path) -> object:
    return import_file(file, Store(file.parent / "store"))


@functools.cache
def _scenarios() -> tuple[bytes, ...]:
    done = subprocess.run([programs.find_simulator(), "scenarios"], capture_output=True, check=True)
    named = json.loads(done.stdout)
    return tuple(
        _json_bytes({"id": kind, "scenario": scenario})
        for kind, scenarios in named.items()
        for scenario in scenarios.values()
    )


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _program(words: Sequence[str]) -> None:
    """Runs one of our programs, which may refuse its input but neither die nor panic."""
    done = subprocess.run(
        words, capture_output=True, timeout=CASE_S, preexec_fn=_limited, check=False
    )
    if done.returncode not in _PROGRAM_EXITS or b"panicked" in done.stderr:
        said = done.stderr.decode(errors="replace")
        raise AssertionError(f"exit code {done.returncode}: {said[-300:]}")


def _simulator(case: bytes) -> object:
    try:
        values = json.loads(case)
        kind, scenario = str(values["id"]), json.dumps(values["scenario"])
    except (ValueError, KeyError, TypeError):
        kind, scenario = "sim.geo", _text(case)
    with tempfile.NamedTemporaryFile("w", errors="replace") as params:
        json.dump({"scenario": scenario}, params)
        params.flush()
        kind = kind.replace("\0", "").encode(errors="replace").decode()[:100]
        words = ["run", kind, "--params", f"@{params.name}", "--deadline", _DEADLINE_S]
        return _program([str(programs.find_simulator()), *words])


def _probe_params(case: bytes) -> object:
    with tempfile.NamedTemporaryFile() as params:
        params.write(case)
        params.flush()
        words = ["run", "null", "--params", f"@{params.name}", "--deadline", _DEADLINE_S]
        return _program([str(programs.find_probe()), *words])


@functools.cache
def _stored_run() -> tuple[bytes, bytes]:
    """Manifest and a trial file of a small run, as earlier versions stored them: no digests."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        manifest = json.loads((run.path / "manifest.json").read_bytes())
        del manifest["sha256"]
        return _json_bytes(manifest), (run.trials_path / f"{_TRIAL}.parquet").read_bytes()


def _analyse(manifest: bytes, trial: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder, "runs", _RUN, "trials")
        trials.mkdir(parents=True)
        (trials / f"{_TRIAL}.parquet").write_bytes(trial)
        (trials.parent / "manifest.json").write_bytes(manifest)
        run = Store(folder).open(_RUN)
        return capabilities.document(capabilities.build(run)), export([run], "csv")


_RUN, _TRIAL = "20261122-120000-x-0000", "r0001-s000-local"
_NUMBERS = b"1\n2.5\n3e2\n# a comment\n4\n"
_TOPOLOGY = b"""
version: 1
name: t
network: 10.1.0.0/16
hosts:
  a:
    cpu: {cap: 150%, weight: 300, cpus: [0, 1], reservation: {slice: 30ms, period: 40ms}}
    memory: 256MiB
    disk: {read: 20MiB/s, write: 10MB/s}
  b: {address: 10.1.0.9}
  c: {platform: qemu, vcpus: 2}
links:
  wan:
    between: [a, lan]
    rate: 47Mbit/s
    delay: 50ms
    jitter: 5ms
    loss: 2%
    up: {rate: 10Mbit/s, loss: 0}
"""
_CENSUS = b"instance_type,model,machines,zone\nm1.small,E5430,20,a\nm1.small,AMD,3,b\n"
_PARAMS = b'{"value": 3.5, "noise_ratio": 0.1, "samples": 4, "seed": 7, "wait_ns": 10}'

BOUNDARIES = (
    Boundary(
        "plan", lambda: _files("src/nephoscope/plans/builtin/*", "studies/*/plan*"), _plan, YAML
    ),
    Boundary(
        "topology",
        lambda: (_TOPOLOGY,),
        lambda case: topology_files.from_text(_text(case), "lab.yaml"),
        YAML,
    ),
    Boundary("probe output", lambda: (_OUTPUT,), _probe_output, JSON_LINES),
    Boundary("probe parameters", lambda: (_PARAMS,), _probe_params, JSON),
    Boundary("import", lambda: _files("tests/golden/pkb/*.json*"), _in_file(_import), JSON_LINES),
    Boundary("numbers", lambda: (_NUMBERS,), _in_file(number_files.read)),
    Boundary("census", lambda: (_CENSUS,), _in_file(census_files.read)),
    Boundary(
        "manifest",
        lambda: (_stored_run()[0],),
        lambda case: _analyse(case, _stored_run()[1]),
        JSON,
    ),
    Boundary(
        "trial file",
        lambda: (_stored_run()[1],),
        lambda case: _analyse(_stored_run()[0], case),
    ),
    Boundary("simulator", _scenarios, _simulator, JSON),
)
