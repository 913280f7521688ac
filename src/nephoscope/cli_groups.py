"""Verbs of several words: `study …`, `lab …`, `simulate …`. What each does is in commands/."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from nephoscope.cli_shared import FRESH, JSON, PATH, SEED, STORE, Function, InOrder


@click.group(cls=InOrder)
def study() -> None:
    """The five reference studies: theirs, and ours beside it."""


@study.command("list")
@STORE
@JSON
def study_list(**given: Any) -> int:
    """The studies: parts, published numbers, last run here."""
    from nephoscope.studies import command

    return command.list_(**given)


@study.command("show")
@click.argument("name")
@STORE
@JSON
def study_show(**given: Any) -> int:
    """Print what NAME published; ours beside it if it was run."""
    from nephoscope.studies import command

    return command.show(**given)


@study.command("run")
@click.argument("name")
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Minutes on two CPUs, or as the study did it.",
)
@click.option("--part", "parts", multiple=True, metavar="PART", help="Only this one; repeatable.")
@SEED
@STORE
@JSON
@FRESH
def study_run(**given: Any) -> int:
    """Measure the parts of NAME that are here; compare."""
    from nephoscope.studies import command

    return command.run(**given)


@click.group(cls=InOrder)
def lab() -> None:
    """A cloud in one Linux box: hosts, links, delays."""


@lab.command("up")
@click.argument("topology", type=PATH)
@JSON
def lab_up(**given: Any) -> int:
    """Bring up the lab of a topology file; all of it or nothing."""
    from nephoscope.commands import lab as command

    return command.up(**given)


@lab.command("down")
@click.argument("name", required=False, metavar="[NAME|TOPOLOGY.yaml]")
@click.option("--all", "everything", is_flag=True, help="Every lab of this machine.")
@JSON
def lab_down(**given: Any) -> int:
    """Remove everything of a lab, also after a kill."""
    from nephoscope.commands import lab as command

    return command.down(**given)


@lab.command("list")
@JSON
def lab_list(**given: Any) -> int:
    """The labs here: state, hosts, what their links are made of."""
    from nephoscope.commands import lab as command

    return command.list_(**given)


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("place", metavar="LAB/HOST")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM…")
def lab_exec(**given: Any) -> int:
    """Run a program inside a host; the exit code is its own."""
    from nephoscope.commands import lab as command

    return command.exec_(**given)


@lab.command("check")
@click.argument("topology", type=PATH, required=False)
@click.option("--only", multiple=True, metavar="ID", help="Checks that begin so; repeatable.")
@JSON
def lab_check(**given: Any) -> int:
    """Hold every mechanism to its truth: set, measured, verdict.

    With TOPOLOGY, whether that file can be built here, and the mechanisms and settings that it
    uses.
    """
    from nephoscope.commands import lab as command

    return command.check(**given)


@click.group(cls=InOrder)
def simulate() -> None:
    """Where to put sites, how CPUs are shared, what choosing saves."""


def _simulation(verb: Function) -> Function:
    """What every simulation takes."""
    words: tuple[Callable[[Function], Function], ...] = (
        click.argument("scenario", required=False, metavar="[SCENARIO]"),
        click.option(
            "--set",
            "sets",
            multiple=True,
            metavar="PATH=VALUE",
            help="Of the scenario; repeatable.",
        ),
        click.option(
            "--replications",
            type=click.IntRange(1, 100_000),
            default=10,
            metavar="N",
            show_default=True,
            help="Times, each with other chance.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**63 - 1),
            metavar="N",
            help="Chance of the whole run (else the scenario's, else drawn).",
        ),
        STORE,
        JSON,
        FRESH,
    )
    for word in reversed(words):
        verb = word(verb)
    return verb


@simulate.command("geo")
@_simulation
@click.option("--place", is_flag=True, help="Ask where sites should stand instead.")
@click.option("--latency", metavar="RUN", help="Round trips that this run measured (net.rtt).")
def simulate_geo(**given: Any) -> int:
    """Response times and cost of sites for users around the world.

    SCENARIO is a YAML file or a built-in name; without one, the names are listed.
    """
    from nephoscope.simulation import command

    return command.geo(**given)


@simulate.command("scheduler")
@_simulation
def simulate_scheduler(**given: Any) -> int:
    """Shares, runs and waits of virtual machines under a scheduler.

    SCENARIO is a YAML file or a built-in name; without one, the names are listed.
    """
    from nephoscope.simulation import command

    return command.scheduler(**given)


@simulate.command("selection")
@_simulation
def simulate_selection(**given: Any) -> int:
    """What launching until an instance is fast saves, fleet by fleet.

    SCENARIO is a YAML file or a built-in name; without one, the names are listed.
    """
    from nephoscope.simulation import command

    return command.selection(**given)
