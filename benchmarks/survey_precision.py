"""How well a survey spends its time, alternated in pairs with another version's command.

For each pair, in random order, both measure `survey --budget B` in an empty store. Compared are the
median relative half-width of the headline metrics that both have, and the shares of the time spent
that trials spent measuring and starting.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _paired import alternate, machine, paired_ratio, version, write_result

OURS = str(Path(__file__).resolve().parents[1] / ".venv" / "bin" / "nephoscope")


def survey(command: str, words: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the relative half-widths of the headline metrics, and the shares of each phase."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-survey-") as store:
        done = subprocess.run(
            [command, "survey", *words, "--store", store, "--json"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{command} survey ended with {done.returncode}: {done.stderr[-500:]}")
        result = json.loads(done.stdout)
        (journal,) = Path(store).glob("runs/*/journal.jsonl")
        events = [json.loads(line) for line in journal.read_text().splitlines()]
    widths = {}
    for metric in result["metrics"]:
        estimate = metric.get("estimate", metric)  # an earlier version had its keys one level up
        low, high, value = (estimate[name] for name in ("low", "high", "value"))
        if metric["headline"] and None not in (low, high) and value:
            key = f"{metric['benchmark']} {metric['metric']} {sorted(metric['factors'].items())}"
            widths[key] = (high - low) / 2 / abs(value)
    shares: dict[str, float] = {}
    spent_s = 0.0
    for event in events:
        if event.get("event") == "trial_ended":
            spent_s += event["spent_s"]
            for phase, (start, end) in event["timeline"].items():
                shares[phase] = shares.get(phase, 0.0) + (end - start) / 1e9
    return widths, {phase: seconds / spent_s for phase, seconds in shares.items()}


def _said(widths: dict[str, float], shares: dict[str, float]) -> str:
    words = f"start {shares.get('start', 0):.1%}, measure {shares.get('measure', 0):.1%}"
    return f"({len(widths)} intervals, {words})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", required=True, metavar="COMMAND", help="the other version")
    parser.add_argument("--rounds", type=int, default=8, help="pairs; at least 6")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    words = ["--budget", options.budget, *(["--quick"] if options.quick else [])]
    commands = {"ours": OURS, "theirs": options.against}
    found = alternate(
        {name: lambda c=command: survey(c, words) for name, command in commands.items()},
        options.rounds,
        seed=1,
        show=lambda number, pair: print(
            f"pair {number} of {options.rounds}, load {os.getloadavg()[0]:.1f}: "
            + ", ".join(f"{name} {_said(*result)}" for name, result in pair.items()),
            file=sys.stderr,
        ),
    )
    medians: dict[str, list[float]] = {name: [] for name in commands}
    for ours, theirs in zip(found["ours"], found["theirs"], strict=True):
        # Too few trials give a metric no interval; a pair may have none in common.
        if common := ours[0].keys() & theirs[0].keys():
            for name, (widths, _) in (("ours", ours), ("theirs", theirs)):
                medians[name].append(statistics.median(widths[key] for key in common))
    ratio = None
    if (pairs := len(medians["ours"])) >= 6:
        ratio = paired_ratio(medians["ours"], medians["theirs"])
        print(
            f"median relative half-width: {statistics.median(medians['theirs']):.2%} -> "
            f"{statistics.median(medians['ours']):.2%}, ratio {ratio.value:.2f} "
            f"[{ratio.low:.2f}, {ratio.high:.2f}] at {ratio.confidence:.1%}, n = {ratio.n} pairs"
        )
    if pairs < options.rounds:
        print(f"{options.rounds - pairs} pairs have no metric with an interval in both versions")
    phases = {}
    for name in ("theirs", "ours"):
        phases[name] = {
            phase: [shares.get(phase, 0.0) for _, shares in found[name]]
            for phase in ("start", "measure")
        }
        texts = (
            f"{phase} {statistics.median(v):.1%} ({min(v):.1%} to {max(v):.1%})"
            for phase, v in phases[name].items()
        )
        print(f"{name}: share of the time spent: {', '.join(texts)}; load {os.getloadavg()[0]:.1f}")
    if options.write:
        facts = {"machine": machine(), "load": os.getloadavg(), "words": words}
        facts["versions"] = {
            name: version(command, "version") for name, command in commands.items()
        }
        facts |= {"half_width": medians, "ratio": ratio and ratio.__dict__, "phases": phases}
        write_result("survey_precision", facts)
    return 0 if ratio is not None and ratio.value < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
