"""Doubles the work of every command that has a size, and tells how its cost grows.

usage: growth.py [--case NAME]... [--scale X] [--rounds N] [--stores DIR] [--write] [--name NAME]

Each case runs a command on inputs of a size n, 2n and 4n, the three in random order within each
round. What a command costs at every size is left out by differences: the exponent of a round is the
binary logarithm of (cost of 4n - cost of 2n) / (cost of 2n - cost of n), 1 where the cost grows in
proportion, 2 where it grows with the square. Costs are CPU time and peak memory of the process.
Prints the median of the exponents with its interval, and the cost of one unit of size. Where 4n
takes less than a quarter more than n, there is no growth to tell, and no exponent. --scale
multiplies the sizes. --stores keeps the inputs, and uses those that an earlier execution left
there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import _paired

N_LOG_N = 1.5
"""Exponent from which on growth is not n log n: that has 1.1 to 1.2 at these sizes, n^2 has 2."""
LEAST_GROWTH = 1.25
"""Of the cost of 4n over that of n: below it, noise would decide the exponent."""
TIMES = (1, 2, 4)


@dataclass(frozen=True)
class Case:
    """A command and an input with a size.

    words: {input} is the folder that `make` filled, {scratch} an empty one, {first} and {last} are
    runs. unit: of what there are `size` at scale 1 and factor 1. codes: exit codes of success.
    """

    unit: str
    size: int
    make: Callable[[Path, int], None]
    words: tuple[str, ...]
    without_summaries: bool = False
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Growth:
    """How the costs of a case grow. exponents: of rounds; None where most have none.

    per_unit: the cost of one more unit of size between n and 4n.
    """

    costs: Mapping[int, Sequence[float]]
    exponents: Sequence[float] | None
    per_unit: float

    @property
    def exponent(self) -> float | None:
        """Returns the median exponent."""
        return None if self.exponents is None else statistics.median(self.exponents)


def make_run(store: Path, trials: int, targets: int = 1, runs: int = 1) -> None:
    """Makes finished runs of `null` with so many trials for each target."""
    import random

    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.core.model import Sample, TrialKey
    from nephoscope.measure import plans
    from nephoscope.store import Store

    known = catalog.load()
    spec, draw = known.benchmark("null"), random.Random(runs + trials)
    plan = plans.single("null", {}, budget_s=None)
    names = [f"host{number}" for number in range(targets)]
    cpuid = {"brand": "Model 1", "family": 6, "model": 85, "stepping": 7}
    machine = {"identity": {"machine_id_hash": f"{1:064x}"}}
    fingerprint = {**machine, "cpu": {"by_cpuid": cpuid, "agree": True}}
    values = {
        "targets": [{"name": name, "kind": "local"} for name in names],
        "fingerprints": dict.fromkeys(names, fingerprint),
    }
    (setting,) = plans.expand(plan, known)
    for number in range(runs):
        run = Store(store).create(plan, 7, catalog=known, settings=[setting])
        run.update(**values, started_at=1.78e9 + 3600 * number)
        stored = []
        for position in range(trials * targets):
            round_number, target = position // targets + 1, names[position % targets]
            record = valid_trial(setting, round_number, position, 1.78e9 + position)
            record = _with_key(record, TrialKey(round_number, setting.index, target))
            samples = [Sample("null_ns", 100 + draw.gauss(0, 1)) for _ in range(6)]
            latencies = {round(draw.lognormvariate(9, 0.3)) for _ in range(6)}
            samples += [Sample("null_latency_ns", float(one), 40) for one in latencies]
            stored.append((record, samples, spec, ()))
        run.store_all(stored)
        run.finish("finished")


def _with_key(record: Any, key: Any) -> Any:
    from dataclasses import replace

    return replace(record, key=key)


def make_two_runs(store: Path, trials: int) -> None:
    make_run(store, trials, runs=2)


def make_targets(store: Path, targets: int) -> None:
    make_run(store, 10, targets)


def make_runs(store: Path, runs: int) -> None:
    make_run(store, 10, runs=runs)


def make_samples(store: Path, samples: int) -> None:
    """Makes a run of 20 trials, each with so many latencies that nobody counted in buckets."""
    import numpy as np
    import pyarrow as pa
    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.store import Store, merging, trialfile
    from nephoscope.store.batch import Batch

    known = catalog.load()
    metric = known.benchmark("null").metric("null_latency_ns")
    plan = plans.single("null", {}, budget_s=None)
    (setting,) = plans.expand(plan, known)
    run = Store(store).create(plan, 7, catalog=known, settings=[setting])
    rows, rng = samples // 20, np.random.default_rng(samples)
    records = [valid_trial(setting, position + 1, position, 1.78e9) for position in range(20)]

    def batches() -> Iterator[Batch]:
        for record in records:
            texts = {
                "run": run.id,
                "trial": record.key.name,
                "target": "local",
                "benchmark": "null",
                "metric": metric.id,
                "unit": metric.unit,
                "better": metric.better.value,
                "factors": "{}",
            }
            columns = {name: [text] * rows for name, text in texts.items()} | {
                "round": np.full(rows, record.key.round),
                "value": np.round(rng.lognormal(11, 0.5, rows)),
                "count": np.ones(rows, dtype=np.int64),
                "at_ns": np.arange(rows) * 1000,
            }
            yield Batch([(record, rows)], pa.table(columns, schema=trialfile.SCHEMA))

    run.update(**merging.merge(run, batches(), [record.key.name for record in records]))
    run.finish("finished")


def make_figures(folder: Path, figures: int, mistakes: bool = False) -> None:
    """Writes a file of PerfKit Benchmarker with so many lines, or with so many broken ones."""
    folder.mkdir(parents=True)
    line = {"test": "t", "unit": "s", "timestamp": 1, "labels": ""}
    lines = [
        {**line, "metric": f"m{number % 50}", "value": number + 1.5} for number in range(figures)
    ]
    if mistakes:
        lines += [{**line, "metric": "m0", "value": None} for _ in range(figures)]
    text = "".join(json.dumps({**own, "sample_uri": f"u{n}"}) + "\n" for n, own in enumerate(lines))
    (folder / "samples.json").write_text(text)


def make_mistakes(folder: Path, mistakes: int) -> None:
    make_figures(folder, mistakes, mistakes=True)


def make_series(folder: Path, files: int) -> None:
    """Writes exports of hyperfine."""
    folder.mkdir(parents=True)
    for number in range(files):
        times = [1 + 0.001 * (number * k % 17) + 1e-6 * number for k in range(1, 11)]
        results = {"results": [{"command": "make", "times": times}]}
        (folder / f"{number:05}.json").write_text(json.dumps(results))


def make_alternatives(folder: Path, alternatives: int) -> None:
    """Writes a CSV file of so many alternatives with ten values each."""
    folder.mkdir(parents=True)
    lines = ["alternative,metric,value"]
    lines += [
        f"host{number:04},m,{100 + number % 40 + 0.1 * (number * k % 13)}"
        for number in range(alternatives)
        for k in range(1, 11)
    ]
    (folder / "values.csv").write_text("\n".join(lines) + "\n")


def make_events(folder: Path, events: int) -> None:
    """Writes a CSV file of probes of a service, one a minute."""
    folder.mkdir(parents=True)
    lines = ["time,ok", *(f"{1_750_000_000 + 60 * n},{int(n % 997 != 0)}" for n in range(events))]
    (folder / "events.csv").write_text("\n".join(lines) + "\n")


def make_plan(folder: Path, trials: int, hosts: int = 0) -> None:
    """Writes a plan of `null`: so many trials on this machine, or five on each host of a lab."""
    folder.mkdir(parents=True)
    names = [f"h{number}" for number in range(hosts)]
    targets = [{"name": name, "kind": "lab", "host": name} for name in names]
    plan = {
        "name": "growth",
        "question": "What does a trial cost?",
        **({"lab": "lab.yaml"} if hosts else {}),
        "targets": targets or [{"name": "local", "kind": "local"}],
        "benchmarks": [{"benchmark": "null"}],
        "repeat": {"min": trials, "max": trials},
        "warmup": 0,
    }
    (folder / "plan.yaml").write_text(json.dumps(plan))
    (folder / "lab.yaml").write_text(json.dumps({"name": "growth", "hosts": dict.fromkeys(names)}))


def make_lab_plan(folder: Path, hosts: int) -> None:
    make_plan(folder, 5, hosts)


STORE = ("--store", "{input}")
RUN = ("run", "{input}/plan.yaml", "--fresh", "--json", "--store", "{scratch}/s")
CASES = {
    "run, trials": Case("trial", 250, make_plan, RUN),
    "run, lab hosts": Case("host", 12, make_lab_plan, RUN),
    "show, trials": Case("trial", 4000, make_run, ("show", "latest", "--json", *STORE)),
    "show, targets": Case("target", 100, make_targets, ("show", "latest", "--json", *STORE)),
    "compare, trials": Case(
        "trial", 4000, make_two_runs, ("compare", "{first}", "{last}", "--json", *STORE)
    ),
    "export, samples": Case(
        "sample", 1_000_000, make_samples, ("export", "latest", "-o", "{scratch}/x.csv", *STORE)
    ),
    "history without summaries, samples": Case(
        "sample", 2_000_000, make_samples, ("history", "null_latency_p97_ns", *STORE), True
    ),
    "history without summaries, runs": Case(
        "run", 100, make_runs, ("history", "null_latency_p97_ns", *STORE), True
    ),
    "history, runs": Case("run", 200, make_runs, ("history", "null_latency_p97_ns", *STORE)),
    "runs, runs": Case("run", 400, make_runs, ("runs", "--json", *STORE)),
    "verify, runs": Case("run", 200, make_runs, ("verify", *STORE)),
    "census, runs": Case("run", 200, make_runs, ("census", "--json", *STORE)),
    "import, figures": Case(
        "figure", 8000, make_figures, ("import", "{input}/samples.json", "--store", "{scratch}/s")
    ),
    "import, mistakes": Case(
        "mistake", 4000, make_mistakes, ("import", "{input}/samples.json", "--store", "{scratch}/s")
    ),
    "import --series, files": Case(
        "file", 100, make_series, ("import", "--series", "{input}", "--store", "{scratch}/s")
    ),
    "rank, alternatives": Case(
        "alternative", 400, make_alternatives, ("rank", "{input}/values.csv", "--json")
    ),
    "sla verdict, events": Case(
        "event",
        200_000,
        make_events,
        ("sla", "verdict", "ec2-region", "{input}/events.csv", "--json"),
        codes=(0, 1),
    ),
}
"""Command and what grows -> its case."""


@dataclass(frozen=True)
class Cost:
    """Of one execution."""

    cpu_s: float
    peak_mib: float


QUANTITIES = ("cpu_s", "peak_mib")


def execute(case: Case, folder: Path) -> Cost:
    """Runs the command of a case once."""
    if case.without_summaries:
        for derived in folder.rglob("summary.json"):
            derived.unlink()
    runs = sorted(path.name for path in folder.glob("runs/2*"))
    names = {"first": runs[0], "last": runs[-1]} if runs else {}
    with tempfile.TemporaryDirectory(prefix="nephoscope-growth-") as scratch:
        words = [word.format(input=folder, scratch=scratch, **names) for word in case.words]
        files = sorted(map(str, folder.glob("*.json"))) if str(folder) in words else []
        words = [
            own for word in words for own in (files if word == str(folder) and files else [word])
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "nephoscope", *words],
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        errors = process.stderr.read().decode() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in case.codes:
        raise SystemExit(f"{' '.join(words)}: {errors.strip()}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _environment() -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPATH": str(_paired.ROOT / "src"), "NO_COLOR": "1"}


def growth_of(sizes: Sequence[int], costs: Mapping[int, Sequence[float]]) -> Growth:
    """Returns the growth of a cost. costs: of each size, shape (rounds,)."""
    small, middle, large = (costs[size] for size in sizes)
    per_unit = statistics.median(
        (c - a) / (sizes[2] - sizes[0]) for a, c in zip(small, large, strict=True)
    )
    if statistics.median(large) < LEAST_GROWTH * statistics.median(small):
        return Growth(costs, None, max(0.0, per_unit))
    # A cost that does not grow from n to 2n, or not from there on, has no logarithm in that round.
    exponents = [
        math.log2((c - b) / (b - a))
        for a, b, c in zip(small, middle, large, strict=True)
        if c > b > a
    ]
    if 2 * len(exponents) <= len(small):
        return Growth(costs, None, max(0.0, per_unit))
    return Growth(costs, exponents, per_unit)


def measure(name: str, folder: Path, scale: float, rounds: int) -> dict[str, Growth]:
    """Returns how CPU time and memory of a case grow; makes those inputs that are not there."""
    case = CASES[name]
    sizes = [max(2, round(case.size * scale)) * factor for factor in TIMES]
    inputs = {}
    for size in sizes:
        inputs[size] = folder / f"{case.make.__name__}-{size}"
        if not inputs[size].exists():
            aside = inputs[size].with_suffix(".part")
            shutil.rmtree(aside, ignore_errors=True)
            # Not in this process: the memory of one that starts another counts as that of both.
            words = ["--make", case.make.__name__, str(aside), str(size)]
            subprocess.run([sys.executable, __file__, *words], env=_environment(), check=True)
            aside.rename(inputs[size])
            execute(case, inputs[size])  # what is written at the first look is there in all rounds
    costs = _paired.alternate(
        {str(size): lambda size=size: execute(case, inputs[size]) for size in sizes},  # type: ignore[misc]
        rounds,
        1,
    )
    return {
        quantity: growth_of(
            sizes, {size: [getattr(cost, quantity) for cost in costs[str(size)]] for size in sizes}
        )
        for quantity in QUANTITIES
    }


def main() -> int:
    """Measures and prints; returns 1 where a command grows faster than n log n."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--stores", type=Path, help="folder that keeps the inputs")
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    parser.add_argument("--name", default="growth", help="of that file; the page has the default")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        name, folder, size = options.make
        globals()[name](Path(folder), int(size))
        return 0
    facts = _paired.machine()
    revision = _paired.version("git", "-C", str(_paired.ROOT), "describe", "--always", "--dirty")
    rows, too_fast = [], []
    with tempfile.TemporaryDirectory(prefix="nephoscope-growth-") as temporary:
        folder = options.stores or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.case or CASES:
            grown = measure(name, folder, options.scale, options.rounds)
            rows.append({"case": name, "unit": CASES[name].unit, **_values(grown)})
            print(_line(name, grown), flush=True)
            too_fast += [name for one in grown.values() if (one.exponent or 0.0) > N_LOG_N]
            if options.write:
                # After each case: the first ones are not lost with the last.
                record = {"machine": facts, "rounds": options.rounds, "cases": rows}
                _paired.write_result(options.name, {**record, "version": revision})
    for name in dict.fromkeys(too_fast):
        print(f"{name} grows faster than n log n.")
    return 1 if too_fast else 0


def _values(grown: Mapping[str, Growth]) -> dict[str, Any]:
    return {quantity: asdict(one) for quantity, one in grown.items()}


def _line(name: str, grown: Mapping[str, Growth]) -> str:
    parts = []
    for quantity, one in grown.items():
        medians = ", ".join(f"{statistics.median(own):.3g}" for own in one.costs.values())
        if one.exponents is None:
            parts.append(f"{quantity} {medians}: no growth")
            continue
        ends = f"[{min(one.exponents):.2f}, {max(one.exponents):.2f}]"
        parts.append(f"{quantity} {medians}: exponent {one.exponent:.2f} {ends}")
    sizes = ", ".join(f"{size:,}" for size in next(iter(grown.values())).costs)
    return f"{name} ({sizes}): {'; '.join(parts)}; n = {len(next(iter(one.costs.values())))}"


if __name__ == "__main__":
    sys.exit(main())
