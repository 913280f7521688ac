"""The features of the program and its commands, in the order of help, reports and findings.

To add a feature, write its folder below features/ and its entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.results.feature import Command, Feature, ReportSection, Rules

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


def _has_tools(data: RunData) -> bool:
    """States whether a run has trials of a third-party tool and of a native benchmark."""
    from nephoscope import catalog  # each start of the program imports this file

    known = catalog.load().benchmarks
    kinds = {known[name].kind for name in data.benchmarks if name in known}
    return {catalog.ADAPTER, catalog.NATIVE} <= kinds


def _has_servers(data: RunData) -> bool:
    """States whether a run names who serves, or who asks, in one of its settings."""
    settings = data.manifest.settings
    return any(setting.get("peer") or setting.get("client") for setting in settings)


FEATURES: tuple[Feature, ...] = (
    Feature(
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
    Feature(
        "experiment",
        record=".features.experiments.records:Experiment",
        analyse=".features.experiments.result:analyse",
        applies=lambda data: data.has_design,
        sections=(ReportSection("experiment", ".features.experiments.section:build", 220),),
        answer=".features.experiments.answer:answer",
    ),
    Feature(
        "client_server",
        record=".features.clients.result:ClientsAndServers",
        analyse=".features.clients.result:analyse",
        applies=_has_servers,
        findings=(Rules(".features.clients.findings:RULES", 90),),
        sections=(ReportSection("client_server", ".features.clients.section:build", 225),),
        answer=".features.clients.section:answer",
    ),
    Feature(
        "load",
        record=".features.load.result:LoadAnalysis",
        analyse=".features.load.result:analyse",
        applies=lambda data: any(name.endswith(".load") for name in data.benchmarks),
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
    Feature(
        "balance",
        record=".features.balance.records:Balance",
        analyse=".features.balance.result:analyse",
        applies=lambda data: (
            str(data.manifest.plan.get("name", "")).startswith("balance")
            or bool({"lb.haproxy", "lb.nginx"} & data.benchmarks)
        ),
        findings=(Rules(".features.balance.findings:RULES", 350),),
        sections=(ReportSection("balance", ".features.balance.section:build", 215),),
        answer=".features.balance.section:answer",
        commands=(
            Command("balance", "Measure load balancers: throughput, added latency, fairness."),
        ),
    ),
    Feature(
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
    Feature(
        "scheduler",
        record=".features.scheduler.inference.verdict:SchedulerVerdicts",
        analyse=".features.scheduler.result:analyse",
        applies=lambda data: "cpu.gaps" in data.benchmarks,
        sections=(ReportSection("scheduling", ".features.scheduler.section:build", 600),),
        commands=(
            Command("scheduler", "Infer the hypervisor's CPU scheduling policy (takes 9 s)."),
        ),
    ),
    Feature(
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
    Feature(
        "network",
        record=".features.network.result:NetworkPaths",
        analyse=".features.network.result:analyse",
        applies=lambda data: bool({"net.rtt", "net.throughput", "net.query"} & data.benchmarks),
        findings=(Rules(".features.network.findings:RULES", 450),),
        sections=(ReportSection("network", ".features.network.section:build", 645),),
        commands=(Command("network", "Analyse a network path: delay, loss, calls, shaping."),),
    ),
    Feature(
        "census",
        record=".features.census.records:Census",
        analyse=".features.census.observations:analyse",
        applies=lambda data: len(data.manifest.targets) > 1,
        sections=(ReportSection("census", ".features.census.section:build", 400),),
        commands=(Command("census", "Count CPU models by instance type and compare their speed."),),
    ),
    Feature(
        "fleet",
        record=".features.fleet.result:FleetCheck",
        analyse=".features.fleet.result:analyse",
        applies=lambda data: "fleet" in data.manifest.stored,
        sections=(ReportSection("fleet", ".features.fleet.section:build", 205),),
        answer=".features.fleet.section:answer",
        commands=(Command("fleet", "Find the targets of a fleet that differ from the others."),),
    ),
    Feature(
        "ranking",
        record=".features.rank.records:Ranking",
        analyse=".features.rank.result:analyse",
        applies=lambda data: "platform" in data.factors,
        sections=(ReportSection("ranking", ".features.rank.section:build", 212),),
        answer=".features.rank.section:answer",
    ),
    Feature(
        "system_call_overhead",
        record=".features.platforms.records:SystemCallOverhead",
        analyse=".features.platforms.overhead:analyse",
        applies=lambda data: "platform" in data.factors and "sys.calls" in data.benchmarks,
        sections=(ReportSection("overhead", ".features.platforms.overhead_section:build", 213),),
    ),
    Feature(
        "boots",
        record=".features.platforms.records:StoredBoots",
        analyse=".features.platforms.stored_boots:analyse",
        applies=lambda data: "host.boot" in data.benchmarks,
        sections=(ReportSection("boots", ".features.platforms.stored_boots:build", 214),),
        commands=(Command("platforms", "Measure boot time, memory and density of platforms."),),
    ),
    Feature(
        "cross_check",
        record=".features.crosscheck.result:CrossCheck",
        analyse=".features.crosscheck.result:analyse",
        applies=_has_tools,
        sections=(ReportSection("cross_check", ".features.crosscheck.section:build", 660),),
    ),
    Feature(
        "execution",
        record=".results.execution:ExecutionSummary",
        analyse=".results.execution:analyse",
    ),
    Feature(
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

COMMANDS: tuple[Command, ...] = (
    Command(
        "survey", "Measure CPU, memory, disk and network of a machine.", ".cli.commands.survey"
    ),
    Command("run", "Run an experiment plan, or resume its unfinished run.", ".cli.commands.run"),
    Command("bench", "Measure one benchmark, or compare command lines.", ".cli.commands.bench"),
    *(command for feature in FEATURES for command in feature.commands),
    Command("sla", "Check service level agreements: verdict, credit, evidence."),
    Command("traffic", "Analyse bursts of traffic and the energy of a mobile radio."),
    Command("cost", "Compute prices, cost per unit of work and savings."),
    Command(
        "tariff",
        "Price transfers by throughput, beside a flat tariff.",
        ".features.pricing.command",
    ),
    Command(
        "utility",
        "Choose among offers by their utility, with uncertainty.",
        ".features.pricing.utility_command",
    ),
    Command("advise", "Classify an application; predict its performance by platform."),
    Command(
        "compare",
        "Compare two runs, two targets of a run, or two files.",
        ".features.comparison.command",
    ),
    Command("rank", "Rank alternatives by metric, overall and by application."),
    Command("history", "Print a metric over time: change points, forecasts."),
    Command("watch", "Repeat an experiment plan on a schedule."),
    Command("study", "Reproduce the five reference studies.", ".features.studies.command"),
    Command("runs", "List stored runs, newest first; label or remove them.", ".cli.commands.runs"),
    Command("show", "Analyse a stored run again and print its summary.", ".cli.commands.show"),
    Command(
        "stop", "Stop a running measurement and keep its completed trials.", ".cli.commands.stop"
    ),
    Command(
        "verify", "Check the files of stored runs against their digests.", ".cli.commands.verify"
    ),
    Command(
        "compact",
        "Merge the trials of old runs into histograms; remove old days.",
        ".features.compaction.command",
    ),
    Command(
        "export",
        "Export the samples of runs as CSV, JSON lines or Parquet.",
        ".cli.commands.export",
    ),
    Command("import", "Import results from other tools.", ".cli.commands.import_:import_"),
    Command(
        "serve", "Serve stored runs and runs in progress as a page and an API.", ".serve.command"
    ),
    Command(
        "list",
        "List benchmarks, or describe one: parameters and metrics.",
        ".cli.commands.list_:list_",
    ),
    Command(
        "doctor", "Check this host for missing tools and kernel features.", ".cli.commands.doctor"
    ),
    Command(
        "config", "Print the configuration and the source of each value.", ".cli.commands.config"
    ),
    Command(
        "schema", "Print a JSON Schema; without NAME, list the schemas.", ".cli.commands.schema"
    ),
    Command("completion", "Print the completion script of a shell.", ".cli.commands.completion"),
    Command(
        "version", "Print the versions of the program and of its probe.", ".cli.commands.version"
    ),
    Command("lab", "Emulate hosts and network links on this machine.", ".cli.commands.lab"),
)
"""All commands in the order of the help, which is printed without importing them:
`tests/cli/test_cli.py` holds each summary to the help of its command."""
