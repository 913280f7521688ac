"""`bench --command` beside hyperfine: medians of five commands, and what each tool adds to a run.

Both execute the same command equally often without a shell, alternated in random order. The median
is that of all executions of one invocation. What a tool adds to a run is the wall time of the whole
tool less the sum of its executions: the difference between many and few runs of `true`, divided by
the number of runs between. What an invocation costs once is printed beside it, and so is the
probe's own time between two executions, without what is done with the results afterwards.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from _paired import (
    Row,
    alternate,
    arguments,
    machine,
    needed,
    paired_difference,
    paired_ratio,
    parse,
    print_table,
    run_probe,
    version,
    write_result,
)

NEPHOSCOPE = str(Path(__file__).resolve().parents[1] / ".venv" / "bin" / "nephoscope")
BOUND = (0.95, 1.05)
FEW, MANY = 300, 9_000
"""So many that the seconds which an invocation takes once, and their noise, count little."""
RUNS = 100
OVERHEAD = "true"


@dataclass(frozen=True)
class Invocation:
    """One invocation of a tool: the median of its executions, and its wall time besides them."""

    median_s: float
    beside_s: float


def invoke(command: list[str], export: Path) -> Invocation:
    """Runs a tool and reads what it exported."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    wall_s = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    (result,) = json.loads(export.read_text())["results"]
    return Invocation(statistics.median(result["times"]), wall_s - sum(result["times"]))


def ours(command: str, runs: int, folder: Path) -> Invocation:
    export = folder / "ours.json"
    words = [NEPHOSCOPE, "bench", "--command", command, "--runs", str(runs), "--warmup", "0"]
    return invoke([*words, "--store", str(folder), "--export-json", str(export)], export)


def theirs(command: str, runs: int, folder: Path) -> Invocation:
    export = folder / "theirs.json"
    words = ["hyperfine", "--shell=none", "--runs", str(runs), "--style=none"]
    return invoke([*words, "--export-json", str(export), command], export)


def between_executions_s() -> float:
    """Seconds of a trial of the probe that belong to no execution, for each of them."""
    params = {"argv": [OVERHEAD], "minimum_runs": MANY, "maximum_runs": MANY}
    samples = run_probe("command", params)
    (document,) = [one["document"] for one in samples if one["metric"] == "executions"]
    # The first sample is written when the last execution has ended.
    return float(samples[0]["at_ns"] - sum(document["wall_ns"])) / 1e9 / MANY


def compare_tools(
    command: str, runs: int, rounds: int, seed: int, folder: Path
) -> dict[str, list[Invocation]]:
    """Returns the invocations of both tools, alternated."""

    def show(number: int, latest: object) -> None:
        print(f"{command} ({runs} runs): round {number}/{rounds}", file=sys.stderr)

    return alternate(
        {
            "ours": lambda: ours(command, runs, folder),
            "theirs": lambda: theirs(command, runs, folder),
        },
        rounds,
        seed,
        show,
    )


def commands(folder: Path) -> dict[str, tuple[str, int]]:
    """Name -> command line, and how often an invocation executes it."""
    text = folder / "text"
    text.write_bytes(b"".join(b"%d\n" % (number * number) for number in range(60_000)))
    archive = folder / "text.gz"
    archive.write_bytes(gzip.compress(text.read_bytes()))
    return {
        OVERHEAD: ("true", FEW),
        "ls": ("ls -l /usr/bin", RUNS),
        "gunzip": (f"gzip -dc {archive}", RUNS),
        "python": ("python3 -S -c pass", RUNS),
        "sleep": ("sleep 0.02", RUNS),
    }


def main() -> int:
    parser = arguments("bench --command beside hyperfine", rounds=11)
    args = parse(parser)
    needed("hyperfine", "hyperfine")
    facts = machine()
    rows = []
    beside: dict[str, dict[int, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="nephoscope-") as name:
        folder = Path(name)
        for seed, (label, (command, runs)) in enumerate(commands(folder).items(), start=args.seed):
            pairs = compare_tools(command, runs, args.rounds, seed, folder)
            medians = {tool: [one.median_s for one in found] for tool, found in pairs.items()}
            ratio = paired_ratio(medians["ours"], medians["theirs"])
            rows.append(Row(label, "s", medians["ours"], medians["theirs"], ratio, BOUND))
            if label == OVERHEAD:
                pairs_of_many = compare_tools(command, MANY, args.rounds, seed, folder)
                beside = {
                    tool: {
                        FEW: [one.beside_s for one in pairs[tool]],
                        MANY: [one.beside_s for one in pairs_of_many[tool]],
                    }
                    for tool in pairs
                }
    print_table(rows, "hyperfine")
    per_run = {
        tool: [(b - a) / (MANY - FEW) for a, b in zip(of[FEW], of[MANY], strict=True)]
        for tool, of in beside.items()
    }
    added = paired_difference(per_run["ours"], per_run["theirs"])
    for tool, values in per_run.items():
        once = statistics.median(beside[tool][FEW]) - FEW * statistics.median(values)
        print(
            f"{tool}: {1e6 * statistics.median(values):.1f} µs for each further run, "
            f"{once:.2f} s once; load {os.getloadavg()[0]:.1f}"
        )
    print(
        f"ours less hyperfine's, per run: {1e6 * added.value:+.1f} µs "
        f"[{1e6 * added.low:+.1f}, {1e6 * added.high:+.1f}], n = {added.n}"
    )
    own = [between_executions_s() for _ in range(args.rounds)]
    print(f"the probe between two executions: {1e6 * statistics.median(own):.1f} µs")
    holds = added.low <= 0 and all(row.verdict.startswith("holds") for row in rows)
    if args.write:
        record = {
            "machine": facts,
            "versions": {
                "nephoscope": version(NEPHOSCOPE, "version"),
                "hyperfine": version("hyperfine", "--version"),
            },
            "settings": {"seed": args.seed, "rounds": args.rounds, "runs": [RUNS, FEW, MANY]},
            "medians": [{**asdict(row), "verdict": row.verdict} for row in rows],
            "beside_s": beside,
            "per_run_s": {**per_run, "difference": asdict(added)},
            "probe_between_executions_s": own,
        }
        write_result("command", record)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
