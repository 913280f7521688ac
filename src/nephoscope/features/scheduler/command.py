"""`nephoscope scheduler`: what takes the CPU away, and by which rule? A built-in plan, 8.5 s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import RESULT

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult


@dataclass(frozen=True, slots=True)
class _SchedulerArguments:
    targets: Sequence[str] = options.TARGETS
    duration_s: float | None = options.option(
        "--duration",
        options.duration("5 s", "1 h"),
        "Time that all observations take together, 5s to 1h [default: 8.5s].",
    )
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=RESULT,
    requests=MEASURES,
    examples=(
        "",
        "--duration 60s",
    ),
)
def scheduler(args: _SchedulerArguments) -> int:
    """Infer the hypervisor's CPU scheduling policy (takes 9 s).

    A longer TIME decides what 9 s leave unclear: long periods, and shares near 0 or 100 %.

    TARGET is local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.features.scheduler import plan as scheduler_plan
    from nephoscope.store import Store

    plan = scheduler_plan.scheduler(args.seed, duration_s=args.duration_s)
    if args.targets:
        plan = plan.model_copy(update={"targets": tuple(options.targets(args.targets))})
    # Always a new run: what a machine was yesterday says nothing of now.
    run = measuring.executed(plan, Store(args.store), fresh=True)
    return measuring.present(run, as_json=args.as_json, text_of=_text)


def _text(result: RunResult) -> str:
    from nephoscope.features.scheduler import terminal
    from nephoscope.features.scheduler.inference.verdict import SchedulerVerdicts

    verdicts = result.part(SchedulerVerdicts)
    return terminal.text(verdicts.targets if verdicts is not None else ())
