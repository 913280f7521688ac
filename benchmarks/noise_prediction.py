"""How close `nephoscope noise` predicts the A/A interval of the comparison that follows.

For each round: the prediction, then a comparison of the same command with itself, interleaved, both
by the command line. With --synthetic it draws values of which the noise is known instead, and holds
predictions against the median width of many comparisons.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _paired import ROOT, machine, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402
from tests.stats.test_detectable import (  # noqa: E402
    autoregressive,
    drifting,
    half_width,
    independent,
)

from nephoscope.stats import detectable  # noqa: E402

NEPHOSCOPE = str(ROOT / ".venv" / "bin" / "nephoscope")
WITHIN = 1.3
N = 20
"""Repetitions a side of the comparison that is predicted."""
PLAN = """version: 1
name: same
benchmarks:
  - benchmark: command
    params: {{argv: {argv}}}
repeat: {{min: {n}, max: {n}}}
"""


def printed(arguments: list[str]) -> Any:
    """Returns the JSON document of a command; ends with what it says where it fails."""
    done = subprocess.run([NEPHOSCOPE, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments} ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def measured(argv: list[str], seconds: str) -> tuple[float, float]:
    """Returns the predicted and the actual half width of one comparison."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-noise-") as folder:
        plan = Path(folder) / "same.yaml"
        plan.write_text(PLAN.format(argv=json.dumps(argv), n=N), encoding="utf-8")
        store = ["--store", f"{folder}/store"]
        found = printed(["noise", str(plan), "--for", seconds, "--repetitions", str(N), *store])
        (line,) = found["results"]
        (row,) = (row for row in line["comparisons"] if row["n"] == N)
        compared = printed(["compare", "--interleave", str(plan), str(plan), *store])
        comparison = next(
            found["comparison"]
            for found in compared["comparisons"]
            if found["metric"] == line["metric"]
        )
        ratio = comparison["ratio"]
        return row["half_width"]["value"], (ratio["high"] - ratio["low"]) / 2


def synthetic(predictions: int) -> list[dict[str, Any]]:
    """Returns the share of predictions within 30 %, by kind of noise and rounds measured."""
    kinds: dict[str, Callable[..., Any]] = {
        "independent": independent,
        "autocorrelation 0.6": autoregressive,
        "drifting level": drifting,
    }
    rows = []
    for name, noise in kinds.items():
        rng = np.random.default_rng(11)
        actual = float(np.median([half_width(noise(rng, N)) for _ in range(400)]))
        for rounds in (10, 20, 40, 80):
            ratios = []
            for seed in range(predictions):
                (row,) = detectable.detectable(*noise(rng, rounds), (N,), seed=seed)
                value = math.inf if row.half_width is None else row.half_width.value
                ratios.append(value / actual)
            within = sum(1 / WITHIN < ratio < WITHIN for ratio in ratios)
            rows.append(
                {
                    "noise": name,
                    "rounds": rounds,
                    "predictions": predictions,
                    "within": within,
                    "median_ratio": statistics.median(ratios),
                }
            )
            print(
                f"{name}, {rounds} rounds: {within} of {predictions} within 30 %, "
                f"median ratio {statistics.median(ratios):.2f}",
                flush=True,
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("argv", nargs="*", default=["sha256sum", sys.executable])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--for", dest="seconds", default="30s")
    parser.add_argument("--synthetic", type=int, default=0, metavar="PREDICTIONS")
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    if options.synthetic:
        record: dict[str, Any] = {"n": N, "synthetic": synthetic(options.synthetic)}
    else:
        pairs = []
        for number in range(options.rounds):
            predicted, actual = measured(options.argv, options.seconds)
            pairs.append({"predicted": predicted, "actual": actual, "load": os.getloadavg()[0]})
            print(
                f"round {number + 1}: predicted {predicted:.2%}, measured {actual:.2%}, "
                f"ratio {predicted / actual:.2f}, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        ratios = [pair["predicted"] / pair["actual"] for pair in pairs]
        within = sum(1 / WITHIN < ratio < WITHIN for ratio in ratios)
        print(f"{within} of {len(ratios)} within 30 %, median {statistics.median(ratios):.2f}")
        record = {"n": N, "argv": options.argv, "pairs": pairs, "machine": machine()}
    if options.write:
        kind = "synthetic" if options.synthetic else "measured"
        write_result(f"noise-prediction-{kind}", record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
