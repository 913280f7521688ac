"""How often `elastic` finds the worse one of two rules by its violations: recorded noise.

Reads the rounds of two equal rules in stored runs of `elastic`. An experiment draws as many rounds
as fit into `--minutes` for both rules together, with replacement, exchanges the rules of a round at
random, and multiplies the share of violated requests of the second one; the verdict is that of
`elastic`. Nothing is assumed of the distribution of the noise. The same is done with rounds of each
rule that are drawn apart: the difference is what it is worth that the rules of a round share the
phase of their decisions and what disturbs the machine.
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


def recorded(
    store: Store, names: Sequence[str], rules: Sequence[str]
) -> tuple[list[tuple[float, float]], float]:
    """Returns the shares of violated requests of two rules in each round, and a round's seconds.

    rules: names of both; empty: the first two of each run. Raises ValueError where the runs have
    too few rounds of them, or none of these rules.
    """
    pairs: list[tuple[float, float]] = []
    for name in names:
        elastic = analyse_run.build(store.open(name)).part(Elasticity)
        judged = [] if elastic is None else [e for e in elastic.autoscalers if not e.problems]
        wanted = [*rules] or [each.autoscaler for each in judged][:2]
        if elastic is None or len({*wanted} & {each.autoscaler for each in judged}) != 2:
            missing = " and ".join(wanted) or "two rules"
            raise ValueError(f"{name}: {missing} are not two autoscalers that are judged.")
        shares: list[dict[int, float]] = [
            {
                trial.round: (trial.slow + trial.failed) / trial.due
                for trial in elastic.trials
                if trial.autoscaler == each and not trial.is_left_out
            }
            for each in wanted
        ]
        pairs += [
            (shares[0][number], shares[1][number]) for number in shares[0] if number in shares[1]
        ]
    if len(pairs) < FEWEST_ROUNDS:
        raise ValueError(f"{len(pairs)} rounds are recorded, and {FEWEST_ROUNDS} are needed.")
    return pairs, elastic.trials[0].duration_s


def decided(
    pairs: Sequence[tuple[float, float]],
    rounds: int,
    factor: float,
    experiments: int,
    seed: int,
    *,
    is_paired: bool = True,
) -> dict[str, int]:
    """Returns the number of experiments by verdict on the second rule."""
    rng = np.random.default_rng(seed)
    shares, words = np.asarray(pairs), dict[str, int]()
    for _ in range(experiments):
        drawn = rng.choice(shares, rounds)
        if not is_paired:
            drawn[:, 1] = rng.choice(shares, rounds)[:, 1]
        drawn = rng.permuted(drawn, axis=1)
        comparison = compare.paired(
            drawn[:, 0].tolist(),
            (factor * drawn[:, 1]).tolist(),
            better=Better.LOWER,
            unit="ratio",
            confidence=0.95,
        )
        words[comparison.verdict.word] = words.get(comparison.verdict.word, 0) + 1
    return words


def rates(
    pairs: Sequence[tuple[float, float]],
    rounds: int,
    args: argparse.Namespace,
    *,
    is_paired: bool,
) -> tuple[float, float]:
    """Returns the shares of experiments that find a worse rule, and that tell equal ones apart."""
    worse, equal = (
        decided(pairs, rounds, factor, args.experiments, args.seed + place, is_paired=is_paired)
        for place, factor in enumerate((args.factor, 1.0))
    )
    false = equal.get("better", 0) + equal.get("worse", 0)
    return worse.get("worse", 0) / args.experiments, false / args.experiments


def main() -> int:
    """Prints both shares; 1 when one of them misses its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="stored runs of elastic with two equal rules")
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--rule", action="append", default=[], help="both [default: the first two]")
    parser.add_argument("--minutes", type=float, default=10.0, help="load of both rules together")
    parser.add_argument("--factor", type=float, default=1.2)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the result with the date")
    args = parser.parse_args()
    try:
        pairs, round_s = recorded(Store(args.store), args.runs, args.rule)
    except ValueError as error:
        print(f"elastic_power: {error}", file=sys.stderr)
        return 4
    rounds = max(1, round(60 * args.minutes / round_s / 2))
    found, false = rates(pairs, rounds, args, is_paired=True)
    apart_found, apart_false = rates(pairs, rounds, args, is_paired=False)
    shares = np.asarray(pairs)
    result: dict[str, Any] = {
        "recorded_rounds": len(pairs),
        "recorded_mean_ratio": float(shares.mean()),
        "recorded_cv_ratio": float(shares.std(axis=0, ddof=1).mean() / shares.mean()),
        "recorded_log_ratio_sd": float(np.log(shares[:, 1] / shares[:, 0]).std(ddof=1)),
        "rounds_of_an_experiment": rounds,
        "factor": args.factor,
        "experiments": args.experiments,
        "found_ratio": found,
        "false_ratio": false,
        "found_apart_ratio": apart_found,
        "false_apart_ratio": apart_false,
    }
    for name, value in result.items():
        print(f"{name}: {value:.4g}")
    if args.write:
        write_result("elastic-power", result)
    return 0 if found >= BOUNDS["worse"] and false <= BOUNDS["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
