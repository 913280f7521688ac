"""`credits` of `nephoscope cloud`: does a rented type live on burst credits?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Excluded, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import Count, duration, option
from nephoscope.cli.kit.run_options import RunOptions
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.rented_options import MachineOptions

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult

_BEGIN_S = 300.0
"""Time to rent and to remove, in the default of --budget."""


@dataclass(frozen=True, slots=True)
class _CloudCreditsArguments:
    machines: MachineOptions = options.group(MachineOptions)
    load: str = option(
        "--load",
        click.Choice(("cpu", "disk", "network")),
        "Resource that is loaded; two machines of each type for a network.",
        default="cpu",
    )
    duration_s: float = option(
        "--duration", duration("5 s", "24 h"), "Time of load without a pause.", default="30min"
    )
    pause_s: float = option(
        "--pause", duration("0 s", "24 h"), "Pause before each time of load.", default="0s"
    )
    cycles: int = option(
        "--cycles", Count(1, 100), "Times of load; from two on the refill is measured.", default=1
    )
    run: RunOptions = options.group(RunOptions)


@command(
    cloud,
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --money 1 --dry-run",
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --load disk "
        "--money 1",
    ),
)
def credits_(args: _CloudCreditsArguments) -> int:
    """Measure burst credits: burst, baseline, size and refill.

    Rents a machine of each type, loads it for --duration, again after each --pause, and removes it.
    With --load network it sends to a second machine of its type. A credit that lasts longer than
    the load does not show. `nephoscope credits` analyses a file or a stored run in the same way.
    """
    from nephoscope.features.credits.plan import CreditRequest, plan_of

    request = CreditRequest(args.load, args.duration_s, args.pause_s, args.cycles)
    record = args.machines.record().model_copy(update={"count": request.machines})
    number = len(list(record.each())) // request.machines
    plan = plan_of(
        [record],
        request,
        budget=args.run.budget or _BEGIN_S + 1.2 * request.total_s * number,
        seed=args.run.seed,
        **args.machines.spending(),
    )
    return args.run.carry_out(plan, _text)


def _text(result: RunResult) -> str:
    from nephoscope.cli.kit import output
    from nephoscope.features.credits.section import build
    from nephoscope.report import terminal_output

    page = build(result)
    if page is None:
        return "No rates over time were measured."
    return terminal_output.render(
        page.title, [page], colour=output.colour_wanted(), width=output.width()
    ).rstrip("\n")
