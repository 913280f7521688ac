"""Repeats a survey with gaps of random length, and writes how much its medians vary between runs.

`nephoscope compare` learns from the data set which variance between runs to assume of a machine
without a history (features/comparison/repeated_surveys/). With `--runs 0` it measures nothing
and writes the surveys that the store has.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import random
import subprocess
import sys
import time
from typing import Any

from _paired import ROOT, machine, version

COMMAND = str(ROOT / ".venv" / "bin" / "nephoscope")
FOLDER = ROOT / "src/nephoscope/features/comparison/repeated_surveys"
PLAN = "survey-quick"
MIN_TRIALS = 6
"""With fewer a median has no interval, and its run would stand for the trials' own noise."""


def json_of(*words: str) -> Any:
    """What a command prints with --json."""
    done = subprocess.run([COMMAND, *words, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measure(runs: int, gaps_s: tuple[float, float], seed: int, store: str, budget: str) -> None:
    """Makes the surveys; the gaps between them are log-uniform."""
    order = random.Random(seed)
    for number in range(runs):
        if number:
            gap_s = math.exp(order.uniform(*map(math.log, gaps_s)))
            print(f"survey {number} of {runs}; next in {gap_s:.0f} s", file=sys.stderr)
            time.sleep(gap_s)
        survey = [COMMAND, "survey", "--quick", "--fresh", "--budget", budget, "--store", store]
        subprocess.run(survey, check=True, stdout=subprocess.DEVNULL)


def lines_of(results: list[Any]) -> list[dict[str, Any]]:
    """Metrics that enough trials of all runs have and that have a good direction."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for metric in result["metrics"]:
            key = (metric["benchmark"], metric["metric"], json.dumps(metric["factors"]))
            usable = metric["estimate"]["n"] >= MIN_TRIALS and metric["estimate"]["value"] > 0
            if usable and metric["better"] != "none":
                found.setdefault(key, []).append(float(f"{metric['estimate']['value']:.5g}"))
    return [
        {"benchmark": key[0], "metric": key[1], "factors": json.loads(key[2]), "medians": medians}
        for key, medians in found.items()
        if len(medians) == len(results)
    ]


def text_of(data: dict[str, Any]) -> str:
    """The document with one metric a line, so that it can be read."""
    head = {key: value for key, value in data.items() if key != "lines"}
    lines = ",\n  ".join(json.dumps(line) for line in data["lines"])
    return json.dumps(head, indent=1)[:-2] + ',\n "lines": [\n  ' + lines + "\n ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--gaps", type=float, nargs=2, default=(10.0, 240.0), metavar="SECONDS")
    parser.add_argument("--budget", default="35s", help="of a survey; more on a busy machine")
    parser.add_argument("--seed", type=int, default=20261122, help="seed of the gaps")
    parser.add_argument("--store", required=True, help="where the surveys are stored")
    parser.add_argument("--notes", required=True, help="what else the machine did meanwhile")
    options = parser.parse_args()
    measure(options.runs, tuple(options.gaps), options.seed, options.store, options.budget)
    runs = [
        run
        for run in json_of("runs", "--store", options.store)["runs"]
        if run["plan"] == PLAN and run["state"] == "finished"
    ]
    results = [json_of("show", run["id"], "--store", options.store) for run in reversed(runs)]
    started = [result["run"]["started_at"] for result in results]
    date = datetime.date.fromisoformat(started[0][:10]).isoformat()
    data = {
        "date": date,
        "notes": options.notes,
        "plan": PLAN,
        "nephoscope": version(COMMAND, "--version"),
        "machine": machine(),
        "started": started,
        "lines": lines_of(results),
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{date}.json"
    path.write_text(text_of(data), encoding="utf-8")
    print(
        f"written: {path.relative_to(ROOT)}: {len(results)} surveys, {len(data['lines'])} metrics"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
