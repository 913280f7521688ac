"""`boot` of `nephoscope cloud`: how long machines take to be ready, by image, type and segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Excluded, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import Count, option
from nephoscope.cli.kit.run_options import RunOptions
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.estimates import SEGMENTS, estimate_cells
from nephoscope.features.cloud.rented_options import MachineOptions

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult
    from nephoscope.measure.plans import Plan

LAUNCH_S = 180.0
"""Time for one launch and removal, for the default of --budget."""


@dataclass(frozen=True, slots=True)
class _BootArguments:
    machines: MachineOptions = options.group(MachineOptions)
    launches: int = option("--count", Count(2, 1000), "Launches of each image and type.", default=6)
    run: RunOptions = options.group(RunOptions)


@command(
    cloud,
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --money 1 --dry-run",
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --count 10 --money 1",
    ),
)
def boot(args: _BootArguments) -> int:
    """Measure the time until machines are ready, by segment.

    Rents a machine of each image and type, then removes it and rents it anew --count times, images
    and types in random order: from the call to the cloud's answer, to running, to the start of the
    kernel and of init, to the first login. Everything is removed in the end.
    """
    return args.run.carry_out(_plan(args), _text)


def _plan(args: _BootArguments) -> Plan:
    from nephoscope import catalog
    from nephoscope.measure.plans.files.load import from_values
    from nephoscope.measure.runs.schedule.cells import INSTANCE

    target = args.machines.record()
    number = len(list(target.each()))
    budget_s = args.run.budget or LAUNCH_S * number * (args.launches + 1)
    values: dict[str, Any] = {
        "name": "cloud-boot",
        "question": "How long does a machine take to be ready, by image, type and segment?",
        "targets": [target],
        "benchmarks": [
            {
                "benchmark": catalog.HOST_BOOT,
                "params": {"level": INSTANCE},
                "headline": ["boot_reachable_ns"],
                "timeout": "20min",
            }
        ],
        "repeat": {"min": args.launches, "max": args.launches},
        "warmup": 0,
        "budget": budget_s,
        "seed": args.run.seed,
        **args.machines.spending(),
    }
    return from_values(values, catalog.load(), lambda _: "")


def _text(result: RunResult) -> str:
    from nephoscope import catalog

    rows = [
        (line.target, words, *estimate_cells(line.estimate))
        for target in result.run.targets
        for metric, words in SEGMENTS.items()
        for line in result.metrics
        if (line.benchmark, line.target, line.metric) == (catalog.HOST_BOOT, target, metric)
    ]
    head = ("machine", "segment", "median", "interval", "n")
    return (
        "Launches of rented machines, each measured from the call that rents it.\n"
        + output.table(head, rows, right=(2, 3, 4))
        + "\nThe first launch of each is not counted. Running and the first login are seen up to a "
        "second\nlate. Segments that a guest does not show are missing; they are not zero."
    )
