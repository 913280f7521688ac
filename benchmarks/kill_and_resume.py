"""SIGKILL at ten random moments of a real survey, then the same command again, each time.

After each kill the command is repeated to its end; the finished run must hold every trial of its
schedule exactly once, and the trials that were there before the kill unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _paired import ROOT, machine, write_result

COMMAND = str(ROOT / ".venv" / "bin" / "nephoscope")


def trials(store: Path) -> dict[str, str]:
    """Trial file -> hash of its bytes, over all runs of the store."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.glob("runs/*/trials/*.parquet"))
    }


def started_twice(run: Path) -> list[str]:
    """Trials that the journal says were finished more than once."""
    ended = [
        event["trial"]
        for line in (run / "journal.jsonl").read_text().splitlines()
        if (event := json.loads(line)).get("event") == "trial_ended"
    ]
    return sorted({name for name in ended if ended.count(name) > 1})


def one_kill(store: Path, moment_s: float, budget: str) -> dict[str, object]:
    """Kills a survey at a moment, repeats it, and says what became of its trials."""
    command = [COMMAND, "survey", "--quick", "--budget", budget, "--store", str(store), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(moment_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = trials(store)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    again = subprocess.run(
        [COMMAND, "show", json.loads(done.stdout)["run"]["id"], "--store", str(store), "--json"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    after = trials(store)
    runs = sorted((store / "runs").iterdir())
    lost = [name for name, digest in before.items() if after.get(name) != digest]
    return {
        "moment_s": round(moment_s, 2),
        "trials_before": len(before),
        "trials_after": len(after),
        "runs": len(runs),
        "lost_or_changed": lost,
        "doubled": [name for run in runs for name in started_twice(run)],
        "same_analysis": json.loads(done.stdout)["metrics"] == json.loads(again.stdout)["metrics"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    facts, moments = machine(), random.Random(options.seed)
    outcomes = []
    for _ in range(options.kills):
        with tempfile.TemporaryDirectory() as store:
            outcome = one_kill(Path(store), moments.uniform(0.5, 12), options.budget)
        print(json.dumps(outcome))
        outcomes.append(outcome)
    held = all(
        not o["lost_or_changed"] and not o["doubled"] and o["same_analysis"] and o["runs"] == 1
        for o in outcomes
    )
    print(f"{len(outcomes)} kills: {'nothing lost, nothing doubled' if held else 'fails'}")
    if options.write:
        write_result("kill-and-resume", {"machine": facts, "kills": outcomes, "held": held})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
