"""Counts how often 95 % intervals hold the truth, case by case of tests/stats/coverage.py.

With --write it stores the counts; `make generate` renders them
(docs/explanation/interval-coverage.md). Single-threaded work in two processes; about 20 minutes of
CPU time for 3,000 samples. With --map it counts the cells of the accuracy map instead
(`_accuracy.py`), in one process; about 5 minutes for 800 samples.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys

from _paired import ROOT, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from _accuracy import cells  # noqa: E402
from tests.stats.coverage import CASES, constants  # noqa: E402


def count(job: tuple[int, int, int]) -> int:
    index, samples, seed = job
    return sum(CASES[index].counted(samples, seed))


def accuracy_map(samples: int, seed: int, only: str) -> dict[str, object]:
    """Returns the counts of all cells of the map whose statistic contains a text."""
    rows = []
    for cell in cells():
        if only not in cell.statistic:
            continue
        row = cell.counted(samples, seed)
        rows.append(row)
        power = ""
        if "found" in row:
            power = f", found {row['found'] / samples:.1%}, Welch {row['welch'] / samples:.1%}"
        print(
            f"{row['right'] / samples:6.1%}  {row['width']:5.2f} x  "
            f"{row['wide'] / samples:5.1%} wide  {row['told'] / samples:5.1%} told  "
            f"{cell.statistic}, {cell.noise}, n = {cell.n}, {cell.rho}{power}",
            flush=True,
        )
    return {"samples": samples, "seed": seed, "rows": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--seed", type=int, required=True, help="one that nothing was fitted with")
    parser.add_argument("--map", action="store_true", help="count the accuracy map instead")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    if options.map:
        found = accuracy_map(options.samples, options.seed, options.only)
        if options.write and not options.only:
            write_result("accuracy-map", found)
        return 0
    rows = []
    with multiprocessing.Pool(2) as pool:
        cases = [case for case in CASES if options.only in case.name]
        jobs = [(CASES.index(case), options.samples, options.seed) for case in cases]
        for case, right in zip(cases, pool.imap(count, jobs), strict=True):
            print(f"{right / options.samples:6.1%}  {case.name}", flush=True)
            rows.append(
                {
                    "statistic": case.statistic,
                    "n": case.n,
                    "autocorrelation": case.rho,
                    "right": right,
                }
            )
    record = {
        "samples": options.samples,
        "seed": options.seed,
        "constants": constants(),
        "rows": rows,
    }
    if options.write and not options.only:
        write_result("interval-coverage", record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
