"""Change points of drawn series by `nephoscope history` and by Apache Otava, side by side.

Both see the same series (tests/features/history/cases.py): stationary ones, on which an alarm is
false, and series with a step of 5 % at a noise of 2 %, which ends ten points behind the step. Otava
has an environment of its own, which --install creates from PyPI. With --write the counts are
stored; `make generate` renders them (docs/explanation/change-point-alarms.md).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
from functools import partial

import numpy as np
from _paired import ROOT, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.features.history.cases import SEED, STATIONARY, STEP_AT, Drawing, is_step, stepped  # noqa: E402

from nephoscope.stats.change_points.detection import detect  # noqa: E402

OTAVA = "apache-otava==0.8.0"
ENVIRONMENT = ROOT / ".setup" / "peers" / "otava"
LEVELS = (0.001, 0.0001)
"""max_pvalue: Otava's default, and what Nephoscope's methodology recommends with it."""
STEPS = (0.0, 0.3, 0.6)
PEER = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    series, level = json.loads(line)
    points, _ = compute_change_points(series, max_pvalue=level)
    print(json.dumps([int(point.index) for point in points]), flush=True)
"""


def install() -> None:
    """Creates the environment and installs Otava."""
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", OTAVA]
    subprocess.run(pip, check=True)


def drawn(job: tuple[str, int], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the series of a case. job: its name, and the second part of its random seed."""
    name, place = job
    rng = np.random.default_rng([SEED, place])
    drawing: Drawing = STATIONARY.get(name) or partial(stepped, correlation=float(name))
    return [drawing(rng) for _ in range(count)]


def here(job: tuple[str, int], count: int) -> int:
    """Returns in how many series of a case there is an alarm, or the step."""
    every = [detect(*series) for series in drawn(job, count)]
    return sum(bool(steps) if job[0] in STATIONARY else is_step(steps) for steps in every)


def otava(job: tuple[str, int], count: int, level: float) -> int:
    """Returns the same count of Otava at a max_pvalue."""
    lines = [json.dumps([values.tolist(), level]) for _, values in drawn(job, count)]
    peer = [str(ENVIRONMENT / "bin" / "python"), "-c", PEER]
    text = subprocess.run(peer, input="\n".join(lines), capture_output=True, text=True, check=True)
    every = [json.loads(line) for line in text.stdout.splitlines()]
    assert len(every) == count
    if job[0] in STATIONARY:
        return sum(bool(points) for points in every)
    return sum(any(abs(point - STEP_AT) <= 10 for point in points) for points in every)


def counted(job: tuple[str, int], series: int, peer_series: int) -> dict[str, object]:
    """Returns the counts of one case."""
    row: dict[str, object] = {"case": job[0], "is_step": job[0] not in STATIONARY}
    row["nephoscope"] = {"series": series, "alarms": here(job, series)}
    for level in LEVELS if peer_series else ():
        alarms = otava(job, peer_series, level)
        row[f"otava {level:g}"] = {"series": peer_series, "alarms": alarms}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="create Otava's environment first")
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--series", type=int, default=1000, help="of each case")
    parser.add_argument("--peer-series", type=int, default=200, help="of each case by Otava")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="cases with this in their names")
    options = parser.parse_args()
    if options.install:
        install()
    jobs = [(name, place) for place, name in enumerate(STATIONARY)]
    jobs += [(f"{correlation:g}", 100 + int(100 * correlation)) for correlation in STEPS]
    jobs = [job for job in jobs if options.only in job[0]]
    count = partial(counted, series=options.series, peer_series=options.peer_series)
    rows = []
    with multiprocessing.Pool(options.processes) as pool:
        for row in pool.imap(count, jobs):
            print(json.dumps(row), flush=True)
            rows.append(row)
    if options.write:
        write_result("change-points", {"peer": OTAVA, "seed": SEED, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
