"""Two commands at the same time beside the same two one after the other, and alternated.

A competitor comes and goes on all CPUs at the same moments, so that an execution takes up to twice
as long. `--part widths`: half-widths of the three designs in equal time, of a program and of one
that does a tenth more work. `--part a-a`: duets of a program with itself, each under a disturbance
of its own, whose period and share drift. `--part planted`: what duets find of planted differences.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from _duet_parts import (
    LOOPS,
    MEMORY,
    Outcome,
    disturbance,
    duet,
    interleaved,
    sequential,
    show,
    work,
)
from _paired import arguments, machine, version, write_result
from command_vs_hyperfine import NEPHOSCOPE

LEAST_GAIN = 5.0
PLANTED = (0.0, 0.05, 0.1)
A_A_TRIALS = 10


def widths(program: str, rounds: int, seconds: float, seed: int) -> tuple[dict[str, Any], bool]:
    """Returns the outcomes of the designs round by round; whether duets are narrow enough."""
    first, second = [program, str(LOOPS)], [program, str(LOOPS * 11 // 10)]
    outcomes: dict[str, list[Outcome]] = {"duet": [], "interleaved": [], "sequential": []}
    for number in range(seed, seed + rounds):
        with disturbance(number):
            outcomes["duet"].append(duet(first, second, seconds))
            outcomes["interleaved"].append(interleaved(first, second, seconds, number))
            outcomes["sequential"].append(sequential(first, second, seconds))
        for name, of in outcomes.items():
            show(name, of[-1])
    median = {
        name: statistics.median(one.half_width_ratio for one in of) for name, of in outcomes.items()
    }
    gains = {name: median[name] / median["duet"] for name in ("interleaved", "sequential")}
    covered = {name: sum(one.low <= 1.1 <= one.high for one in of) for name, of in outcomes.items()}
    print(
        "half-width, median: "
        + ", ".join(f"{name} {100 * of:.2f} %" for name, of in median.items())
        + f"; a duet is {gains['sequential']:.1f} times as narrow as sequential and "
        f"{gains['interleaved']:.1f} times as interleaved runs of {seconds:.0f} s; "
        f"+10 % covered in {covered} of {rounds}; load {os.getloadavg()[0]:.1f}"
    )
    record = {name: [asdict(one) for one in of] for name, of in outcomes.items()}
    return {**record, "gains": gains, "covered": covered}, gains["sequential"] >= LEAST_GAIN


def a_a(program: str, repeats: int, seed: int) -> tuple[dict[str, Any], bool]:
    """Returns the outcomes of duets of a program with itself; whether none is told to be worse."""
    words = [program, str(LOOPS)]
    outcomes = []
    for number in range(repeats):
        mean_s = 0.1 * math.exp(2.5 * number / repeats)
        with disturbance(seed + number, mean_s):
            outcomes.append(duet(words, words, 120, A_A_TRIALS, duration_s=0.1))
        show(f"A/A {number + 1}", outcomes[-1])
    verdicts = Counter(one.verdict for one in outcomes)
    excluded = sum(not one.low <= 1 <= one.high for one in outcomes)
    print(
        f"A/A: {dict(verdicts)}; {excluded} of {repeats} intervals exclude 1; median half-width "
        f"{100 * statistics.median(one.half_width_ratio for one in outcomes):.2f} %, "
        f"n = {A_A_TRIALS} each; load {os.getloadavg()[0]:.1f}"
    )
    record = {"outcomes": [asdict(one) for one in outcomes], "verdicts": dict(verdicts)}
    return record, not verdicts["worse"] and not verdicts["better"]


def planted(program: str, seconds: float, seed: int) -> tuple[dict[str, Any], bool]:
    """Returns what duets find of planted differences; whether their intervals contain them."""
    found: dict[str, Any] = {}
    holds = True
    for more in PLANTED:
        for name, period_s in (("undisturbed", None), ("disturbed", 1.0)):
            words = [program, str(round(LOOPS * (1 + more)))]
            if period_s is None:
                outcome = duet([program, str(LOOPS)], words, seconds)
            else:
                with disturbance(seed, period_s):
                    outcome = duet([program, str(LOOPS)], words, seconds)
            show(f"+{100 * more:.0f} %", outcome)
            holds &= outcome.low <= 1 + more <= outcome.high
            found[f"{name} +{100 * more:.0f} %"] = asdict(outcome)
    # Memory-bound: stated, and held to nothing, because the partners disturb each other.
    memory = [sys.executable, "-S", "-c", MEMORY]
    outcome = duet([*memory, "10"], [*memory, "11"], seconds)
    show("memory +10 %", outcome)
    found["memory +10 %"] = asdict(outcome)
    return found, holds


def main() -> int:
    parser = arguments(__doc__.splitlines()[0] if __doc__ else "", rounds=3)
    parser.add_argument("--part", choices=("widths", "a-a", "planted"), default="widths")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each design and round")
    args = parser.parse_args()
    facts = machine()
    with work() as program:
        if args.part == "widths":
            found, holds = widths(program, args.rounds, args.seconds, args.seed)
        elif args.part == "a-a":
            found, holds = a_a(program, args.rounds, args.seed)
        else:
            found, holds = planted(program, args.seconds, args.seed)
    print("holds" if holds else "fails")
    if args.write:
        record = {
            "machine": facts,
            "versions": {"nephoscope": version(NEPHOSCOPE, "--version")},
            "settings": {"seed": args.seed, "rounds": args.rounds, "seconds": args.seconds},
            **found,
        }
        write_result(f"duet-{args.part}", record)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
