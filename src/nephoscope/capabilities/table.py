"""The table of capabilities: what each contributes to results, findings, reports and commands.

To add a capability, write its folder and its entry here. References are `module:name` and are
imported when a run needs them, so that no command loads the code of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nephoscope import catalog

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of findings: a tuple of functions. Rules with a lower `position` come first."""

    rules: str
    position: int


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report: a function `(result) -> Section | None` and its place on the page.

    Benchmarks that the section draws are its module's BENCHMARKS; they get no general chart.
    """

    name: str
    build: str
    position: int


@dataclass(frozen=True, slots=True)
class Command:
    """A click command, imported when it is called. summary: first sentence of its help."""

    name: str
    summary: str
    reference: str


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability and its contributions.

    name: key of its record in the result's JSON document. record: type of the record. analyse:
    function `(RunData) -> record | None`. applies: whether a run can have a record at all; answers
    without importing the capability. findings, sections: used where the run has a record.
    headline: function `(result) -> list[Tile]`, the record's own figures for the summary.
    answer: function `(result) -> list[str]`, sentences that answer the question of the plan.
    commands: of the command line.
    """

    name: str
    record: str
    analyse: str
    applies: Callable[[RunData], bool] = lambda data: True
    findings: tuple[Rules, ...] = ()
    sections: tuple[ReportSection, ...] = ()
    headline: str = ""
    answer: str = ""
    commands: tuple[Command, ...] = ()


def load(reference: str) -> Any:
    """Returns the object that `module:name` refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def _has_tools(data: RunData) -> bool:
    """States whether a run has trials of a third-party tool and of a native benchmark."""
    known = catalog.load().benchmarks
    kinds = {known[name].kind for name in data.benchmarks if name in known}
    return {catalog.ADAPTER, catalog.NATIVE} <= kinds


TABLE: tuple[Capability, ...] = (
    Capability(
        "machine",
        record="nephoscope.results.machine_figures:MachineFigures",
        analyse="nephoscope.machine.result:analyse",
        findings=(
            Rules("nephoscope.machine.findings:LIMIT_RULES", 100),
            Rules("nephoscope.machine.interference_findings:RULES", 200),
            Rules("nephoscope.machine.slow_findings:RULES", 500),
            Rules("nephoscope.machine.findings:CLOCK_RULES", 600),
            Rules("nephoscope.machine.measured_findings:RULES", 700),
            Rules("nephoscope.machine.findings:PROPERTY_RULES", 800),
        ),
        sections=(
            ReportSection("machine", "nephoscope.machine.section:build", 805),
            ReportSection("cache_ladder", "nephoscope.machine.cache_ladder_section:build", 610),
            ReportSection("scaling", "nephoscope.machine.scaling_section:build", 620),
            ReportSection("disk", "nephoscope.machine.disk_section:build", 630),
            ReportSection("storage", "nephoscope.machine.storage_section:build", 635),
            ReportSection("loopback", "nephoscope.machine.loopback_section:build", 640),
        ),
        answer="nephoscope.machine.scaling_section:answer",
    ),
    Capability(
        "experiment",
        record="nephoscope.experiments.records:Experiment",
        analyse="nephoscope.experiments.result:analyse",
        applies=lambda data: data.has_design,
        sections=(ReportSection("experiment", "nephoscope.experiments.section:build", 220),),
        answer="nephoscope.experiments.answer:answer",
    ),
    Capability(
        "load",
        record="nephoscope.load.result:Load",
        analyse="nephoscope.load.result:analyse",
        applies=lambda data: any(name.endswith(".load") for name in data.benchmarks),
        sections=(ReportSection("load", "nephoscope.load.section:build", 650),),
        answer="nephoscope.load.section:answer",
        commands=(
            Command(
                "load",
                "Put an HTTP server under load; print rate and latency.",
                "nephoscope.load.command:load",
            ),
            Command(
                "capacity",
                "Find the highest rate at which a server meets an objective.",
                "nephoscope.load.capacity_command:capacity",
            ),
        ),
    ),
    Capability(
        "balance",
        record="nephoscope.balance.records:Balance",
        analyse="nephoscope.balance.result:analyse",
        applies=lambda data: (
            str((data.manifest.get("plan") or {}).get("name", "")).startswith("balance")
            or bool({"lb.haproxy", "lb.nginx"} & data.benchmarks)
        ),
        findings=(Rules("nephoscope.balance.findings:RULES", 350),),
        sections=(ReportSection("balance", "nephoscope.balance.section:build", 215),),
        answer="nephoscope.balance.section:answer",
        commands=(
            Command(
                "balance",
                "Measure load balancers: throughput, added latency, fairness.",
                "nephoscope.balance.command:balance",
            ),
        ),
    ),
    Capability(
        "isolation",
        record="nephoscope.isolation.records:Isolation",
        analyse="nephoscope.isolation.result:analyse",
        applies=lambda data: "resource" in data.factors,
        findings=(Rules("nephoscope.isolation.findings:RULES", 300),),
        sections=(ReportSection("isolation", "nephoscope.isolation.section:build", 210),),
        headline="nephoscope.isolation.section:headline",
        answer="nephoscope.isolation.section:answer",
        commands=(
            Command(
                "isolate",
                "Measure how much a neighbour on the same host slows you.",
                "nephoscope.isolation.command:isolate",
            ),
        ),
    ),
    Capability(
        "scheduler",
        record="nephoscope.scheduler.inference.verdict:SchedulerVerdicts",
        analyse="nephoscope.scheduler.result:analyse",
        applies=lambda data: "cpu.gaps" in data.benchmarks,
        sections=(ReportSection("scheduling", "nephoscope.scheduler.section:build", 600),),
        commands=(
            Command(
                "scheduler",
                "Infer the hypervisor's CPU scheduling policy (takes 9 s).",
                "nephoscope.scheduler.command:scheduler",
            ),
        ),
    ),
    Capability(
        "simulation",
        record="nephoscope.simulation.records:Simulation",
        analyse="nephoscope.simulation.result:analyse",
        applies=lambda data: any(name.startswith("sim.") for name in data.benchmarks),
        findings=(Rules("nephoscope.simulation.findings:RULES", 400),),
        sections=(
            ReportSection("placement", "nephoscope.simulation.placement_section:build", 110),
            ReportSection("deployments", "nephoscope.simulation.deployment_section:build", 120),
            ReportSection(
                "simulated_scheduler", "nephoscope.simulation.scheduler_section:build", 130
            ),
            ReportSection("saving", "nephoscope.simulation.saving_section:build", 140),
        ),
        answer="nephoscope.simulation.placement_section:answer",
        commands=(
            Command(
                "simulate",
                "Simulate sites and users, CPU schedulers, instance selection.",
                "nephoscope.simulation.command:simulate",
            ),
        ),
    ),
    Capability(
        "network",
        record="nephoscope.network.result:NetworkPaths",
        analyse="nephoscope.network.result:analyse",
        applies=lambda data: bool({"net.rtt", "net.throughput", "net.query"} & data.benchmarks),
        findings=(Rules("nephoscope.network.findings:RULES", 450),),
        sections=(ReportSection("network", "nephoscope.network.section:build", 645),),
        commands=(
            Command(
                "network",
                "Analyse a network path: delay, loss, calls, shaping.",
                "nephoscope.network.command:network",
            ),
        ),
    ),
    Capability(
        "census",
        record="nephoscope.census.records:Census",
        analyse="nephoscope.census.sightings:analyse",
        applies=lambda data: len(data.manifest["targets"]) > 1,
        sections=(ReportSection("census", "nephoscope.census.section:build", 400),),
        commands=(
            Command(
                "census",
                "Count CPU models by instance type and compare their speed.",
                "nephoscope.census.command:census",
            ),
        ),
    ),
    Capability(
        "fleet",
        record="nephoscope.fleet.result:FleetCheck",
        analyse="nephoscope.fleet.result:analyse",
        applies=lambda data: "fleet" in data.manifest,
        sections=(ReportSection("fleet", "nephoscope.fleet.section:build", 205),),
        answer="nephoscope.fleet.section:answer",
        commands=(
            Command(
                "fleet",
                "Find the targets of a fleet that differ from the others.",
                "nephoscope.fleet.command:fleet",
            ),
        ),
    ),
    Capability(
        "ranking",
        record="nephoscope.rank.records:Ranking",
        analyse="nephoscope.rank.result:analyse",
        applies=lambda data: "platform" in data.factors,
        sections=(ReportSection("ranking", "nephoscope.rank.section:build", 212),),
        answer="nephoscope.rank.section:answer",
    ),
    Capability(
        "system_call_overhead",
        record="nephoscope.platforms.records:SystemCallOverhead",
        analyse="nephoscope.platforms.overhead:analyse",
        applies=lambda data: "platform" in data.factors and "sys.calls" in data.benchmarks,
        sections=(ReportSection("overhead", "nephoscope.platforms.overhead_section:build", 213),),
    ),
    Capability(
        "boots",
        record="nephoscope.platforms.records:StoredBoots",
        analyse="nephoscope.platforms.stored_boots:analyse",
        applies=lambda data: "host.boot" in data.benchmarks,
        sections=(ReportSection("boots", "nephoscope.platforms.stored_boots:build", 214),),
        commands=(
            Command(
                "platforms",
                "Measure boot time, memory and density of platforms.",
                "nephoscope.platforms.command:platforms",
            ),
        ),
    ),
    Capability(
        "cross_check",
        record="nephoscope.crosscheck.result:CrossCheck",
        analyse="nephoscope.crosscheck.result:analyse",
        applies=_has_tools,
        sections=(ReportSection("cross_check", "nephoscope.crosscheck.section:build", 660),),
    ),
    Capability(
        "execution",
        record="nephoscope.results.execution:Execution",
        analyse="nephoscope.results.execution:analyse",
    ),
    Capability(
        "counters",
        record="nephoscope.results.counters:TrialCounters",
        analyse="nephoscope.results.counters:analyse",
    ),
)

SHARED_SECTIONS: tuple[ReportSection, ...] = (
    ReportSection("summary", "nephoscope.capabilities.summary:build", 100),
    ReportSection("findings", "nephoscope.report.sections.findings:build", 105),
    ReportSection("stability", "nephoscope.capabilities.trial_chart:build", 107),
    ReportSection("results", "nephoscope.report.sections.results:build", 500),
    ReportSection("reference_values", "nephoscope.capabilities.reference_values:build", 505),
    ReportSection("other_benchmarks", "nephoscope.report.sections.other_benchmarks:build", 700),
    ReportSection("execution", "nephoscope.report.sections.execution:build", 810),
    ReportSection("method", "nephoscope.report.sections.method:build", 820),
    ReportSection("excluded_trials", "nephoscope.report.sections.excluded_trials:build", 830),
)
"""The sections of every report."""


def contributing(parts: tuple[Any, ...]) -> list[tuple[Capability, Any]]:
    """Returns the capabilities that these records are of, in the table's order, each with its
    record."""
    by_type = {f"{type(part).__module__}:{type(part).__qualname__}": part for part in parts}
    return [(entry, by_type[entry.record]) for entry in TABLE if entry.record in by_type]
