"""`nephoscope capacity URL`: the highest rate at which a server meets an objective."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, Document, command
from nephoscope.cli.kit.options import argument, option
from nephoscope.core.errors import Interrupted, RunFailed, TargetError, UsageError
from nephoscope.features.load.options import RequestOptions, params_of

if TYPE_CHECKING:
    from nephoscope.features.load.capacity import (
        CapacityStage,
        Costs,
        Search,
        SearchLimits,
        StagePlan,
    )
    from nephoscope.features.load.objective import LatencyObjective
    from nephoscope.features.load.records import CapacityResult
    from nephoscope.measure.targets.kinds.record import TargetRecord
    from nephoscope.store import Store, StoredRun

_BUDGET_S = 120.0
_CLOSED_LOOP_TRIALS = 3
_CLOSED_LOOP_S = 2.0
_LEAST_BUDGET_S = 15.0
"""Three trials of a closed loop and some of the search, of a second each."""
_CLOSED_LOOP_SHARE = 0.05
"""Of the budget, that a trial of the closed loop may take."""
_TIMEOUT_RATIO = 4
_LEAST_TIMEOUT_S = 1.0
"""In the search, a request that takes so many times the objective's limit is given up: it missed
the limit, and the budget does not wait for it."""
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class _CapacityArguments:
    url: str = argument()
    objective_text: str = option(
        "--objective",
        "'pN < TIME'",
        "Objective of response time, e.g. 'p99 < 20ms'.",
        required=True,
    )
    precision: float = option(
        "--precision",
        options.FiniteRange(0.005, 0.5),
        "Half-width of the interval, relative to the rate, at which the search ends.",
        default=0.05,
        metavar="RATIO",
    )
    requests: RequestOptions = options.group(RequestOptions)
    to: Path | None = options.REPORT_FILE
    budget: float | None = options.BUDGET
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("capacity", ".features.load.records:CapacityResult"),
    requests=MEASURES,
    examples=(
        "http://127.0.0.1:8080/ --objective 'p99 < 20ms'",
        "http://127.0.0.1:8080/ --objective 'p95 < 100ms' --budget 5min",
    ),
)
def capacity(args: _CapacityArguments) -> int:
    """Find the highest rate at which a server meets an objective.

    Measures the rate of a closed loop, then searches below it: a few rates at a time, interleaved,
    where the trials so far tell most. Failed requests count as slower than the objective's limit.
    """
    from nephoscope.core.reading import yamltext
    from nephoscope.features.load import capacity as search
    from nephoscope.features.load import stored_search
    from nephoscope.features.load.objective import LatencyObjective
    from nephoscope.measure.targets.kinds import parse
    from nephoscope.store import Store

    objective = LatencyObjective.of(args.objective_text)
    began_s, budget_s = time.monotonic(), args.budget or _BUDGET_S
    if budget_s < _LEAST_BUDGET_S:
        raise UsageError(
            f"A search takes at least {_LEAST_BUDGET_S:g} s.", "Use --budget 2min, for example."
        )
    params = params_of(args.url, args.requests)
    params |= {name: yamltext.parse_scalar(value) for name, value in args.requests.values.items()}
    costs = search.Costs()
    server = _Server(params, parse(args.requests.target), Store(args.store), args.seed, objective)
    closed_loop_s = max(1.0, min(_CLOSED_LOOP_S, _CLOSED_LOOP_SHARE * budget_s))
    closed_loop_per_s = server.closed_loop_per_s(closed_loop_s, budget_s, costs)
    limit_s = max(_LEAST_TIMEOUT_S, _TIMEOUT_RATIO * objective.limit_ns / 1e9)
    params["timeout_ns"] = min(params["timeout_ns"], round(limit_s * 1e9))
    params["arrivals"] = "poisson" if args.requests.poisson else "constant"
    left_s = budget_s - (time.monotonic() - began_s)
    limits = search.SearchLimits(args.precision, left_s, _CONFIDENCE)
    searched = search.search(server.measure, objective, closed_loop_per_s, limits, costs=costs)
    result = _result(searched, server, closed_loop_per_s, limits)
    stored_search.write(server.stored_runs(), result)
    if args.to is not None:
        _write(result, args.to)
    if args.as_json:
        output.document(result)
    else:
        output.say(_text(result))
    return 0 if searched.capacity.n else measuring.NOTHING_VALID


class _Server:
    """The server under load: measures rates, and remembers the runs."""

    def __init__(
        self,
        params: dict[str, Any],
        target: TargetRecord,
        store: Store,
        seed: int | None,
        objective: LatencyObjective,
    ) -> None:
        self.params = params
        self.objective = objective
        self.runs: list[str] = []
        self._target = target
        self._store = store
        self._seed = seed

    def stored_runs(self) -> list[StoredRun]:
        """Returns the runs of the search, each once."""
        return [self._store.open(run) for run in dict.fromkeys(self.runs)]

    def closed_loop_per_s(self, trial_s: float, limit_s: float, costs: Costs) -> float:
        """Returns the median rate of a closed loop; `costs` learn what its trials took.

        Raises RunFailed where no trial is valid.
        """
        from nephoscope.results import analyse_run

        began_s = time.monotonic()
        run, failure = self._executed(_CLOSED_LOOP_TRIALS, trial_s, limit_s)
        if failure is not None:
            raise failure
        costs.learn(time.monotonic() - began_s, _CLOSED_LOOP_TRIALS, trial_s, _spent_s(run))
        (line,) = (
            line for line in analyse_run.build(run).metrics if line.metric == "requests_per_s"
        )
        return line.estimate.value

    def measure(self, plan: StagePlan) -> CapacityStage:
        """See `nephoscope.features.load.capacity.Measure`."""
        from nephoscope.features.load.capacity import CapacityStage
        from nephoscope.features.load.outcomes import outcomes_of

        rates = sorted({float(f"{rate:.4g}") for rate in plan.rates_per_s})
        run, failure = self._executed(plan.rounds, plan.trial_s, plan.limit_s, rates)
        outcomes = outcomes_of(run, self.objective)
        excluded = max(0, plan.rounds * len(rates) - len(outcomes))
        return CapacityStage(outcomes, excluded, failure, _spent_s(run))

    def _executed(
        self, trials: int, trial_s: float, limit_s: float, rates_per_s: list[float] | None = None
    ) -> tuple[StoredRun, RunFailed | None]:
        """The run of these trials, and its failure where none of them is valid.

        limit_s: seconds after which it ends with the trials that are measured by then.
        """
        from nephoscope.features.load.live import LoadProgress
        from nephoscope.features.load.plan import plan_of
        from nephoscope.measure import runs

        plan = plan_of(
            self.params,
            [self._target],
            trials=trials,
            trial_s=trial_s,
            name="capacity",
            rates_per_s=rates_per_s,
            seed=None if self._seed is None else self._seed + len(self.runs),
        )
        progress, began_s = LoadProgress(sys.stderr), time.monotonic()
        failure = None
        try:
            run = measuring.executed(
                plan, self._store, fresh=True, progress=lambda _: progress, limit_s=limit_s
            )
            runs.mark_reported(run)
        except (Interrupted, TargetError):
            raise
        except RunFailed as error:
            if progress.run is None or not progress.run.path.exists():
                if time.monotonic() - began_s >= limit_s:
                    raise _out_of_time(limit_s) from None
                raise
            run, failure = progress.run, error
        self.runs.append(run.id)
        return run, failure


def _out_of_time(limit_s: float) -> RunFailed:
    """The error where a run ended before its first trial."""
    return RunFailed(
        f"The first trial had not ended after {limit_s:.0f} s: this machine is too busy for the "
        "budget.",
        "Use a larger --budget, such as 2min, or wait until other programs have ended.",
    )


def _spent_s(run: StoredRun) -> list[float]:
    """Seconds that each trial of a run took, in their order."""
    return [record.spent_s for record in sorted(run.records(), key=lambda trial: trial.position)]


def _result(
    search_result: Search, server: _Server, closed_loop_per_s: float, limits: SearchLimits
) -> CapacityResult:
    from nephoscope.core.model import Estimate
    from nephoscope.features.load import capacity as search
    from nephoscope.features.load.records import CapacityResult

    sentence, known = search.conclusion(search_result, server.objective, _CONFIDENCE)
    params: Mapping[str, Any] = server.params
    estimate = Estimate(
        search_result.capacity.rate_per_s,
        search_result.capacity.low,
        search_result.capacity.high,
        _CONFIDENCE,
        search_result.capacity.n,
        "per_s",
        "posterior of a logistic curve over rates",
    )
    return CapacityResult(
        url=params["url"],
        objective=str(server.objective),
        connections=params["connections"],
        capacity_per_s=estimate if known else None,
        sentence=sentence,
        closed_loop_per_s=closed_loop_per_s,
        tried=search_result.tried,
        excluded_trials=search_result.excluded,
        runs=tuple(server.runs),
        limit_ns=server.objective.limit_ns,
        stages=search_result.stages,
        remarks=tuple(search.remarks(search_result, server.objective, limits)),
    )


def _write(result: CapacityResult, to: Path) -> None:
    from nephoscope.features.load.capacity_section import section
    from nephoscope.report import files

    title = f"Capacity of {result.url}"
    files.write([to], title, result.objective, [section(result)], result, "Name another file.")
    output.log(f"Written: {to}")


def _text(result: CapacityResult) -> str:
    rows: list[tuple[str, ...]] = [
        (
            f"  {trial_rate.rate_per_s:,.0f}/s",
            str(trial_rate.trials),
            str(trial_rate.met),
            str(trial_rate.sender_late or ""),
        )
        for trial_rate in result.tried
    ]
    head: tuple[str, ...] = ("  RATE", "TRIALS", "OBJECTIVE MET", "SENDER LATE")
    if not any(trial_rate.sender_late for trial_rate in result.tried):
        head, rows = head[:-1], [row[:-1] for row in rows]
    parts = [
        f"{result.url}\nclosed loop with {result.connections} connections: "
        f"{result.closed_loop_per_s:,.0f} requests per second",
        output.table(head, rows, right=range(len(head))),
        " ".join([result.sentence, *result.remarks]),
    ]
    if result.excluded_trials:
        parts.append(
            f"! {result.excluded_trials} trials were excluded; `nephoscope show {result.runs[-1]}` "
            "prints why."
        )
    parts.append(f"runs {result.runs[0]} to {result.runs[-1]}")
    return "\n\n".join(parts)
