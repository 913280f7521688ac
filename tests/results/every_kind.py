"""One stored run of every kind, small and made up: what every command that reads runs has to bear.

The values are drawn; what counts is that each kind has the plan, targets, factors, shapes of
metrics, states and files that such runs have.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.features.elastic import stored as elastic_runs
from tests.features.network import made as paths
from tests.results import isolated
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope import catalog
from nephoscope.catalog import DUET
from nephoscope.core.model import Sample, Setting, Shape
from nephoscope.features.balance.plan import BalanceRequest, plan_balance
from nephoscope.features.compaction.compact import Policy, compact
from nephoscope.measure import plans
from nephoscope.results import names
from nephoscope.store import FAILED, FINISHED, MEASURED, RUNNING, Store, StoredRun
from nephoscope.store.imports.importing import import_files

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
KNOWN = catalog.load()
DRAWN_SHARE = 0.5


def anything(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    """Values of every metric of a benchmark but its documents."""
    found = []
    for index, metric in enumerate(KNOWN.benchmark(setting.benchmark).metrics):
        if metric.id in names.UNANSWERED.values():
            continue  # a part of another histogram, which this one is none of
        value = 100.0 * (index + 1) + (7 * number) % 5 + (target == "two")
        if metric.share or metric.unit == "ratio":
            value = DRAWN_SHARE + number / 100
        if metric.shape is Shape.SCALAR:
            own = {"kind": "any"} if metric.id == "errors_count" else {}
            if setting.benchmark == DUET and not metric.id.endswith("_ratio"):
                own = {"label": "A"}
            found.append(Sample(metric.id, value, factors=own))
        elif metric.shape is Shape.HISTOGRAM:
            found += [Sample(metric.id, value * (1 + step / 9), 20) for step in range(9)]
        elif metric.shape is Shape.SERIES:
            found += [Sample(metric.id, value, at_ns=at) for at in (1000, 2000, 3000)]
    return found


def plan_text(*entries: str, name: str = "made", targets: str = "") -> str:
    lines = "\n".join(f"  - {entry}" for entry in entries)
    text = f"version: 1\nname: {name}\nrepeat: {{min: 8, max: 8}}\n"
    return text + (f"targets: [{targets}]\n" if targets else "") + f"benchmarks:\n{lines}\n"


SURVEY = (
    "{benchmark: sys.fingerprint}",
    "{benchmark: cpu.pi, params: {digits: 1000}}",
    "{benchmark: mem.stream}",
    "{benchmark: disk.sync}",
)
PLANS: Mapping[str, str] = {
    "survey": plan_text(*SURVEY, name="survey-quick"),
    "one benchmark": plan_text("{benchmark: cpu.hash}", name="bench-cpu-hash"),
    "command": plan_text(
        '{benchmark: command, factors: {argv: [["true"], ["sleep", "0"]]}}', name="bench-command"
    ),
    "duet": plan_text(
        '{benchmark: command.duet, params: {argv: ["true"], second_argv: ["sleep", "0"]}}',
        name="bench-duet",
    ),
    "durability": plan_text("{benchmark: storage.durability, params: {name: photos}}"),
    "factors": plan_text("{benchmark: cpu.hash, factors: {threads: [1, 2]}}"),
    "two targets": TWO_TARGETS,
    "load": plan_text('{benchmark: http.load, params: {url: "http://127.0.0.1/"}}', name="load"),
    "capacity": plan_text(
        '{benchmark: http.load, params: {url: "http://127.0.0.1/", rate_per_s: 100}}',
        name="capacity",
    ),
    "scheduler": plan_text(
        "{benchmark: cpu.gaps, params: {cpus_max: 1, duration_ns: 2500ms}}", name="scheduler"
    ),
    "simulation": plan_text(
        "{benchmark: sim.scheduler}", name="simulate", targets="{name: sim, kind: sim}"
    ),
    "cross-check": plan_text(
        "{benchmark: disk.io, params: {operation: randread}}",
        "{benchmark: ioping, params: {operation: randread, record_bytes: 8192}}",
    ),
    "third-party tool": plan_text("{benchmark: sysbench.cpu}"),
    "fleet": plan_text(
        "{benchmark: cpu.hash}",
        name="fleet",
        targets=", ".join(f"{{name: node{number}}}" for number in range(4)),
    ),
    "boots": plan_text("{benchmark: host.boot}"),
}
STATES = {"killed": RUNNING, "measured": MEASURED, "failed": FAILED}
IMPORTED = ("fio.json", "hyperfine.json", "iperf3.json", "k6-export.json", "sysbench.txt")

Make = Callable[[Path], StoredRun]


def _planned(text: str, store: Path, **more: object) -> StoredRun:
    return make_run(store, text, anything, rounds=8, **more)  # type: ignore[arg-type]


def _balance(store: Path) -> StoredRun:
    request = BalanceRequest(balancers=("haproxy",), servers=1, concurrency=(10,), rounds=3)
    return make_run(store, plan_balance(request), anything, rounds=3)


def _census(store: Path) -> StoredRun:
    run = make_run(store, plans.census(), anything, rounds=2)
    cpu = {"by_cpuid": {"brand": "A CPU", "family": 6, "model": 85, "stepping": 7}, "agree": True}
    run.update(fingerprints={"local": {"identity": {"machine_id_hash": "m"}, "cpu": cpu}})
    return run


def _empty(store: Path, state: str) -> StoredRun:
    plan = plans.single("null", {}, budget_s=None)
    run = Store(store).create(plan, 7, catalog=KNOWN, settings=plans.expand(plan, KNOWN))
    run.finish(state)
    return run


def _of_older_layout(store: Path) -> StoredRun:
    (source,) = (GOLDEN / "stored_run" / "runs").iterdir()
    shutil.copytree(source, store / "runs" / source.name)
    return Store(store).open(source.name)


def _compacted(store: Path) -> StoredRun:
    run = make_run(store, NULL_PLAN, anything, rounds=8)
    run.update(started_at=1_600_000_000.0, finished_at=1_600_000_100.0)
    compact(Store(store), Policy(keep_raw_s=86_400.0), now_s=1_700_000_000.0)
    return run


def _imported(name: str, store: Path) -> StoredRun:
    return import_files([GOLDEN / "imports" / name], Store(store), {})


KINDS: Mapping[str, Make] = {
    **{name: partial(_planned, text) for name, text in PLANS.items()},
    "isolation": lambda store: isolated.make(store, isolated.Truth(rounds=2)),
    "network": lambda store: make_run(store, paths.PLAN, paths.sampled, rounds=3),
    "balance": _balance,
    "elastic": elastic_runs.make,
    "census": _census,
    **{f"imported {name}": partial(_imported, name) for name in IMPORTED},
    **{name: partial(_planned, NULL_PLAN, state=state) for name, state in STATES.items()},
    "without trials": lambda store: _empty(store, FINISHED),
    "failed without trials": lambda store: _empty(store, FAILED),
    "all trials excluded": lambda store: _planned(NULL_PLAN, store, invalid=range(9)),
    "few trials": lambda store: make_run(store, NULL_PLAN, anything, rounds=2),
    "older layout": _of_older_layout,
    "compacted": _compacted,
}
"""Kind of stored run -> what makes one in a store."""


def make_all(store: Path) -> dict[str, str]:
    """Makes a run of every kind in one store; returns their ids."""
    ids = {}
    for number, (kind, make) in enumerate(KINDS.items()):
        run = make(store)
        if kind not in ("older layout", "compacted") and not kind.startswith("imported"):
            known = run.manifest.fingerprints
            names = [str(target["name"]) for target in run.manifest.targets]
            # Machines of their own, so that no run is part of another's history.
            own = {
                name: {**known.get(name, {}), "identity": {"machine_id_hash": f"m{number}"}}
                for name in names
            }
            run.update(fingerprints=own)
        ids[kind] = run.id
    return ids
