"""Times `census`, `export`, `import` and `runs` on large stores, beside an earlier version.

usage: large_stores.py --baseline DIR [--python FILE] [--case NAME]... [--scale X] [--rounds N]
                       [--limit S] [--stores DIR] [--write]

DIR is a work tree of the earlier version (`git worktree add DIR COMMIT`), FILE the Python that has
its libraries; without it, both versions run with this Python. Each version makes its own stores, in
its own format. The command of a case runs by both versions in random order within each round.
Prints wall time, CPU time and peak memory of the process, and the median of the paired ratios
(earlier / this) with its interval; its confidence is 75 % with three rounds, and 95 % or more from
six on. In the first round this version reads a store without an index and without summaries, which
it then writes: that round is printed by itself, too. A command that takes longer than the limit of
its case is ended and counts with the limit, and its ratios are marked as lower bounds. --scale
multiplies the sizes of the cases. --stores keeps the stores in a folder, and uses those that an
earlier execution left there; with --rounds 0 they are made and nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import _paired

VERSIONS = ("earlier", "this")
COUNTERS = {"steal_ratio": 0.0, "load_1m": 0.25}


@dataclass(frozen=True)
class Case:
    """A store with so much in it, and the command that is timed.

    size: at scale 1. limit_s: after which the command is ended.
    """

    size: int
    make: Callable[[Path, int], None]
    words: tuple[str, ...]
    limit_s: float = 60.0


@dataclass(frozen=True)
class Cost:
    """Of one execution. is_cut: it reached the limit."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    is_cut: bool


def make_trials(store: Path, trials: int) -> None:
    """Makes a finished run of so many trials of `null` with seven samples each."""
    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.core.model import Sample
    from nephoscope.measure import plans
    from nephoscope.store import Store

    known = catalog.load()
    plan = plans.single("null", {"value": "[1,2]"}, budget_s=None)
    settings = plans.expand(plan, known)
    run = Store(store).create(plan, 7, catalog=known, settings=settings)
    for position in range(trials):
        setting = settings[position % 2]
        record = valid_trial(setting, position // 2 + 1, position, float(position), **COUNTERS)
        value = 100.0 + position % 7
        samples = [Sample("null_ns", value + number) for number in range(3)]
        samples += [Sample("null_per_s", 1 / value)]
        samples += [Sample("null_latency_ns", value + number, 5, 100) for number in range(3)]
        run.append(record, samples, known.benchmark("null"))
    run.finish("measured")


def make_runs(store: Path, runs: int) -> None:
    """Makes finished runs of eight trials of `cpu.pi`, on machines of two CPU models."""
    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.core.model import Sample
    from nephoscope.measure import plans
    from nephoscope.store import Store

    known = catalog.load()
    plan = plans.single("cpu.pi", {"digits": "[1000,2000]"}, budget_s=None)
    settings = plans.expand(plan, known)
    for number in range(runs):
        run = Store(store).create(plan, 7, catalog=known, settings=settings)
        for position in range(8):
            setting = settings[position % 2]
            record = valid_trial(setting, position // 2 + 1, position, float(number), **COUNTERS)
            value = 1e6 * (1 + number % 2) * (1 + 0.002 * (position % 3))
            run.append(record, [Sample("pi_digits_per_s", value)], known.benchmark("cpu.pi"))
        cpuid = {"brand": f"Model {number % 2}", "family": 6, "model": 85, "stepping": 7}
        machine = {"machine_id_hash": f"{number % 100:064x}"}
        fingerprint = {"identity": machine, "cpu": {"by_cpuid": cpuid, "agree": True}}
        run.update(fingerprints={"local": fingerprint})
        run.finish("finished")


def make_surveys(store: Path, runs: int) -> None:
    """Makes finished runs of the plan of `nephoscope survey`, each with four trials of a kind."""
    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.core.model import Sample
    from nephoscope.measure import plans
    from nephoscope.store import Store

    known = catalog.load()
    plan = plans.survey("standard", 60.0, 7)
    settings = plans.expand(plan, known)
    setting = next(one for one in settings if one.benchmark == "cpu.pi")
    for _ in range(runs):
        run = Store(store).create(plan, 7, catalog=known, settings=settings)
        for number in range(4):
            record = valid_trial(setting, number + 1, number, float(number), **COUNTERS)
            run.append(record, [Sample("pi_digits_per_s", 1e6 + number)], known.benchmark("cpu.pi"))
        run.finish("finished")


def make_metrics(folder: Path, metrics: int) -> None:
    """Writes PerfKit Benchmarker's lines, five for each of so many metrics."""
    lines = (
        {"test": "t", "metric": f"metric {n}", "value": n + k + 1.5, "unit": "s", "timestamp": k}
        for k in range(1, 6)
        for n in range(metrics)
    )
    text = "".join(json.dumps({**line, "labels": ""}) + "\n" for line in lines)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "samples.json").write_text(text)


CASES = {
    "census": Case(1000, make_runs, ("census", "--json", "--store", "{store}")),
    "export": Case(
        20_000,
        make_trials,
        ("export", "latest", "--output", "{scratch}/samples.csv", "--store", "{store}"),
        170.0,
    ),
    "import": Case(
        5000, make_metrics, ("import", "{store}/samples.json", "--store", "{scratch}/store"), 170.0
    ),
    "runs": Case(1000, make_surveys, ("runs", "--json", "--store", "{store}")),
}


@dataclass(frozen=True)
class Version:
    """A work tree, and the Python that has the libraries of its code."""

    tree: Path
    python: str

    def environment(self) -> dict[str, str]:
        """Returns the variables with which its code is imported."""
        own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        return {**own, "PYTHONPATH": str(self.tree / "src"), "NO_COLOR": "1"}


def execute(version: Version, case: Case, store: Path, limit_s: float) -> Cost:
    """Runs the command of a case once, in an empty scratch folder."""
    scratch = Path(tempfile.mkdtemp(prefix="nephoscope-large-"))
    words = [word.format(store=store, scratch=scratch) for word in case.words]
    started = time.perf_counter()
    process = subprocess.Popen(
        [version.python, "-m", "nephoscope", *words],
        env=version.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    _, status, usage = os.wait4(process.pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    wall_s = time.perf_counter() - started
    errors = process.stderr.read().decode() if process.stderr else ""
    shutil.rmtree(scratch)
    is_cut = os.WIFSIGNALED(status)
    if not is_cut and os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(words)}: {errors.strip()}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Cost(wall_s, cpu_s, usage.ru_maxrss / 1024, is_cut)


def made_stores(
    case: Case, size: int, versions: Mapping[str, Version], folder: Path
) -> dict[str, Path]:
    """Returns the store of each version, without an index.

    Makes those that are not in the folder, side by side.
    """
    stores = {name: folder / f"{case.make.__name__}-{size}-{name}" for name in versions}
    making = {}
    for name, store in stores.items():
        if not store.exists():
            aside = store.with_suffix(".part")
            shutil.rmtree(aside, ignore_errors=True)
            words = ["--make", case.make.__name__, str(aside), str(size)]
            version = versions[name]
            making[name] = subprocess.Popen(
                [version.python, __file__, *words], env=version.environment()
            )
    for name, process in making.items():
        if process.wait():
            raise SystemExit(f"The store of {name} was not made.")
        stores[name].with_suffix(".part").rename(stores[name])
    for store in stores.values():
        for derived in (*store.rglob(".index.jsonl"), *store.rglob("summary.json")):
            derived.unlink()
    return stores


def compare(
    name: str, versions: Mapping[str, Version], folder: Path, options: argparse.Namespace
) -> dict[str, object]:
    """Measures a case and prints its lines; returns what is written."""
    case = CASES[name]
    size = max(1, round(case.size * options.scale))
    limit_s = options.limit or case.limit_s
    stores = made_stores(case, size, versions, folder)
    if not options.rounds:
        return {}
    costs = _paired.alternate(
        {
            version: lambda version=version: execute(  # type: ignore[misc]
                versions[version], case, stores[version], limit_s
            )
            for version in VERSIONS
        },
        options.rounds,
        options.seed,
    )
    if any(cost.is_cut for cost in costs["this"]):
        raise SystemExit(f"{name}: this version reached the limit of {limit_s:g} s.")
    cut = sum(cost.is_cut for cost in costs["earlier"])
    sign = ">= " if cut else ""
    confidence = min(0.95, 1 - 0.5 ** (options.rounds - 1))
    rows = {}
    for quantity in ("wall_s", "cpu_s", "peak_mib"):
        values = {key: [getattr(cost, quantity) for cost in costs[key]] for key in VERSIONS}
        ratio = _paired.paired_ratio(values["earlier"], values["this"], confidence)
        rows[quantity] = {**values, "ratio": asdict(ratio)}
        medians = " ".join(f"{key} {statistics.median(values[key]):.3g}" for key in VERSIONS)
        first = f"(this in the first round {values['this'][0]:.3g})"
        ends = f"[{ratio.low:.3g}, {ratio.high:.3g}]"
        print(
            f"{name} of {size}: {quantity} {medians} {first}; ratio {sign}{ratio.value:.3g} "
            f"{ends}, n = {ratio.n}, {ratio.confidence:.1%}",
            flush=True,
        )
    if cut:
        print(f"{name}: {cut} of {options.rounds} of the earlier version ended at {limit_s:g} s")
    return {"case": name, "size": size, "limit_s": limit_s, "cut": cut, "rows": rows}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--baseline", type=Path, help="work tree of the earlier version")
    parser.add_argument("--python", default=sys.executable, help="the earlier version's Python")
    parser.add_argument("--case", action="append", choices=CASES, help="may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--rounds", type=int, default=6, help="0, or at least 3")
    parser.add_argument("--limit", type=float, help="seconds of a command, of every case")
    parser.add_argument("--stores", type=Path, help="folder that keeps the stores")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        name, store, size = options.make
        globals()[name](Path(store), int(size))
        return
    if options.baseline is None or options.rounds in (1, 2):
        parser.error("--baseline is needed, and at least 3 rounds")
    versions = {
        "earlier": Version(options.baseline.resolve(), options.python),
        "this": Version(_paired.ROOT, sys.executable),
    }
    revisions = {
        name: _paired.version("git", "-C", str(version.tree), "describe", "--always", "--dirty")
        for name, version in versions.items()
    }
    facts = _paired.machine()
    with tempfile.TemporaryDirectory(prefix="nephoscope-large-") as temporary:
        folder = options.stores or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [compare(name, versions, folder, options) for name in options.case or CASES]
    facts["load_average_1min_after"] = os.getloadavg()[0]
    if options.write and options.rounds:
        record = {"machine": facts, "versions": revisions, "cases": rows}
        _paired.write_result("large-stores", record)


if __name__ == "__main__":
    main()
