"""Deployments simulated, and run in a lab with real servers and users: how well both agree.

Each deployment is simulated once and run in the lab `--rounds` times, in random order, each time
with arrivals drawn afresh. A region agrees when mean and p95 of every round are within 10 % of the
simulation; a deployment of which a region does not is one for which the simulation is unproven.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
from pathlib import Path
from typing import Any

from _paired import write_result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "truth"))
from backtest_lab import DEPLOYMENTS, Row, compare, measure, simulated

BOUND = 0.10


def region_record(rows: list[Row]) -> dict[str, Any]:
    """One region: every round's ratios, and whether all are within the bound."""
    ratios = {
        "mean_ratio": [row.mean_ratio for row in rows],
        "p95_ratio": [row.p95_ratio for row in rows],
    }
    worst = max(abs(one - 1) for values in ratios.values() for one in values)
    return {
        "lab_mean_ms": statistics.fmean(row.lab.mean_ms for row in rows),
        "lab_p95_ms": [row.lab.p95_ms for row in rows],
        "sim_mean_ms": rows[0].sim.mean_ms,
        "sim_p95_ms": rows[0].sim.p95_ms,
        "responses": [row.lab.n for row in rows],
        **ratios,
        "worst": worst,
        "agrees": worst <= BOUND,
    }


def main() -> int:
    """Runs the rounds; 1 when any region of any deployment is off by more than the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--length", type=float, default=1.0, help="of each round, times what a deployment asks for"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--network", default="10.91.0.0/16")
    parser.add_argument("--realtime", action="store_true", help="has no meaning here")
    parser.add_argument("--write", action="store_true", help="store the result with the date")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("backtest: needs root for its lab. Run it with sudo.", file=sys.stderr)
        return 4
    sims = {one.name: simulated(one, args.seed) for one in DEPLOYMENTS}
    rows: dict[str, dict[str, list[Row]]] = {one.name: {} for one in DEPLOYMENTS}
    for round_ in range(args.rounds):
        order = random.Random(args.seed + round_).sample(DEPLOYMENTS, len(DEPLOYMENTS))
        for deployment in order:
            seed = args.seed * 1000 + round_
            seconds = args.length * deployment.seconds
            lab = measure(deployment, f"pb-{os.getpid()}", args.network, seconds, seed)
            for row in compare(deployment, lab, sims[deployment.name]):
                print(f"round {round_ + 1}: {row.text()}", flush=True)
                rows[deployment.name].setdefault(row.region, []).append(row)
    record = {
        name: {region: region_record(found) for region, found in regions.items()}
        for name, regions in rows.items()
    }
    proven = {name: all(one["agrees"] for one in found.values()) for name, found in record.items()}
    for name, agrees in proven.items():
        worst = max(one["worst"] for one in record[name].values())
        verdict = "agrees" if agrees else "UNPROVEN"
        print(f"{name}: {verdict}, at most {100 * worst:.1f} % off (bound {100 * BOUND:.0f} %)")
    if args.write:
        write_result(
            "backtest",
            {
                "seed": args.seed,
                "rounds": args.rounds,
                "seconds": {one.name: args.length * one.seconds for one in DEPLOYMENTS},
                "bound": BOUND,
                "proven": proven,
                "deployments": record,
            },
        )
    return 0 if all(proven.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
