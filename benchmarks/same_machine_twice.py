"""An A/A plan: this machine under two names, interleaved in one run, three runs.

Counts the metrics that the comparison calls better or worse; there is nothing to find, so each is a
false alarm. Bound: at most 5 % of all metrics over the three runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from _paired import ROOT, machine, write_result

COMMAND = str(ROOT / ".venv" / "bin" / "nephoscope")
PLAN = str(ROOT / "benchmarks" / "same-machine-twice.yaml")


def one_run(store: str, seed: int) -> Counter[str]:
    """Verdict words of one run, counted."""
    run = [COMMAND, "run", PLAN, "--seed", str(seed), "--store", store, "--json"]
    done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
    run_id = json.loads(done.stdout)["run"]["id"]
    compare = [COMMAND, "compare", run_id, "--store", store, "--json"]
    done = subprocess.run(compare, check=True, stdout=subprocess.PIPE, text=True)
    comparisons = json.loads(done.stdout)["comparisons"]
    return Counter(comparison["verdict"]["word"] for comparison in comparisons)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    facts = machine()
    words: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as store:
        for number in range(options.runs):
            found = one_run(store, options.seed + number)
            print(f"run {number + 1}: {dict(found)}", file=sys.stderr)
            words += found
    total = sum(words.values())
    false_alarms = words["better"] + words["worse"]
    held = total > 0 and false_alarms <= 0.05 * total
    print(f"{false_alarms} of {total} metrics called better or worse over {options.runs} runs")
    print(f"bound 5 %: {'holds' if held else 'fails'}; all verdicts: {dict(words)}")
    if options.write:
        record = {"machine": facts, "runs": options.runs, "verdicts": dict(words), "held": held}
        write_result("same-machine-twice", {**record, "plan": Path(PLAN).read_text()})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
