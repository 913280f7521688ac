"""Start-up of the command line: wall time of `--help` and `list`, medians of 11 alternated runs."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from _paired import write_result

COMMAND = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "nephoscope"
BOUNDS_S = {"--help": 0.3, "list": 0.5}


def seconds(argument: str) -> float:
    started = time.perf_counter()
    subprocess.run([str(COMMAND), argument], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    for argument in BOUNDS_S:  # the first start compiles bytecode
        seconds(argument)
    times: dict[str, list[float]] = {argument: [] for argument in BOUNDS_S}
    for _ in range(options.rounds):
        for argument in BOUNDS_S:
            times[argument].append(seconds(argument))
    held = True
    for argument, values in times.items():
        median = statistics.median(values)
        held &= median < BOUNDS_S[argument]
        print(
            f"nephoscope {argument}: median {median:.3f} s "
            f"[{min(values):.3f} … {max(values):.3f}], n={len(values)}, "
            f"bound {BOUNDS_S[argument]} s"
        )
    if options.write:
        write_result("startup", {"seconds": times, "bounds_s": BOUNDS_S, "held": held})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
