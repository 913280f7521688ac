"""Calibrates the thresholds of change points by simulation: features/history/thresholds.json.

Series of WINDOW points without a step are tested as `nephoscope history` tests them. There is one
threshold for steps beside independent noise and one for the other noise models. Each is the
highest score of a series that a share of the series exceeds, at the worst of its kinds of series,
with the margin SHARE for series of other kinds.

    .venv/bin/python tools/change_point_thresholds.py --series 1000
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nephoscope.features.history import step_test
from nephoscope.features.history.change_points import STRIDE, USUAL_TESTS, WINDOW
from nephoscope.features.history.noise import WHITE, NoiseModel
from nephoscope.features.history.seasons import DAY_S

Floats = npt.NDArray[np.float64]

OUTPUT = Path(__file__).parents[1] / "src/nephoscope/features/history/thresholds.json"
KINDS = ("independent", "noise grows to 4 times", "AR(1) 0.6", "AR(1) 0.9")
FALSE_ALARMS = (0.01, 0.02, 0.05, 0.1, 0.2)
SHARE = 0.6
"""Part of the rate that is used: the simulated series are not all there are."""
LOWEST = 4.0
"""Score below which no threshold can lie, so that no other noise model is tried."""
SETTLING = 200
"""Points before a series begins, so that it is stationary."""


def drawn(rng: np.random.Generator, kind: str) -> Floats:
    """Returns a series without a step."""
    noise = rng.standard_normal(WINDOW + SETTLING)
    if kind.startswith("AR"):
        correlation = float(kind.split()[1])
        for index in range(1, noise.size):
            noise[index] += correlation * noise[index - 1]
    values = noise[SETTLING:]
    if kind.startswith("noise"):
        values[rng.integers(60, 140) :] *= 4
    return np.asarray(values, dtype=np.float64)


def maxima(task: tuple[str, int]) -> tuple[float, float]:
    """Returns the highest scores of a series, beside independent noise and beside other noise."""
    kind, seed = task
    values = drawn(np.random.default_rng([seed, KINDS.index(kind)]), kind)
    # Hourly series have seasons to fit.
    at_s = np.arange(WINDOW, dtype=np.float64) * (3600.0 if seed % 2 else DAY_S)
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
    document: dict[str, object] = {
        "made_by": "tools/change_point_thresholds.py",
        "window_points": WINDOW,
        "series_of_each_kind": arguments.series,
        "kinds": KINDS,
        "share_of_rate_used": SHARE,
        "false_alarms": FALSE_ALARMS,
    }
    for column, name in enumerate(("independent", "dependent")):
        # Either way of an alarm has half of the rate.
        scores = [
            max(float(np.quantile(of[:, column], 1 - SHARE * rate / 2)) for of in rows.values())
            for rate in FALSE_ALARMS
        ]
        document[name] = [round(score, 2) for score in scores]
        print(name, document[name])
    arguments.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
