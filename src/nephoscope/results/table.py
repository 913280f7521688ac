"""The table of capabilities: what each contributes to results, findings, reports and commands.

To add a capability, write its folder and its entry here. References are `module:name`, of which a
leading dot stands for this program's package. They are imported when a run needs them, so that no
command loads the code of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


PACKAGE = "nephoscope"


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
    """A click command, imported when it is called. summary: first sentence of its help.

    module: that of the function, `.NAME.command` unless given; with `:name` where the function
    does not have the command's name.
    """

    name: str
    summary: str
    module: str = ""

    @property
    def reference(self) -> str:
        """Returns `module:name` of the function."""
        module = self.module or f".{self.name}.command"
        return module if ":" in module else f"{module}:{self.name}"


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
    return getattr(import_module(module, PACKAGE), name)


def _has_tools(data: RunData) -> bool:
    """States whether a run has trials of a third-party tool and of a native benchmark."""
    from nephoscope import catalog  # each start of the program imports this file

    known = catalog.load().benchmarks
    kinds = {known[name].kind for name in data.benchmarks if name in known}
    return {catalog.ADAPTER, catalog.NATIVE} <= kinds


def _has_servers(data: RunData) -> bool:
    """States whether a run names who serves, or who asks, in one of its settings."""
    settings = data.manifest.get("settings") or ()
    return any(setting.get("peer") or setting.get("client") for setting in settings)


TABLE: tuple[Capability, ...] = (
    Capability(
        "machine",
        record=".results.machine_figures:MachineFigures",
        analyse=".features.machine.result:analyse",
        findings=(
            Rules(".features.machine.findings:LIMIT_RULES", 100),
            Rules(".features.machine.interference_findings:RULES", 200),
            Rules(".features.machine.slow_findings:RULES", 500),
            Rules(".features.machine.findings:CLOCK_RULES", 600),
            Rules(".features.machine.measured_findings:RULES", 700),
            Rules(".features.machine.findings:PROPERTY_RULES", 800),
        ),
        sections=(
            ReportSection("machine", ".features.machine.section:build", 805),
            ReportSection("cache_ladder", ".features.machine.cache_ladder_section:build", 610),
            ReportSection("scaling", ".features.machine.scaling_section:build", 620),
            ReportSection("disk", ".features.machine.disk_section:build", 630),
            ReportSection("storage", ".features.machine.storage_section:build", 635),
            ReportSection("loopback", ".features.machine.loopback_section:build", 640),
        ),
        answer=".features.machine.scaling_section:answer",
    ),
    Capability(
        "experiment",
        record=".features.experiments.records:Experiment",
        analyse=".features.experiments.result:analyse",
        applies=lambda data: data.has_design,
        sections=(ReportSection("experiment", ".features.experiments.section:build", 220),),
        answer=".features.experiments.answer:answer",
    ),
    Capability(
        "client_server",
        record=".features.clients.result:ClientsAndServers",
        analyse=".features.clients.result:analyse",
        applies=_has_servers,
        findings=(Rules(".features.clients.findings:RULES", 90),),
        sections=(ReportSection("client_server", ".features.clients.section:build", 225),),
        answer=".features.clients.section:answer",
    ),
    Capability(
        "load",
        record=".features.load.result:Load",
        analyse=".features.load.result:analyse",
        applies=lambda data: any(name.endswith(".features.load") for name in data.benchmarks),
        findings=(Rules(".features.load.findings:RULES", 360),),
        sections=(ReportSection("load", ".features.load.section:build", 650),),
        answer=".features.load.section:answer",
        commands=(
            Command("load", "Put an HTTP server under load; print rate and latency."),
            Command(
                "capacity",
                "Find the highest rate at which a server meets an objective.",
                ".features.load.capacity_command",
            ),
        ),
    ),
    Capability(
        "balance",
        record=".features.balance.records:Balance",
        analyse=".features.balance.result:analyse",
        applies=lambda data: (
            str((data.manifest.get("plan") or {}).get("name", "")).startswith("balance")
            or bool({"lb.haproxy", "lb.nginx"} & data.benchmarks)
        ),
        findings=(Rules(".features.balance.findings:RULES", 350),),
        sections=(ReportSection("balance", ".features.balance.section:build", 215),),
        answer=".features.balance.section:answer",
        commands=(
            Command("balance", "Measure load balancers: throughput, added latency, fairness."),
        ),
    ),
    Capability(
        "isolation",
        record=".features.isolation.records:Isolation",
        analyse=".features.isolation.result:analyse",
        applies=lambda data: "resource" in data.factors,
        findings=(Rules(".features.isolation.findings:RULES", 300),),
        sections=(ReportSection("isolation", ".features.isolation.section:build", 210),),
        headline=".features.isolation.section:headline",
        answer=".features.isolation.section:answer",
        commands=(
            Command(
                "isolate",
                "Measure how much a neighbour on the same host slows you.",
                ".features.isolation.command",
            ),
        ),
    ),
    Capability(
        "scheduler",
        record=".features.scheduler.inference.verdict:SchedulerVerdicts",
        analyse=".features.scheduler.result:analyse",
        applies=lambda data: "cpu.gaps" in data.benchmarks,
        sections=(ReportSection("scheduling", ".features.scheduler.section:build", 600),),
        commands=(
            Command("scheduler", "Infer the hypervisor's CPU scheduling policy (takes 9 s)."),
        ),
    ),
    Capability(
        "simulation",
        record=".features.simulation.records:Simulation",
        analyse=".features.simulation.result:analyse",
        applies=lambda data: any(name.startswith("sim.") for name in data.benchmarks),
        findings=(Rules(".features.simulation.findings:RULES", 400),),
        sections=(
            ReportSection("placement", ".features.simulation.placement_section:build", 110),
            ReportSection("deployments", ".features.simulation.deployment_section:build", 120),
            ReportSection(
                "simulated_scheduler", ".features.simulation.scheduler_section:build", 130
            ),
            ReportSection("saving", ".features.simulation.saving_section:build", 140),
        ),
        answer=".features.simulation.placement_section:answer",
        commands=(
            Command(
                "simulate",
                "Simulate sites and users, CPU schedulers, instance selection.",
                ".features.simulation.command",
            ),
        ),
    ),
    Capability(
        "network",
        record=".features.network.result:NetworkPaths",
        analyse=".features.network.result:analyse",
        applies=lambda data: bool({"net.rtt", "net.throughput", "net.query"} & data.benchmarks),
        findings=(Rules(".features.network.findings:RULES", 450),),
        sections=(ReportSection("network", ".features.network.section:build", 645),),
        commands=(Command("network", "Analyse a network path: delay, loss, calls, shaping."),),
    ),
    Capability(
        "census",
        record=".features.census.records:Census",
        analyse=".features.census.sightings:analyse",
        applies=lambda data: len(data.manifest["targets"]) > 1,
        sections=(ReportSection("census", ".features.census.section:build", 400),),
        commands=(Command("census", "Count CPU models by instance type and compare their speed."),),
    ),
    Capability(
        "fleet",
        record=".features.fleet.result:FleetCheck",
        analyse=".features.fleet.result:analyse",
        applies=lambda data: "fleet" in data.manifest,
        sections=(ReportSection("fleet", ".features.fleet.section:build", 205),),
        answer=".features.fleet.section:answer",
        commands=(Command("fleet", "Find the targets of a fleet that differ from the others."),),
    ),
    Capability(
        "ranking",
        record=".features.rank.records:Ranking",
        analyse=".features.rank.result:analyse",
        applies=lambda data: "platform" in data.factors,
        sections=(ReportSection("ranking", ".features.rank.section:build", 212),),
        answer=".features.rank.section:answer",
    ),
    Capability(
        "system_call_overhead",
        record=".features.platforms.records:SystemCallOverhead",
        analyse=".features.platforms.overhead:analyse",
        applies=lambda data: "platform" in data.factors and "sys.calls" in data.benchmarks,
        sections=(ReportSection("overhead", ".features.platforms.overhead_section:build", 213),),
    ),
    Capability(
        "boots",
        record=".features.platforms.records:StoredBoots",
        analyse=".features.platforms.stored_boots:analyse",
        applies=lambda data: "host.boot" in data.benchmarks,
        sections=(ReportSection("boots", ".features.platforms.stored_boots:build", 214),),
        commands=(Command("platforms", "Measure boot time, memory and density of platforms."),),
    ),
    Capability(
        "cross_check",
        record=".features.crosscheck.result:CrossCheck",
        analyse=".features.crosscheck.result:analyse",
        applies=_has_tools,
        sections=(ReportSection("cross_check", ".features.crosscheck.section:build", 660),),
    ),
    Capability(
        "execution", record=".results.execution:Execution", analyse=".results.execution:analyse"
    ),
    Capability(
        "counters", record=".results.counters:TrialCounters", analyse=".results.counters:analyse"
    ),
)

SHARED_SECTIONS: tuple[ReportSection, ...] = (
    ReportSection("summary", ".report.summary:build", 100),
    ReportSection("findings", ".report.sections.findings:build", 105),
    ReportSection("stability", ".report.trial_chart:build", 107),
    ReportSection("results", ".report.sections.results:build", 500),
    ReportSection("reference_values", ".report.reference_values:build", 505),
    ReportSection("other_benchmarks", ".report.sections.other_benchmarks:build", 700),
    ReportSection("execution", ".report.sections.execution:build", 810),
    ReportSection("method", ".report.sections.method:build", 820),
    ReportSection("excluded_trials", ".report.sections.excluded_trials:build", 830),
)
"""The sections of every report."""


def contributing(parts: tuple[Any, ...]) -> list[tuple[Capability, Any]]:
    """Returns the capabilities that these records are of, in the table's order, each with its
    record."""
    by_type = {
        f"{type(part).__module__}:{type(part).__qualname__}".removeprefix(PACKAGE): part
        for part in parts
    }
    return [(entry, by_type[entry.record]) for entry in TABLE if entry.record in by_type]
