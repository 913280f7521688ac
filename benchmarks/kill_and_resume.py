"""SIGKILL at drawn moments of runs, labs, reports and imports, then the same command again.

Afterwards a run must hold every trial of its schedule exactly once, and the trials that were there
before the kill unchanged; nothing of a lab is left once it is down (needs root); a report is whole
and verified; an import is a whole run or none. Nothing that was begun is left behind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from _paired import ROOT, machine, write_result

from nephoscope.store import Store

COMMAND = str(ROOT / ".venv" / "bin" / "nephoscope")
SAMPLES = ROOT / "tests" / "golden" / "pkb" / "perfkitbenchmarker_results.json"
PLAN = (
    "version: 1\nname: kills\nseed: 3\nrepeat: {min: 10, max: 10}\nbenchmarks:\n"
    '  - benchmark: "null"\n    params: {wait_ns: 20ms}\n    factors: {value: [100, 200]}\n'
)
TRIALS = 22
"""Of the plan: two settings, a warm-up and ten rounds."""
LAB = "version: 1\nname: @\nhosts: {a: , b: , c: }\nlinks: {wan: {between: [a, lan], delay: 5ms}}\n"

Outcome = dict[str, Any]


def nephoscope(*words: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{words}: exit code {done.returncode}: {done.stderr}")
    return done


def killed(moment_s: float, *words: object) -> bool:
    """Kills a command at a moment; states whether it had not ended yet."""
    process = subprocess.Popen(
        [COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(moment_s)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def digests(store: Path) -> dict[str, str]:
    """Trial -> hash of its record and samples, over all runs of the store."""
    return {
        f"runs/{run.id}/{record.key.name}": hashlib.sha256(
            repr((record, table.to_pylist())).encode()
        ).hexdigest()
        for run in Store(store).runs()
        for record, table in run.tables()
    }


def leftovers(store: Path) -> list[str]:
    """What was written aside and neither finished nor removed."""
    return [str(path.relative_to(store)) for path in store.rglob(".*")]


def verified(store: Path) -> str:
    """Returns what `verify` says is wrong; '' when all is whole."""
    done = nephoscope("verify", "--store", store, "--json", code=None)
    wrong = [one for run in json.loads(done.stdout)["runs"] for one in run["damaged"]]
    unverified = sum(run["unverified"] for run in json.loads(done.stdout)["runs"])
    return "; ".join(wrong) + (f"; {unverified} trials unverified" if unverified else "")


def one_run(store: Path, moment_s: float) -> Outcome:
    """A run that is resumed: trials are neither lost, changed nor measured twice."""
    (store / "plan.yaml").write_text(PLAN)
    words = ("run", store / "plan.yaml", "--store", store, "--json")
    was_running = killed(moment_s, *words)
    before = digests(store)
    done = nephoscope(*words)
    after, runs = digests(store), sorted((store / "runs").glob("[0-9]*"))
    # A kill after the end leaves a finished run, and the same command begins another one.
    complete = [sum(name.startswith(f"runs/{run.name}/") for name in after) for run in runs]
    journals = "".join((run / "journal.jsonl").read_text() for run in runs)
    ended = journals.count('"event": "trial_ended"')
    again = nephoscope("show", runs[-1].name, "--store", store, "--json")
    same = json.loads(done.stdout)["metrics"] == json.loads(again.stdout)["metrics"]
    wrong = [name for name, digest in before.items() if after.get(name) != digest]
    wrong += [f"{count} trials of {TRIALS}" for count in complete if count != TRIALS]
    # A trial whose end was noted but whose file was not stored is measured again, once.
    wrong += [f"{ended} ends of {len(after)} trials"] * (ended not in (len(after), len(after) + 1))
    wrong += [] if same else ["another analysis"]
    return {"was_running": was_running, "stored": len(before), "wrong": wrong}


def one_lab(store: Path, moment_s: float) -> Outcome:
    """A lab that was killed while it was made; `down` removes all of it."""
    name = f"k{os.getpid()}"
    (store / "lab.yaml").write_text(LAB.replace("@", name))
    was_running = killed(moment_s, "lab", "up", store / "lab.yaml")
    code = nephoscope("lab", "down", name, code=None).returncode
    return {"was_running": was_running, "stored": int(code == 0), "wrong": remains(name)}


def remains(lab: str) -> list[str]:
    """Namespaces, folders, control groups and processes of a lab that are still there."""
    found = [str(path) for path in Path("/run/netns").glob(f"neph-{lab}.*")]
    folders = (Path("/run/nephoscope", lab), Path("/var/lib/nephoscope", lab))
    found += [str(path) for path in folders if path.exists()]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/nephoscope/{lab}")]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [words] * (f"neph-{lab}." in words)
    return found


def one_report(store: Path, moment_s: float) -> Outcome:
    """A report that is written again: old or new, never a part; the run does not change."""
    (store / "plan.yaml").write_text(PLAN.replace("20ms", "1us"))
    nephoscope("run", store / "plan.yaml", "--store", store)
    before = digests(store)
    was_running = killed(moment_s, "show", "--store", store)
    wrong = [verified(store)] + ["a trial changed"] * (digests(store) != before)
    nephoscope("show", "--store", store)
    return {"was_running": was_running, "stored": 1, "wrong": [*wrong, verified(store)]}


def one_import(store: Path, moment_s: float) -> Outcome:
    """An import is a whole run or none."""
    words = ("import", SAMPLES, "--store", store)
    was_running = killed(moment_s, *words)
    stored = len(list(store.glob("runs/[0-9]*")))
    wrong = [verified(store)]
    nephoscope(*words)
    counts = [len(run.records()) for run in Store(store).runs()]
    wrong += [f"{counts} trials"] * (set(counts) != {110} or len(counts) != stored + 1)
    return {"was_running": was_running, "stored": stored, "wrong": [*wrong, verified(store)]}


KINDS: Mapping[str, tuple[Callable[[Path, float], Outcome], float]] = {
    "run": (one_run, 2.5),
    "lab": (one_lab, 2.0),
    "report": (one_report, 1.2),
    "import": (one_import, 0.9),
}
"""What is killed, and the latest moment after its start in seconds."""


def main() -> int:
    """Prints a line for each kill, then how many there were of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--kills", type=int, default=25, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    facts, moments = machine(), random.Random(options.seed)
    outcomes: list[Outcome] = []
    for kind in options.kinds or KINDS:
        act, latest_s = KINDS[kind]
        for _ in range(options.kills):
            moment_s = moments.uniform(0.1, latest_s)
            with tempfile.TemporaryDirectory() as folder:
                outcome = act(Path(folder), moment_s)
                outcome["wrong"] = [*filter(None, outcome["wrong"]), *leftovers(Path(folder))]
            outcomes.append({"kind": kind, "moment_s": round(moment_s, 3), **outcome})
            print(json.dumps(outcomes[-1]), flush=True)
        own = [one for one in outcomes if one["kind"] == kind]
        running = sum(one["was_running"] for one in own)
        print(f"{kind}: {len(own)} kills, {running} before its end", flush=True)
    held = not any(one["wrong"] for one in outcomes)
    print(f"{len(outcomes)} kills: {'nothing lost, doubled or left' if held else 'fails'}")
    if options.write:
        write_result("kill-and-resume", {"machine": facts, "kills": outcomes, "held": held})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
