"""Defines the command groups `study …`, `lab …` and `simulate …`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from nephoscope.cli_shared import FRESH, JSON, PATH, SEED, STORE, Function, InOrder


@click.group(cls=InOrder)
def study() -> None:
    """Reproduce the five reference studies."""


@study.command("list")
@STORE
@JSON
def study_list(**options: Any) -> int:
    """List the studies: parts, published numbers, last run."""
    from nephoscope.studies import command

    return command.list_(**options)


@study.command("show")
@click.argument("name")
@STORE
@JSON
def study_show(**options: Any) -> int:
    """Print the published results of NAME beside those measured here."""
    from nephoscope.studies import command

    return command.show(**options)


@study.command("run")
@click.argument("name")
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Scale of the experiment: minutes on two CPUs, or as published.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="PART",
    help="Part of the study to run [default: all]; may be repeated.",
)
@SEED
@STORE
@JSON
@FRESH
def study_run(**options: Any) -> int:
    """Repeat the experiments of NAME and compare the results."""
    from nephoscope.studies import command

    return command.run(**options)


@click.group(cls=InOrder)
def lab() -> None:
    """Emulate hosts and network links on this machine."""


@lab.command("up")
@click.argument("topology", type=PATH)
@JSON
def lab_up(**options: Any) -> int:
    """Create the lab that a topology file describes.

    If any part cannot be created, everything is removed again.
    """
    from nephoscope.commands import lab as command

    return command.up(**options)


@lab.command("down")
@click.argument("name", required=False, metavar="[NAME|TOPOLOGY.yaml]")
@click.option("--all", "everything", is_flag=True, help="Remove all labs on this machine.")
@JSON
def lab_down(**options: Any) -> int:
    """Remove a lab, including the remains of a killed one."""
    from nephoscope.commands import lab as command

    return command.down(**options)


@lab.command("list")
@JSON
def lab_list(**options: Any) -> int:
    """List labs: state, hosts and how their links are emulated."""
    from nephoscope.commands import lab as command

    return command.list_(**options)


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("place", metavar="LAB/HOST")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM…")
def lab_exec(**options: Any) -> int:
    """Run a program on a lab host; returns its exit code."""
    from nephoscope.commands import lab as command

    return command.exec_(**options)


@lab.command("check")
@click.argument("topology", type=PATH, required=False)
@click.option(
    "--only", multiple=True, metavar="ID", help="Prefix of the checks to run; may be repeated."
)
@JSON
def lab_check(**options: Any) -> int:
    """Verify emulated limits and links by measuring them.

    With TOPOLOGY, checks whether this host can create that lab, and verifies the mechanisms and
    settings that it uses.
    """
    from nephoscope.commands import lab as command

    return command.check(**options)


@click.group(cls=InOrder)
def simulate() -> None:
    """Simulate sites and users, CPU schedulers, instance selection."""


def _simulation(command: Function) -> Function:
    """Adds the arguments and options of every simulation."""
    parameters: tuple[Callable[[Function], Function], ...] = (
        click.argument("scenario", required=False, metavar="[SCENARIO]"),
        click.option(
            "--set",
            "sets",
            multiple=True,
            metavar="PATH=VALUE",
            help="Override a value of the scenario; may be repeated.",
        ),
        click.option(
            "--replications",
            type=click.IntRange(1, 100_000),
            default=10,
            metavar="N",
            show_default=True,
            help="Number of replications, each with its own random seed.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**63 - 1),
            metavar="N",
            help="Random seed of the run [default: the scenario's, else random].",
        ),
        STORE,
        JSON,
        FRESH,
    )
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


@simulate.command("geo")
@_simulation
@click.option("--place", is_flag=True, help="Find the best locations for sites instead.")
@click.option(
    "--latency",
    metavar="RUN",
    help="Run whose measured round-trip times (net.rtt) to use as latencies.",
)
def simulate_geo(**options: Any) -> int:
    """Simulate response times and cost of sites for users worldwide.

    SCENARIO is a YAML file or the name of a built-in scenario. Without SCENARIO, lists the built-in
    scenarios.
    """
    from nephoscope.simulation import command

    return command.geo(**options)


@simulate.command("scheduler")
@_simulation
def simulate_scheduler(**options: Any) -> int:
    """Simulate virtual machines that share CPUs under a scheduler.

    SCENARIO is a YAML file or the name of a built-in scenario. Without SCENARIO, lists the built-in
    scenarios.
    """
    from nephoscope.simulation import command

    return command.scheduler(**options)


@simulate.command("selection")
@_simulation
def simulate_selection(**options: Any) -> int:
    """Simulate the savings of relaunching until an instance is fast.

    SCENARIO is a YAML file or the name of a built-in scenario. Without SCENARIO, lists the built-in
    scenarios.
    """
    from nephoscope.simulation import command

    return command.selection(**options)
