"""Coverage and width of the median's interval by how repetitions are given out: Monte Carlo.

Eight settings with log-normal noise of 0.5 % to 20 % share a budget of sixteen rounds. `even`
measures every setting in every round, `widest` gives what is left after ten rounds to the widest
intervals, `fixed` looks at nothing and takes sixteen of each.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys

from _paired import write_result

from nephoscope import catalog
from nephoscope.core.model import TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.stats.statistics.estimates import median

SPREADS = (0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.14, 0.20)
ROUNDS = 16
CATALOG = catalog.load()


def plan_of(allocation: str) -> Plan:
    values = {"value": [float(n + 1) for n in range(len(SPREADS))]}
    repeat = {"min": ROUNDS, "max": ROUNDS} if allocation == "fixed" else {"allocation": allocation}
    return Plan.model_validate(
        {
            "name": "allocation",
            "benchmarks": [{"benchmark": "null", "factors": values}],
            "repeat": repeat,
            "warmup": 0,
            "budget": ROUNDS * len(SPREADS),
        }
    )


def run(plan: Plan, seed: int) -> list[list[float]]:
    """Returns the values of each setting of one simulated run; each trial takes a second."""
    draws = [random.Random(f"{seed}/{index}") for index in range(len(SPREADS))]
    progress = Progress(plan, plans.expand(plan, CATALOG), {"null": CATALOG.benchmark("null")})
    values: list[list[float]] = [[] for _ in SPREADS]
    for number in progress.rounds():
        for index, target in progress.begin_round(number):
            if progress.out_of_time([(index, target)]):
                progress.end_by_budget()
                break
            value = draws[index].lognormvariate(0, SPREADS[index])
            values[index].append(value)
            key = TrialKey(number, index, target)
            record = TrialRecord(
                key, "null", {}, {}, TrialStatus.VALID, (), 0, 0.0, 1, {}, spent_s=1.0
            )
            progress.add(record, {("null_ns", "{}"): value})
        progress.end_round()
    return values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    results = {}
    for allocation in ("fixed", "even", "widest"):
        plan = plan_of(allocation)
        covered, widths, n = [], [], []
        for seed in range(options.runs):
            for values in run(plan, seed):
                estimate = median(values, unit="")
                assert estimate.low is not None
                assert estimate.high is not None
                covered.append(estimate.low <= 1 <= estimate.high)
                widths.append((estimate.high - estimate.low) / 2 / estimate.value)
                n.append(len(values))
        by_setting = [statistics.fmean(covered[i :: len(SPREADS)]) for i in range(len(SPREADS))]
        results[allocation] = {
            "coverage": statistics.fmean(covered),
            "coverage_by_setting": by_setting,
            "half_width_by_setting": [
                statistics.median(widths[i :: len(SPREADS)]) for i in range(len(SPREADS))
            ],
            "mean_n_by_setting": [
                statistics.fmean(n[i :: len(SPREADS)]) for i in range(len(SPREADS))
            ],
        }
        result = results[allocation]
        print(
            f"{allocation:7s} coverage {result['coverage']:.4f}, lowest {min(by_setting):.3f}; "
            f"median half-widths {' '.join(f'{w:.2%}' for w in result['half_width_by_setting'])}; "
            f"n {' '.join(f'{m:.1f}' for m in result['mean_n_by_setting'])}"
        )
    if options.write:
        write_result("allocation_coverage", {"runs": options.runs, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
