"""Figures of a machine that was not imported, from a stored run of it."""

from __future__ import annotations

from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Finding
from nephoscope.core.reading.sentences import listed
from nephoscope.features.machine.interference_findings import busy_machine
from nephoscope.features.market.micro_benchmarks import MachineFacts
from nephoscope.features.market.prediction import OwnMachine
from nephoscope.features.market.run_rates import BENCHMARKS, comparable_rates, cpus_of
from nephoscope.results import analyse_run
from nephoscope.results.findings import summarise
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.stats.target_evidence import TargetEvidence
from nephoscope.store import StoredRun
from nephoscope.store.market.catalogue import MarketCatalogue


def read(run: StoredRun, catalogue: MarketCatalogue) -> OwnMachine:
    """Returns the machine of a run with those of its rates that were measured like published ones.

    Raises UsageError for a run of several machines, and for one without such rates.
    """
    data = analyse_run.run_data(run)
    machines = [
        (target, known) for target, known in data.fingerprints.items() if facts.is_machine(known)
    ]
    if len(machines) != 1:
        raise UsageError(
            f"Run {run.id} has {len(machines) or 'no'} described machines, and one is needed.",
            "Name a run of `nephoscope survey` on one target.",
        )
    target, known = machines[0]
    rates, left_out = comparable_rates(data, target, catalogue.metadata.metrics)
    if not rates:
        related_first = sorted(left_out, key=lambda name: name not in BENCHMARKS)
        reasons = [f"{name} ({left_out[name]})" for name in related_first]
        raise UsageError(
            f"Run {run.id} has no rate that was measured like a published one: "
            f"{listed(reasons, 4) or 'none of its benchmarks was published'}.",
            "Run `nephoscope survey --comparable` on the machine, for longer where trials are few.",
        )
    values: dict[str, float] = {}
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for rate in rates:
        values[rate.metric] = rate.line.estimate.value
        low[rate.metric], high[rate.metric] = rate.bounds
    return OwnMachine(run.id, _facts(run, known), values, low, high, _caveats(data, target))


def _caveats(data: RunData, target: str) -> tuple[str, ...]:
    """Returns why the rates of a run may not be those of the machine, as the run itself states."""
    evidence = TargetEvidence(target, None, (), summarise(data.records)[target])
    busy = [answer for answer in busy_machine(evidence) if isinstance(answer, Finding)]
    return tuple(
        f"{finding.sentence} The prediction holds for that rest only; repeat the run while the "
        "machine is idle."
        for finding in busy
    )


def _facts(run: StoredRun, known: Any) -> MachineFacts:
    cpus = cpus_of(known)
    if not cpus:
        raise UsageError(
            f"Run {run.id} does not state the number of CPUs.", "Write a file for --figures."
        )
    threads = facts.number(known, "topology.threads_per_core") or 1
    architecture = facts.text(known, "kernel.arch") or "x86_64"
    return MachineFacts(cpus, round(threads), architecture)
