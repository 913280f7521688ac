"""`nephoscope fleet`: which of many targets differ from the others, and in what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.options import flag, option, ratio, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.store import Store, StoredRun

ODD = 1
"""Exit code where a target is odd, as of the other checks."""


@click.command()
@repeated(
    "--target targets", "TARGET", "Host to measure; the first one serves the network benchmarks."
)
@option("--lab", "LAB", "Lab that is up, of which all hosts are targets.")
@option("--run name", "RUN", "Stored run to check instead of measuring.")
@flag("--no-network", "Do not exchange packets between the targets.")
@option(
    "--false-alarms",
    ratio(0.0001, 0.5),
    "Probability that a fleet of equal targets raises any alarm.",
    default="5%",
)
@option(
    "--margin",
    ratio(0, 0.99),
    "Largest relative difference from the fleet's median that counts as normal.",
    default="10%",
)
@options.SEED
@options.LABELS
@options.STORE
@options.JSON
def fleet(
    targets: Sequence[str],
    lab: str | None,
    name: str | None,
    no_network: bool,
    false_alarms: float,
    margin: float,
    seed: int | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Find the targets of a fleet that differ from the others.

    Compares duplex, speed and MTU of network ports, other facts, CPU, memory and disk speed, round
    trip, throughput and loss to the first target, and clocks. Exits with 1 if a target is odd.

    TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.features.fleet.result import SETTINGS, FleetCheck, check
    from nephoscope.features.fleet.section import section
    from nephoscope.results import analyse_run
    from nephoscope.store import Store

    if sum((bool(targets), lab is not None, name is not None)) != 1:
        raise UsageError(
            "`fleet` needs either targets, a lab or a stored run.",
            "Use --target for each host, --lab LAB or --run RUN.",
        )
    runs = Store(store)
    settings = {"false_alarms": false_alarms, "margin": margin}
    fleet_check: FleetCheck | None
    if name is not None:
        run = runs.open(name)
        known = run.manifest.stored.get(SETTINGS) or {}
        fleet_check, code = check(analyse_run.run_data(run), {**known, **settings}), 0
    else:
        hosts = targets or _hosts(str(lab))
        run, offsets = _measured(hosts, runs, network=not no_network, seed=seed)
        run.update(**{SETTINGS: {**settings, "clock_offsets": offsets}})
        result = measuring.reported(run)
        fleet_check, code = result.part(FleetCheck), measuring.exit_code(result, run)
    if fleet_check is None:
        return code
    present(fleet_check, section(fleet_check), as_json=as_json)
    return max(code, ODD if fleet_check.odd else 0)


def _hosts(lab: str) -> list[str]:
    """The hosts of a lab that is up, as texts of `--target`."""
    from nephoscope.measure.lab.provisioner import LABS

    return [f"lab:{lab}/{host}" for host in LABS.open(lab).hosts]


def _measured(
    texts: Sequence[str], store: Store, *, network: bool, seed: int | None
) -> tuple[StoredRun, dict[str, tuple[float, float]]]:
    """Measures all targets in one run, interleaved, and their clocks after it."""
    from nephoscope.features.fleet import clock, plan, rule

    records = options.targets(texts)
    if len(records) < rule.FEWEST_OF_FACTS:
        raise UsageError(
            f"A fleet needs {rule.FEWEST_OF_FACTS} targets or more, not {len(records)}.",
            f"Name more hosts; metrics are compared from {rule.FEWEST} targets on.",
        )
    run = measuring.executed(
        plan.fleet_plan(records, network=network, seed=seed), store, fresh=True
    )
    return run, asyncio.run(clock.clock_offsets(records))
