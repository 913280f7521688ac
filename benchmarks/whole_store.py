"""Times every command that reads many runs, on one store, beside an earlier version.

usage: whole_store.py --store DIR [--runs N] [--baseline DIR] [--python FILE] [--rounds N]
                      [--limit S] [--write]

The store has 100 trials a run of 100 samples each: by default 10,000 runs, 10^6 trials and 10^8
samples. It is made where it is missing, by the earlier version if there is one, so that both read
it; of 250 runs that differ, the others are copies with hard links to the trials. Each command runs
once without what an earlier one derived (summaries, list of runs), which the version then writes,
and then N times more; the two versions one after the other, since both write these files. Prints
time, CPU time with children, and memory of the largest process. A command that takes longer than
the limit is ended and has only a lower bound. Pages of the dashboard are requests to `serve`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import _paired
from large_stores import Version

TRIALS, VALUES, LATENCIES = 100, 5, 95
"""Of a run; of a trial."""
ORIGINALS = 250
"""Runs of a store whose trials differ."""
START_S, STEP_S = 1.7e9, 3600.0
"""Start of the first run; time from one to the next."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "runs": ("runs", "--json"),
    "history, stored percentile": ("history", "null_latency_p99_ns", "--json"),
    "history, any percentile": ("history", "null_latency_p97_ns", "--json"),
    "census": ("census", "--json"),
    "show": ("show", "{last}", "--json"),
    "compare": ("compare", "{first}", "{last}", "--json"),
    "rank of two runs": ("rank", "a={first}", "b={last}", "--json"),
    "export": ("export", "{last}", "-o", "{scratch}/samples.csv"),
    "verify": ("verify",),
}
PR_SET_CHILD_SUBREAPER = 36
PAGES = (
    "overview",
    "trends",
    "runs",
    "runs?offset=9000",
    "runs/{last}/result",
    "compare?a={first}&b={last}",
)


@dataclass(frozen=True)
class Cost:
    """Of one execution. is_cut: it reached the limit."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    is_cut: bool = False


def make_store(folder: Path, runs: int) -> None:
    """Makes finished runs of `null`, an hour apart, on ten machines of two CPU models."""
    import numpy as np
    import pyarrow as pa
    from _stored import valid_trial

    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.store import Store, merging, trialfile
    from nephoscope.store.batch import Batch

    known = catalog.load()
    spec = known.benchmark("null")
    plan = plans.single("null", {}, budget_s=None)
    (setting,) = plans.expand(plan, known)
    rng = np.random.default_rng(1)
    metrics = [spec.metric(name) for name in ("null_ns", "null_latency_ns")]
    records = [valid_trial(setting, n + 1, n, 1.78e9) for n in range(TRIALS)]
    names = [record.key.name for record in records]

    def rows(run: str, number: int) -> Iterator[tuple[int, pa.Table]]:
        level = 11 + 0.02 * rng.standard_normal()
        for record in records:
            latencies = rng.lognormal(level, 0.3, LATENCIES)
            width = 2.0 ** (np.floor(np.log2(latencies)) - 10)
            buckets, counts = np.unique(np.floor(latencies / width) * width, return_counts=True)
            for metric, values, count in (
                (metrics[0], 100 + rng.normal(0, 1, VALUES), np.ones(VALUES, np.int64)),
                (metrics[1], buckets, counts),
            ):
                texts = {
                    "run": run,
                    "trial": record.key.name,
                    "target": "local",
                    "benchmark": "null",
                    "metric": metric.id,
                    "unit": metric.unit,
                    "better": metric.better.value,
                    "factors": "{}",
                }
                columns = {name: pa.repeat(text, values.size) for name, text in texts.items()} | {
                    "round": np.full(values.size, record.key.round),
                    "value": values,
                    "count": count,
                    "at_ns": np.arange(values.size) * 1000,
                }
                yield values.size, pa.table(columns, schema=trialfile.SCHEMA)

    for number in range(min(runs, ORIGINALS)):
        run = Store(folder).create(plan, 7, catalog=known, settings=[setting])
        tables = list(rows(run.id, number))
        sizes = [a + b for (a, _), (b, _) in zip(tables[::2], tables[1::2], strict=True)]
        table = pa.concat_tables([table for _, table in tables]).combine_chunks()
        batch = Batch(list(zip(records, sizes, strict=True)), table)
        cpuid = {"brand": f"Model {number % 2}", "family": 6, "model": 85, "stepping": 7}
        machine = {"machine_id_hash": f"{number % 10:064x}"}
        fingerprint = {"identity": machine, "cpu": {"by_cpuid": cpuid, "agree": True}}
        run.update(
            **merging.merge(run, [batch], names),
            started_at=START_S + STEP_S * number,
            fingerprints={"local": fingerprint},
        )
        run.finish("finished")
    link_copies(folder, runs)


def link_copies(folder: Path, runs: int) -> None:
    """Adds copies of the runs in turn, with names, times and machines of their own."""
    from nephoscope.store.digests import with_own_digest

    originals = sorted(folder.glob("runs/2*"))
    manifests = [json.loads((path / "manifest.json").read_text()) for path in originals]
    for number in range(len(originals), runs):
        original = originals[number % len(originals)]
        manifest = dict(manifests[number % len(originals)])
        del manifest["sha256"]
        at_s = START_S + STEP_S * number
        run_id = f"{datetime.fromtimestamp(at_s, UTC):%Y%m%d-%H%M%S}-null-{number:04x}"
        path = folder / "runs" / run_id
        (path / "trials").mkdir(parents=True)
        for file in (original / "trials").iterdir():
            os.link(file, path / "trials" / file.name)
        os.link(original / "journal.jsonl", path / "journal.jsonl")
        changed = {**manifest, "id": run_id, "created_at": at_s, "started_at": at_s}
        (path / "manifest.json").write_bytes(with_own_digest(changed))


def execute(version: Version, words: tuple[str, ...], store: Path, limit_s: float) -> Cost:
    """Runs a command once."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-whole-") as scratch:
        words = tuple(word.replace("{scratch}", scratch) for word in words)
        started = time.perf_counter()
        process = subprocess.Popen(
            [version.python, "-m", "nephoscope", *words, "--store", str(store)],
            env=version.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        signal.signal(signal.SIGALRM, lambda *_: process.kill())
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        errors = process.stderr.read().decode() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        wall_s = time.perf_counter() - started
        usages = [usage, *_orphans()]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 0:
        raise SystemExit(f"{' '.join(words)}: {errors.strip()[-500:]}")
    cpu_s = sum(own.ru_utime + own.ru_stime for own in usages)
    peak_mib = max(own.ru_maxrss for own in usages) / 1024
    return Cost(wall_s, cpu_s, peak_mib, process.returncode < 0)


def _orphans() -> Iterator[resource.struct_rusage]:
    """Yields what the processes used that a command left, such as workers of a fork server."""
    while True:
        try:
            yield os.wait4(-1, 0)[2]
        except ChildProcessError:
            return


def measure_pages(
    version: Version, store: Path, names: Mapping[str, str], rounds: int
) -> dict[str, list[Cost]]:
    """Asks a server for each page, first and again; memory is the peak of a process so far."""
    command = [version.python, "-m", "nephoscope", "serve", "--port=0", f"--store={store}"]
    server = subprocess.Popen(command, env=version.environment(), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    costs: dict[str, list[Cost]] = {}

    def ask(page: str) -> None:
        before_s, started = _cpu_s(server.pid), time.perf_counter()
        with urllib.request.urlopen(url + page.format(**names), timeout=900) as response:
            response.read()
        wall_s = time.perf_counter() - started
        cost = Cost(wall_s, _cpu_s(server.pid) - before_s, _peak_mib(server.pid))
        costs.setdefault(f"page {page}", []).append(cost)

    try:
        url = server.stdout.readline().strip() + "api/v1/"
        started = time.perf_counter()
        while True:
            with urllib.request.urlopen(url + "overview", timeout=900) as response:
                overview = json.load(response)
            if overview["runs_read"] == overview["runs"]:
                break
            time.sleep(0.1)
        wall_s = time.perf_counter() - started
        cost = Cost(wall_s, _cpu_s(server.pid), _peak_mib(server.pid))
        costs["serve, until every run is listed"] = [cost]
        for page in PAGES:
            try:
                for _ in range(1 + rounds):
                    ask(page)
            except urllib.error.HTTPError as error:
                if error.code != 404:  # a page that the earlier version does not have
                    raise
    finally:
        server.terminate()
        server.wait(60)
    return costs


def _processes(pid: int) -> Iterator[Path]:
    """Yields the folders of a process and of all below it."""
    folder = Path(f"/proc/{pid}")
    yield folder
    for task in folder.glob("task/*/children"):
        for child in task.read_text().split():
            yield from _processes(int(child))


def _cpu_s(pid: int) -> float:
    """CPU time of a process, of those below it and of their children that ended, in seconds."""
    fields = [(own / "stat").read_text().rpartition(")")[2].split() for own in _processes(pid)]
    return sum(int(time) for own in fields for time in own[11:15]) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> float:
    """Peak memory of the largest process below a process, or of itself."""
    lines = [x for own in _processes(pid) for x in (own / "status").read_text().splitlines()]
    return max(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(
    version: Version, store: Path, rounds: int, limit_s: float
) -> dict[str, list[dict[str, object]]]:
    """Measures all commands by one version, and prints a line for each."""
    for derived in (*store.rglob(".index.jsonl"), *store.glob("runs/*/summary.json")):
        derived.unlink()
    runs = sorted(path.name for path in store.glob("runs/2*"))
    names = {"first": runs[0], "last": runs[-1]}
    result = {}
    for name, words in COMMANDS.items():
        words = tuple(word.format(scratch="{scratch}", **names) for word in words)
        costs = [execute(version, words, store, limit_s)]
        while not costs[-1].is_cut and len(costs) <= rounds:
            costs.append(execute(version, words, store, limit_s))
        result[name] = [asdict(cost) for cost in costs]
        print_line(name, costs)
    for name, costs in measure_pages(version, store, names, rounds).items():
        result[name] = [asdict(cost) for cost in costs]
        print_line(name, costs)
    return result


def print_line(name: str, costs: list[Cost]) -> None:
    """Prints what the first execution cost, and the medians of the others."""
    texts = [_text(costs[0])]
    if costs[1:]:
        middle = [statistics.median(column) for column in zip(*_rows(costs[1:]), strict=True)]
        texts.append(f"then {_text(Cost(*middle))} (n = {len(costs) - 1})")
    print(f"  {name}: {', '.join(texts)}", flush=True)


def _rows(costs: list[Cost]) -> Iterator[tuple[float, float, float]]:
    return ((cost.wall_s, cost.cpu_s, cost.peak_mib) for cost in costs)


def _text(cost: Cost) -> str:
    sign = "more than " if cost.is_cut else ""
    return f"{sign}{cost.wall_s:.3g} s, {cost.cpu_s:.3g} s of CPU, {cost.peak_mib:.0f} MiB"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", type=Path, required=True, help="folder, made where missing")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--baseline", type=Path, help="work tree of the earlier version")
    parser.add_argument("--python", default=sys.executable, help="the earlier version's Python")
    parser.add_argument("--rounds", type=int, default=3, help="after the first execution")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a command")
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_store(options.store, options.runs)
        return
    versions = {"this": Version(_paired.ROOT, sys.executable)}
    if options.baseline:
        versions = {"earlier": Version(options.baseline.resolve(), options.python), **versions}
    if not options.store.exists():
        first = next(iter(versions.values()))
        aside = options.store.with_suffix(".part")
        words = ["--make", "--store", str(aside), "--runs", str(options.runs)]
        subprocess.run([first.python, __file__, *words], env=first.environment(), check=True)
        aside.rename(options.store)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # for `_orphans`
    facts, results, revisions = _paired.machine(), {}, {}
    for name, version in versions.items():
        tree = str(version.tree)
        revisions[name] = _paired.version("git", "-C", tree, "describe", "--always", "--dirty")
        print(f"{name} ({revisions[name]}):")
        results[name] = measure(version, options.store, options.rounds, options.limit)
    facts["load_average_1min_after"] = os.getloadavg()[0]
    if options.write:
        runs = sum(1 for _ in options.store.glob("runs/2*"))
        sizes = {"runs": runs, "trials": runs * TRIALS, "samples": runs * 10_000}
        record = {"machine": facts, "versions": revisions, **sizes, "results": results}
        _paired.write_result(f"whole-store-{runs}", record)


if __name__ == "__main__":
    main()
