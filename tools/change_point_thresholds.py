"""Calibrates the thresholds of change points by simulation: stats/change_points/thresholds.json.

Series of WINDOW points without a step (tests/features/history/cases.py) are tested as `nephoscope
history` tests them. There is one threshold for steps beside independent noise and one for the
other noise models. Both are exceeded equally often, each at the worst kind of series for it, and
no kind has more series with an alarm than SHARE of the rate.

    .venv/bin/python tools/change_point_thresholds.py --series 1000
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.features.history.cases import STATIONARY  # noqa: E402

from nephoscope.stats.change_points import step_test  # noqa: E402
from nephoscope.stats.change_points.detection import STRIDE, USUAL_TESTS, WINDOW  # noqa: E402
from nephoscope.stats.change_points.noise import WHITE, NoiseModel  # noqa: E402

Scores = npt.NDArray[np.float64]

OUTPUT = ROOT / "src/nephoscope/stats/change_points/thresholds.json"
KINDS = (  # those of the tests that have alarms most often
    "noise grows to 2 times",
    "noise grows to 4 times",
    "noisy office hours",
    "AR(1) 0.9",
    "slow wave",
    "1/f noise",
)
FALSE_ALARMS = (0.01, 0.02, 0.05, 0.1, 0.2)
SEED = 75
"""Not the seed of the tests."""
COLUMNS = ("independent", "dependent")
SHARE = 0.9
"""Part of the rate that is used: the simulated series are not all there are."""
LOWEST = 4.0
"""Score up to which independent noise explains a step, so that no other model is tried."""


def maxima(task: tuple[str, int]) -> tuple[float, float]:
    """Returns the highest scores of a series, beside independent noise and beside other noise."""
    kind, seed = task
    at_s, values = STATIONARY[kind](np.random.default_rng([SEED, seed, KINDS.index(kind)]))
    highest = [0.0, 0.0]
    usual, age = WHITE, 0
    for end in range(step_test.MINIMUM_POINTS, WINDOW + 1, STRIDE):
        first = usual if age < USUAL_TESTS else WHITE
        test = step_test.step_test(at_s[:end], values[:end], limit=_lowest, usual=first)
        age += 1
        if not test.noise.is_white and test.noise != first:
            usual, age = test.noise, 0
        place = 0 if test.noise.is_white else 1
        highest[place] = max(highest[place], test.score)
    return highest[0], highest[1]


def _lowest(_: NoiseModel) -> float:
    return LOWEST


def table(rows: dict[str, Scores]) -> dict[str, object]:
    """Returns the document of thresholds. rows: the highest scores of the series of each kind."""
    document: dict[str, object] = {
        "made_by": "tools/change_point_thresholds.py",
        "window_points": WINDOW,
        "series_of_each_kind": min(len(of) for of in rows.values()),
        "kinds": list(rows),
        "share_of_rate_used": SHARE,
        "false_alarms": FALSE_ALARMS,
    }
    limits = [_limits(rows, rate) for rate in FALSE_ALARMS]
    for column, name in enumerate(COLUMNS):
        document[name] = [pair[column] for pair in limits]
    return document


def _limits(rows: dict[str, Scores], rate: float) -> list[float]:
    """Returns both thresholds: quantiles of one order, of which series of no kind exceed either
    more often than SHARE of the rate."""
    for order in np.geomspace(rate, rate / 10, 100):
        limits = [
            round(max(float(np.quantile(of[:, column], 1 - order)) for of in rows.values()), 2)
            for column in range(len(COLUMNS))
        ]
        if all(np.mean(np.any(of > limits, axis=1)) <= SHARE * rate for of in rows.values()):
            break
    return limits


def main() -> None:
    """Simulates, prints the thresholds and writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--series", type=int, default=1000, help="of each kind")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    rows = {}
    with ProcessPoolExecutor(arguments.processes) as pool:
        for kind in KINDS:
            tasks = [(kind, seed) for seed in range(arguments.series)]
            rows[kind] = np.array(list(pool.map(maxima, tasks, chunksize=20)))
            print(f"{kind}: {len(tasks)} series", flush=True)
    document = table(rows)
    for name in COLUMNS:
        print(name, document[name])
    arguments.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
