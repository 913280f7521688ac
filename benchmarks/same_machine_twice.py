"""Whether comparisons raise false alarms, and whether they find a slowdown that is there.

    interleaved  the plan same-machine-twice.yaml: this machine under two names in one run
    separate     the same plan with one name, two runs one after the other, no others in the store
    slowdown     two lab hosts on one CPU, interleaved; the quota of one takes 10 % (root)

In the first two modes there is nothing to find, so that each *better* or *worse* is a false alarm:
at most 5 % of the metrics. In the third, the true slowdown has to be called *worse* in at least
90 % of the runs. `--disturb` runs a busy loop for 30 s out of every 60 s meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from _paired import ROOT, machine, write_result

sys.path[:0] = [str(ROOT / "src")]

from nephoscope.stats.statistics.proportions import wilson  # noqa: E402

COMMAND = str(ROOT / ".venv" / "bin" / "nephoscope")
PLAN = ROOT / "benchmarks" / "same-machine-twice.yaml"
DISTURBED_S = 30.0
QUOTA = {
    "name": "slowdown",
    "hosts": {
        "full": {"cpu": {"cpus": [0], "weight": 10000}},
        "slow": {"cpu": {"cpus": [0], "weight": 10000, "cap": "90%", "cap_period": "20ms"}},
    },
}
SLOWDOWN = {
    "name": "slowdown",
    "lab": QUOTA,
    "targets": [{"name": name, "kind": "lab"} for name in QUOTA["hosts"]],
    "benchmarks": [
        {"benchmark": "cpu.hash", "params": {"duration_ns": "200ms"}, "factors": {"threads": [1]}}
    ],
    "accept": ["throttled"],
}


@contextlib.contextmanager
def disturbance(wanted: bool) -> Iterator[None]:
    """A busy loop beside the measurements, on for 30 s and off for 30 s."""
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
                over.wait(DISTURBED_S)
                loop.kill()
            over.wait(DISTURBED_S)

    thread = threading.Thread(target=come_and_go)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if wanted:
            thread.join()


def json_of(*words: str) -> dict[str, object]:
    done = subprocess.run([COMMAND, *words, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def verdicts(*words: str) -> Counter[str]:
    """Verdict words of one comparison, counted."""
    lines = json_of("compare", *words)["comparisons"]
    return Counter(line["comparison"]["verdict"]["word"] for line in lines)


def interleaved(store: str, seed: int, budget_s: int) -> Counter[str]:
    words = ("--seed", str(seed), "--budget", f"{budget_s}s", "--store", store)
    run = json_of("run", str(PLAN), *words)["run"]["id"]
    return verdicts(run, "--store", store)


def separate(store: str, seed: int, budget_s: int) -> Counter[str]:
    one = ("--set", "targets=[{name: one, kind: local}]", "--budget", f"{budget_s // 2}s")
    runs = [
        json_of("run", str(PLAN), *one, "--seed", str(seed), "--fresh", "--store", store)
        for _ in range(2)
    ]
    return verdicts(*(run["run"]["id"] for run in runs), "--store", store)


def slowdown(store: str, seed: int, budget_s: int) -> Counter[str]:
    plan = Path(store, "slowdown.yaml")
    repeat = {"min": 60, "max": 60}
    plan.write_text(json.dumps({**SLOWDOWN, "repeat": repeat}), encoding="utf-8")
    words = ("--seed", str(seed), "--budget", f"{budget_s}s", "--store", store)
    run = json_of("run", str(plan), *words)["run"]["id"]
    return verdicts(run, "--metric", "hash_bytes_per_s", "--store", store)


MODES: dict[str, Callable[[str, int, int], Counter[str]]] = {
    "interleaved": interleaved,
    "separate": separate,
    "slowdown": slowdown,
}


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("mode", choices=MODES, nargs="?", default="interleaved")
    parser.add_argument("--runs", type=int, default=3, help="runs, or pairs of separate runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=75, metavar="SECONDS", help="of a comparison")
    parser.add_argument("--disturb", action="store_true", help="a load that comes and goes")
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    facts, found = machine(), []
    with disturbance(options.disturb):
        for number in range(options.runs):
            with tempfile.TemporaryDirectory() as store:
                found.append(MODES[options.mode](store, options.seed + number, options.budget))
            print(f"{number + 1}: {dict(found[-1])}; load {os.getloadavg()[0]:.1f}", flush=True)
    words = sum(found, Counter())
    total, called = sum(words.values()), words["better"] + words["worse"]
    held = total > 0 and called <= 0.05 * total
    if options.mode == "slowdown":
        called = words["worse"]
        held = called >= 0.9 * total
    share = wilson(called, total)
    print(f"{options.mode}: {called} of {total} called [{share.low:.1%}, {share.high:.1%}]")
    print(f"bound {'holds' if held else 'fails'}; all verdicts: {dict(words)}")
    if options.write:
        record = {"machine": facts, "options": vars(options), "held": held}
        record |= {"called": called, "of": total, "interval": [share.low, share.high]}
        record |= {"load_average_after": os.getloadavg()[0], "plan": PLAN.read_text()}
        write_result(f"same-machine-twice-{options.mode}", {**record, "verdicts": list(found)})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
