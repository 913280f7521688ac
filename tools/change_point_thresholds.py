"""Calibrates the thresholds of change points by simulation: features/history/thresholds.json.

Stationary AR(1) series of WINDOW points are tested after each point as `nephoscope history` tests
them. The threshold depends on the effective number of points alone, which the autocorrelation
and the length determine. It is the smallest that holds the false-alarm rate at every
autocorrelation of the grid, with the margin SHARE for series of other kinds.

    .venv/bin/python tools/change_point_thresholds.py --series 1000
"""

from __future__ import annotations

import argparse
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nephoscope.features.history import step_test
from nephoscope.features.history.change_points import WINDOW

Floats = npt.NDArray[np.float64]

OUTPUT = Path(__file__).parents[1] / "src/nephoscope/features/history/thresholds.json"
CORRELATIONS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95)
FALSE_ALARMS = (0.01, 0.02, 0.05, 0.1, 0.2)
SHARE = 0.6
"""Part of the rate that is used: the simulated series are not all there are."""
KNOTS = {8.0: 0.3, 16.0: 0.3, 32.0: 0.3, 64.0: 0.5, 96.0: 1.0, 128.0: 1.0}
"""Effective numbers of points at which the threshold stands (logarithmic in between), and the
relative share of the false alarms about each: most where steps are found best."""
SETTLING = 200
"""Points before a series begins, so that it is stationary."""


def stationary(rng: np.random.Generator, points: int, correlation: float) -> Floats:
    """Returns an AR(1) series of unit variance."""
    noise = rng.standard_normal(points + SETTLING) * np.sqrt(1 - correlation**2)
    noise[0] /= np.sqrt(1 - correlation**2)
    for index in range(1, noise.size):
        noise[index] += correlation * noise[index - 1]
    return np.asarray(noise[SETTLING:], dtype=np.float64)


def scores(task: tuple[float, int]) -> Floats:
    """Returns one row per test of a series: effective number of points, score."""
    correlation, seed = task
    rng = np.random.default_rng([seed, int(1000 * (1 + correlation))])
    values = stationary(rng, WINDOW, correlation)
    # Hourly series have a season to fit, daily ones begin to be tested earlier.
    at_s = np.arange(WINDOW, dtype=np.float64) * (3600.0 if seed % 2 else step_test.DAY_S)
    tests = [
        step_test.step_test(at_s[:end], values[:end])
        for end in range(1, WINDOW + 1)
        if step_test.is_testable(at_s[:end])
    ]
    return np.array([(test.effective, test.score) for test in tests])


def maxima(rows: list[Floats]) -> Floats:
    """Returns the highest score of each series (row) about each knot (column); 0 without one."""
    knots = np.array(list(KNOTS))
    edges = np.sqrt(knots[:-1] * knots[1:])
    out = np.zeros((len(rows), len(KNOTS)))
    for series, row in enumerate(rows):
        np.maximum.at(out[series], np.searchsorted(edges, row[:, 0]), row[:, 1])
    return out


def thresholds(paths: dict[float, list[Floats]], false_alarms: float) -> Floats:
    """Returns the threshold at each knot.

    Each is the same quantile of the maxima about its knot at the worst autocorrelation; the
    quantile is the lowest with which the whole rate holds at each of them.
    """
    by_correlation = {key: maxima(rows) for key, rows in paths.items()}
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        table = _table(by_correlation, middle)
        worst = max(alarm_rate(rows, table) for rows in paths.values())
        low, high = (middle, high) if worst <= SHARE * false_alarms else (low, middle)
    return _table(by_correlation, low)


def _table(maxima_by_correlation: dict[float, Floats], share: float) -> Floats:
    """Thresholds exceeded in this share of the series, by weight; they fall with the knots."""
    worst = [
        max(np.quantile(of[:, knot], 1 - share * weight) for of in maxima_by_correlation.values())
        for knot, weight in enumerate(KNOTS.values())
    ]
    return np.maximum.accumulate(np.array(worst)[::-1])[::-1]


def alarm_rate(rows: list[Floats], table: Floats) -> float:
    """Returns the share of the series with an alarm."""
    knots = np.log(list(KNOTS))
    alarms = [
        bool(np.any(row[:, 1] > np.interp(np.log(np.maximum(row[:, 0], 1e-9)), knots, table)))
        for row in rows
    ]
    return float(np.mean(alarms))


def simulated(series: int, processes: int, keep: Path | None) -> dict[float, list[Floats]]:
    """Returns the scores of all series by autocorrelation."""
    if keep is not None and keep.exists():
        stored: dict[float, list[Floats]] = pickle.loads(keep.read_bytes())
        return stored
    paths: dict[float, list[Floats]] = {}
    with ProcessPoolExecutor(processes) as pool:
        for correlation in CORRELATIONS:
            tasks = [(correlation, seed) for seed in range(series)]
            paths[correlation] = list(pool.map(scores, tasks, chunksize=20))
            print(f"AR(1) {correlation:g}: {len(tasks)} series", flush=True)
    if keep is not None:
        keep.write_bytes(pickle.dumps(paths))
    return paths


def main() -> None:
    """Simulates, prints the rates and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--series", type=int, default=1000, help="per autocorrelation")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of the simulated scores, used again")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    paths = simulated(arguments.series, arguments.processes, arguments.keep)
    tables = {rate: thresholds(paths, rate) for rate in FALSE_ALARMS}
    for rate, table in tables.items():
        rates = {key: round(alarm_rate(rows, table), 4) for key, rows in paths.items()}
        print(rate, np.round(table, 2), rates)
    document = {
        "made_by": "tools/change_point_thresholds.py",
        "window_points": WINDOW,
        "series_per_autocorrelation": arguments.series,
        "autocorrelations": CORRELATIONS,
        "share_of_rate_used": SHARE,
        "effective_points": list(KNOTS),
        "false_alarms": FALSE_ALARMS,
        "scores": [[round(float(score), 3) for score in tables[rate]] for rate in FALSE_ALARMS],
    }
    arguments.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
