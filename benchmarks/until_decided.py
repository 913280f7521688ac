"""Rounds until a comparison is decided, against a fixed number of rounds, on drawn values.

Counted are the rounds of `--until-decided`, which looks after every round, how often its verdict is
wrong, and how often a comparison of a fixed number of rounds has a verdict. Both have the margin of
3 % and 95 %; each side has independent log-normal noise.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from _paired import ROOT, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.measure.runs.test_deciding import of_targets, sides  # noqa: E402
from tests.measure.runs.test_progress import drive  # noqa: E402

from nephoscope.core.model import Better  # noqa: E402
from nephoscope.stats import compare  # noqa: E402

FIXED = (30, 100)
"""Most rounds of `bench --command` and of a plan, unless more are asked for."""


def until_decided(seed: int, ratio: float, noise: float) -> tuple[int, str]:
    """Returns the rounds of a run and how it ended."""
    progress, _ = drive(of_targets(min=10), sides(seed, ratio, noise))
    of_b = next(outcome for outcome in progress.outcomes() if outcome.target == "b")
    return of_b.n, "differ" if "differ" in of_b.reason else of_b.word


def fixed(seed: int, ratio: float, noise: float, rounds: int) -> str:
    """Returns the verdict after so many rounds."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a, b = np.exp(noise * rng.normal(size=(2, rounds)))
    return compare.paired(a, ratio * b, better=Better.LOWER).verdict.word


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    rows = []
    for noise in (0.02, 0.05, 0.1):
        for ratio in (1.0, 1.1, 1.2, 1.5):
            found = [until_decided(seed, ratio, noise) for seed in range(options.runs)]
            row = {
                "noise": noise,
                "ratio": ratio,
                "runs": options.runs,
                "median_rounds": statistics.median(n for n, _ in found),
                "told_to_differ": sum(word == "differ" for _, word in found),
                "equivalent": sum(word == "decided" for _, word in found),
            }
            for rounds in FIXED:
                words = [fixed(seed, ratio, noise, rounds) for seed in range(options.runs)]
                row[f"decided_by_{rounds}"] = sum(word != "inconclusive" for word in words)
                row[f"told_to_differ_by_{rounds}"] = sum(
                    word in ("better", "worse") for word in words
                )
            rows.append(row)
            print(row, flush=True)
    if options.write:
        write_result("until-decided", {"margin": 0.03, "confidence": 0.95, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
