"""`nephoscope load URL`: requests per second and latency of a server, in one command."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import RESULT
from nephoscope.cli.kit.options import Count, argument, duration, option
from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.model import TrialStatus
from nephoscope.features.load.options import (
    GENERATORS,
    RATE,
    RequestOptions,
    generator_hosts,
    params_of,
    sentence_of,
)

if TYPE_CHECKING:
    from nephoscope.store import StoredRun

_DEFAULT_TRIALS = 10
_LONG_TRIAL_S = 1.0
"""Only for the sake of an interval are trials shorter."""
_WARMUP_S, _WARMUP_SHARE = 0.2, 0.1
"""Limit of a trial's warm-up, and its share of a short trial: the user waits for both."""
TRIALS_FAILED = 3
"""Exit code where some trials failed."""


@dataclass(frozen=True, slots=True)
class _LoadArguments:
    url: str = argument()
    rate: float | None = option(
        "-r --rate",
        RATE,
        "Requests per second of an open loop, e.g. 1000 or 60/min [default: closed loop].",
    )
    duration_s: float = option(
        "-d --duration",
        duration("1 s", "24 h"),
        "Time under load, over all trials with their warm-up.",
        default="30s",
    )
    trials: int | None = option(
        "--trials",
        Count(1, 1000),
        "Number of trials that the time is divided into, of 0.5 s at least; 6 or more give "
        "intervals [default: 10, or fewer in a short time].",
    )
    generators: str = GENERATORS
    requests: RequestOptions = options.group(RequestOptions)
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON


@command(
    prints=RESULT,
    requests=MEASURES,
    examples=(
        "http://127.0.0.1:8080/",
        "http://127.0.0.1:8080/search -r 1000 -c 50 -d 1min",
        "http://127.0.0.1:8080/ -r 1000 -c 50 --generators 2",
    ),
)
def load(args: _LoadArguments) -> int:
    """Put an HTTP server under load; print rate and latency.

    Without --rate, each connection sends its next request after a response (closed loop): it shows
    the highest rate, and hides what users wait while the server stalls. With --rate, requests are
    due at set times (open loop), and latency counts from there. Several generators share rate and
    connections, and their histograms are added: percentiles are those of all requests.
    """
    from nephoscope.core.reading import yamltext
    from nephoscope.features.load import terminal
    from nephoscope.features.load.live import LoadProgress
    from nephoscope.features.load.plan import plan_of
    from nephoscope.store import Store

    trials = _trials(args.trials, args.duration_s)
    trial_s = args.duration_s / trials
    params = params_of(args.url, args.requests)
    if args.rate is not None:
        params |= {
            "rate_per_s": args.rate,
            "arrivals": "poisson" if args.requests.poisson else "constant",
        }
    elif args.requests.poisson:
        raise UsageError("--poisson needs a rate.", "Add --rate 1000, for example.")
    params |= {name: yamltext.parse_scalar(value) for name, value in args.requests.values.items()}
    measured_s = trial_s
    if "warmup_ns" not in params:
        warmup_s = min(_WARMUP_S, trial_s * _WARMUP_SHARE)
        params["warmup_ns"] = round(warmup_s * 1e9)
        measured_s -= warmup_s
    targets = generator_hosts(args.generators, args.requests.target, args.requests.connections)
    plan = plan_of(params, targets, trials=trials, trial_s=measured_s, seed=args.seed)
    progress = LoadProgress(sys.stderr)
    try:
        run = measuring.executed(
            plan, Store(args.store), fresh=True, progress=lambda stream: progress
        )
    except RunFailed:
        if len(targets) > 1 and progress.run is not None and not args.as_json:
            _account_for(progress.run)
        raise
    head = sentence_of(params, trials, trial_s)
    if len(targets) > 1:
        names = ", ".join(target.name for target in targets)
        head += f"; {len(targets)} generators ({names})"
    code = measuring.present(
        run,
        as_json=args.as_json,
        full=args.full_report,
        text_of=None
        if args.full_report
        else lambda result: terminal.text(result, params["url"], head),
    )
    return code or _exit_code_of_failures(run)


def _account_for(run: StoredRun) -> None:
    """Prints what the generators of a run sent in which no trial counts."""
    from nephoscope.features.load import terminal
    from nephoscope.results import analyse_run

    if run.path.exists():
        output.say("\n\n".join(terminal.accounts(analyse_run.build(run))))


def _trials(wanted: int | None, duration_s: float) -> int:
    """Returns the number of trials. UsageError where the time is too short for those asked for."""
    from nephoscope.features.load.plan import MIN_TRIAL_S
    from nephoscope.stats.statistics.histograms import LEAST_TRIALS

    room = max(1, int(duration_s / MIN_TRIAL_S))
    if wanted is not None and wanted > room:
        raise UsageError(
            f"{wanted} trials in {duration_s:g} s are too short: a trial takes at least "
            f"{MIN_TRIAL_S:g} s.",
            f"Use `-d {math.ceil(wanted * MIN_TRIAL_S)}s`, or `--trials {room}`.",
        )
    if wanted is not None:
        return wanted
    long_trials = max(1, min(_DEFAULT_TRIALS, int(duration_s / _LONG_TRIAL_S)))
    return max(long_trials, LEAST_TRIALS) if room >= LEAST_TRIALS else long_trials


def _exit_code_of_failures(run: StoredRun) -> int:
    """Returns 3 with a sentence where trials failed, as when the server died; else 0.

    Of several generators also where no trial counts for all of them.
    """
    records = [record for record in run.records() if record.key.round > 0]
    failed = [record for record in records if record.status is TrialStatus.FAILED]
    if not failed:
        excluded = {record.key.round for record in records if record.reasons}
        if excluded >= {record.key.round for record in records}:
            output.warn("No trial counts, because each has a generator that does not count.")
            return TRIALS_FAILED
        return 0
    why = f" Reason: {failed[0].reasons[0]}" if failed[0].reasons else ""
    output.warn(
        f"{len(failed)} of {len(records)} trials failed; the results are those of the others.{why}"
    )
    return TRIALS_FAILED
