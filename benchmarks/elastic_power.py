"""How often a rule that violates its objective more is told from another one: recorded noise.

Reads the rounds of one autoscaler in stored runs of `elastic`. An experiment draws as many rounds
as fit into `--minutes` for each of two rules from them, with replacement, and multiplies the share
of violated requests of the second one; the verdict is that of `elastic`. Nothing is assumed of the
distribution of the noise. That rounds of both rules share what disturbs them is not used, so that
experiments with pairs decide at least as often.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _paired import write_result

from nephoscope.core.model import Better
from nephoscope.features.elastic.records import Elasticity
from nephoscope.results import analyse_run
from nephoscope.stats import compare
from nephoscope.store import Store

FEWEST_ROUNDS = 10
"""Recorded rounds below which their noise is not known."""
BOUNDS = {"worse": 0.90, "equal": 0.05}


def recorded(store: Store, names: Sequence[str], rule: str) -> tuple[list[float], float]:
    """Returns the share of violated requests of each round that counts, and the seconds of a round.

    Raises ValueError where the runs have too few of them, or none of this rule.
    """
    rounds = []
    for name in names:
        elastic = analyse_run.build(store.open(name)).part(Elasticity)
        judged = {} if elastic is None else {each.autoscaler: each for each in elastic.autoscalers}
        wanted = rule or next(iter(judged), "")
        if elastic is None or wanted not in judged or judged[wanted].problems:
            raise ValueError(f"{name}: no autoscaler {wanted} that is judged.")
        rounds += [
            trial
            for trial in elastic.trials
            if trial.autoscaler == wanted and not trial.is_left_out
        ]
    if len(rounds) < FEWEST_ROUNDS:
        raise ValueError(f"{len(rounds)} rounds are recorded, and {FEWEST_ROUNDS} are needed.")
    shares = [(trial.slow + trial.failed) / trial.due for trial in rounds]
    return shares, rounds[0].duration_s


def decided(
    shares: Sequence[float], rounds: int, factor: float, experiments: int, seed: int
) -> dict[str, int]:
    """Returns the number of experiments by verdict on the second rule."""
    rng = np.random.default_rng(seed)
    words: dict[str, int] = {}
    for _ in range(experiments):
        first, second = rng.choice(np.asarray(shares), (2, rounds))
        comparison = compare.paired(
            first.tolist(),
            (factor * second).tolist(),
            better=Better.LOWER,
            unit="ratio",
            confidence=0.95,
        )
        words[comparison.verdict.word] = words.get(comparison.verdict.word, 0) + 1
    return words


def main() -> int:
    """Prints both shares; 1 when one of them misses its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="stored runs of elastic")
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--rule", default="", help="autoscaler [default: the first]")
    parser.add_argument("--minutes", type=float, default=10.0, help="load of each rule")
    parser.add_argument("--factor", type=float, default=1.2)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the result with the date")
    args = parser.parse_args()
    try:
        shares, round_s = recorded(Store(args.store), args.runs, args.rule)
    except ValueError as error:
        print(f"elastic_power: {error}", file=sys.stderr)
        return 4
    rounds = max(1, round(60 * args.minutes / round_s))
    worse = decided(shares, rounds, args.factor, args.experiments, args.seed)
    equal = decided(shares, rounds, 1.0, args.experiments, args.seed + 1)
    result: dict[str, Any] = {
        "recorded_rounds": len(shares),
        "recorded_mean_ratio": float(np.mean(shares)),
        "recorded_cv_ratio": float(np.std(shares, ddof=1) / np.mean(shares)),
        "rounds_of_an_experiment": rounds,
        "factor": args.factor,
        "experiments": args.experiments,
        "found_ratio": worse.get("worse", 0) / args.experiments,
        "false_ratio": (equal.get("better", 0) + equal.get("worse", 0)) / args.experiments,
    }
    for name, value in result.items():
        print(f"{name}: {value:.4g}")
    if args.write:
        write_result("elastic-power", result)
    is_good = result["found_ratio"] >= BOUNDS["worse"] and result["false_ratio"] <= BOUNDS["equal"]
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
