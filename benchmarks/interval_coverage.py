"""Counts how often 95 % intervals hold the truth, case by case of tests/analysis/coverage.py.

With --write it stores the counts that the page *How we measure* shows (`make generate` renders
them). Single-threaded work in two processes; about ten minutes of CPU time for 2,000 samples.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys

from _paired import ROOT, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.analysis.coverage import CASES, constants  # noqa: E402


def count(job: tuple[int, int]) -> int:
    index, samples = job
    return sum(CASES[index].counted(samples))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args()
    rows = []
    with multiprocessing.Pool(2) as pool:
        jobs = [(index, options.samples) for index in range(len(CASES))]
        for case, right in zip(CASES, pool.imap(count, jobs), strict=True):
            print(f"{right / options.samples:6.1%}  {case.name}", flush=True)
            rows.append(
                {
                    "statistic": case.statistic,
                    "n": case.n,
                    "autocorrelation": case.rho,
                    "right": right,
                }
            )
    record = {"samples": options.samples, "constants": constants(), "rows": rows}
    if options.write:
        write_result("interval-coverage", record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
