"""`nephoscope fleet`: which of many targets differ from the others, and in what."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN, TARGET
from nephoscope.cli.kit.options import flag, option, ratio, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.store import Store, StoredRun

ODD = 1
"""Exit code where a target is odd, as of the other checks."""


@dataclass(frozen=True, slots=True)
class _FleetArguments:
    targets: Sequence[str] = repeated(
        "--target",
        TARGET,
        "Host to measure; the first one serves the network benchmarks.",
        is_local=True,
    )
    lab: str | None = option(
        "--lab", "LAB", "Lab that is up, of which all hosts are targets.", is_local=True
    )
    name: str | None = option("--run", RUN, "Stored run to check instead of measuring.")
    no_network: bool = flag(
        "--no-network", "Do not exchange packets between the targets.", is_local=True
    )
    false_alarms: float = option(
        "--false-alarms",
        ratio(0.0001, 0.5),
        "Probability that a fleet of equal targets raises any alarm.",
        default="5%",
    )
    margin: float = option(
        "--margin",
        ratio(0, 0.99),
        "Largest relative difference from the fleet's median that counts as normal.",
        default="10%",
    )
    seed: int | None = options.SEED.local()
    labels: Mapping[str, str] = options.LABELS
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("fleet", ".features.fleet.result:FleetCheck"),
    requests=Query(needs=("run",)),
    examples=(
        "--target ssh:node1 --target ssh:node2 --target ssh:node3",
        "--run latest --false-alarms 1%",
    ),
)
def fleet(args: _FleetArguments) -> int:
    """Find the targets of a fleet that differ from the others.

    Compares duplex, speed and MTU of network ports, other facts, CPU, memory and disk speed, round
    trip, throughput and loss to the first target, and clocks. Exits with 1 if a target is odd.

    TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.features.fleet.result import SETTINGS, FleetCheck, stored_check
    from nephoscope.features.fleet.section import section
    from nephoscope.store import Store
    from nephoscope.store.engines import using

    if sum((bool(args.targets), args.lab is not None, args.name is not None)) != 1:
        raise UsageError(
            "`fleet` needs either targets, a lab or a stored run.",
            "Use --target for each host, --lab LAB or --run RUN.",
        )
    runs = Store(args.store)
    settings = {"false_alarms": args.false_alarms, "margin": args.margin}
    fleet_check: FleetCheck | None
    if args.name is not None:
        path = runs.open(args.name).path
        with using(args.engine, str(runs.path)) as engine:
            (fleet_check,), code = engine.each(partial(stored_check, settings), [path]), 0
    elif args.engine:
        raise UsageError("--engine reads a stored run.", "Omit it, or use --run RUN.")
    else:
        hosts = args.targets or _hosts(str(args.lab))
        run, offsets = _measured(hosts, runs, network=not args.no_network, seed=args.seed)
        run.update(**{SETTINGS: {**settings, "clock_offsets": offsets}})
        result = measuring.reported(run)
        fleet_check, code = result.part(FleetCheck), measuring.exit_code(result, run)
    if fleet_check is None:
        return code
    present(fleet_check, section(fleet_check), as_json=args.as_json)
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
