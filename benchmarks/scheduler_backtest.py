"""Runs and waits of a lab host, measured and simulated with the same parameters, side by side.

Reads recordings of `benchmarks/scheduler.py record --folder F`: reservations, caps and quotas with
one loop on each CPU. What is simulated is the setting and nothing of what was seen, but for one
number of the setting: how its periods lie to the kernel's tick, which nobody can set. That is read
from where pauses begin (at ticks) and end (at periods), never from how long they are. A pause
shorter than half a tick, or one that does not end where a period begins, is not the setting's
(interrupts, other programs, the machine below) and is left out, and so is the first: its period
began before the loop did. That holds of a quota on several CPUs too: what a CPU gives back lets
another go on between two periods, but it gives back when its loop sleeps, and these never do.
Beside competitors on several CPUs every long pause is kept: most are turns.

A stopped part goes on at once where its CPU is idle; where another program runs, the kernel lets
that go on to the next tick. A look at several CPUs without competitors beside which programs had
more than `OTHERS_CPUS` is told, marked `others`, and not counted: it would judge those programs.

One more number is the machine's and not the setting's: how often something else woke on a CPU for a
moment, which makes the kernel account for what ran and so decides when slices of a quota are taken.
It is what the loops' own process counts as involuntary switches, but for those that a long pause
explains.

And something else has a CPU for longer: other programs, or the machine below. The kernel charges no
quota and no reservation for that, so a loop stops as much later and waits as much less. How often
and for how long is read from the loops' pauses, those of the setting left out; when is drawn.

The distance of two distributions is Wasserstein's, in per cent of the measured mean.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _paired import write_result

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "truth"))

import scheduler_settings  # noqa: E402
from _scheduler_pauses import (  # noqa: E402
    Pause,
    of_setting,
    pauses,
    phase_ms,
    runs_between,
    taken,
)
from scipy.stats import wasserstein_distance  # noqa: E402

from nephoscope.core.model import Sample  # noqa: E402
from nephoscope.core.programs import find_simulator  # noqa: E402
from scheduler import read  # noqa: E402

BOUND = 0.05
HELD = ("reservation", "reservation on one CPU", "cap on one CPU", "own quota", "cap")
LEAST_PAUSES = 5
"""Fewer pauses of a loop say nothing about a distribution."""
SIMULATED_NS = 60_000_000_000
MACHINE_CPUS = 2
"""Of the machine recorded on; its share of busy time is of all of them."""
OTHERS_CPUS = 0.2
"""Other programs on the CPUs of a look: a tenth of each of two."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One look of one setting. runs, waits: distance over the measured mean; the chances: as
    `by_chance`."""

    text: str
    name: str
    pauses: int
    runs: float
    waits: float
    run_mean_ns: float
    wait_mean_ns: float
    runs_chance: float
    waits_chance: float
    others_cpus: float


def wakeups_per_s(trial: dict[str, Any], long_pauses: int) -> float:
    """How often something else woke on a CPU while a loop ran there; 0 where nobody counted."""
    switches = trial["beside"].get("involuntary_switches_count")
    own = [one.value for one in trial["samples"] if one.metric == "obtained_cpus"]
    if switches is None or not own or not own[0]:
        return 0.0
    ran_s = own[0] * trial["params"]["duration_ns"] / 1e9
    return float(max(0, switches - long_pauses) / ran_s)


def others_of(trial: dict[str, Any], period_ns: float, tick_ns: float) -> tuple[float, float]:
    """As `taken`, of the loops that have enough pauses."""
    every = pauses(trial["samples"], 0.0).values()
    enough = [
        mine
        for mine in every
        if len([one for one in mine if one[1] >= tick_ns / 2]) >= LEAST_PAUSES
    ]
    return taken(enough, trial["params"]["duration_ns"], period_ns, tick_ns)


def machine(
    setting: scheduler_settings.Setting,
    phase: float,
    wakeups: float = 0.0,
    others: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Any]:
    """The setting as a scheduler scenario whose machine `a` is looked from."""
    cpu = setting.cpu
    own: dict[str, Any] = {"vcpus": setting.cpus}
    if "reservation" in cpu:
        slice_ms, period_ms = (
            float(cpu["reservation"][name].removesuffix("ms")) for name in ("slice", "period")
        )
        own["reservation"] = {"slice_ms": slice_ms, "period_ms": period_ms, "phase_ms": phase}
    else:
        period_ms = float(cpu["cap_period"].removesuffix("ms"))
        own["quota"] = {"cpus": cpu["cap"], "period_ms": period_ms, "phase_ms": phase}
        own["cpus"] = cpu["cpus"]
    vms = {"a": own}
    for number, one in enumerate(setting.competitors):
        vms[f"c{number}"] = {"vcpus": len(one.cpus), "weight": one.weight, "cpus": list(one.cpus)}
    linux = {
        "wakeups_per_s": round(wakeups, 1),
        "interruptions_per_s": round(others[0], 3),
        "interruption_ms": round(others[1], 4),
    }
    return {
        "version": 1,
        "policy": "linux",
        "processors": MACHINE_CPUS,
        "linux": linux,
        "vms": vms,
    }


def simulated(program: Path, scenario: dict[str, Any], params: dict[str, Any]) -> list[Sample]:
    """The samples of `cpu.gaps` inside the machine `a`. RuntimeError carries its own sentence."""
    words = [str(program), "run", "cpu.gaps", "--params", json.dumps(params)]
    words += ["--machine", json.dumps(scenario), "--vm", "a"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    lines = (json.loads(line) for line in done.stdout.splitlines())
    return [
        Sample(
            line["metric"],
            line["value"],
            line["count"],
            line.get("at_ns") or 0,
            line.get("factors", {}),
        )
        for line in lines
        if "metric" in line
    ]


def compared(
    program: Path, setting: scheduler_settings.Setting, trial: dict[str, Any], tick_ns: float
) -> Compared | None:
    """One look against its simulation; None where there are too few pauses."""
    assert setting.period_ns is not None
    period_ns, least_ns = setting.period_ns, tick_ns / 2
    each_alone = "reservation" in setting.cpu or trial["params"].get("cpus_max") == 1
    of_itself = each_alone or not setting.competitors

    def loops_of(samples: Iterable[Sample]) -> list[tuple[list[Pause], list[Pause]]]:
        found = []
        for one in pauses(samples, least_ns).values():
            kept = of_setting(one, period_ns, tick_ns) if of_itself else one[1:]
            if len(kept) >= LEAST_PAUSES:
                found.append((one, kept))
        return found

    mine = loops_of(trial["samples"])
    given = trial["params"]
    if not mine or given.get("sleep_ns") or given.get("processes_per_cpu", 1) > 1:
        return None
    params = {"duration_ns": SIMULATED_NS, "threshold_ns": int(least_ns), "events_max": 100_000}
    params |= {"cpus_max": given.get("cpus_max", 0)}
    wakeups = 0.0
    if not setting.competitors and "reservation" not in setting.cpu:
        wakeups = wakeups_per_s(trial, sum(len(one) for one, _ in mine))
    # Loops with reservations have periods of their own; a quota has one for all.
    each = mine if "reservation" in setting.cpu else mine[:1]
    theirs: list[tuple[list[Pause], list[Pause]]] = []
    others = others_of(trial, period_ns, tick_ns) if of_itself else (0.0, 0.0)
    for _, one in each:
        scenario = machine(setting, phase_ms(one, period_ns, tick_ns), wakeups, others)
        loops = loops_of(simulated(program, scenario, params))
        theirs += loops[:1] if len(each) > 1 else loops
    measured_runs = [run for one in mine for run in runs_between(*one)]
    measured_waits = [length for _, kept in mine for _, length in kept]
    if not theirs or not measured_runs:
        return None
    run_mean = sum(measured_runs) / len(measured_runs)
    wait_mean = sum(measured_waits) / len(measured_waits)
    runs = [run for one in theirs for run in runs_between(*one)]
    waits = [length for _, kept in theirs for _, length in kept]
    return Compared(
        setting.text,
        setting.name,
        len(measured_waits),
        float(wasserstein_distance(measured_runs, runs)) / run_mean,
        float(wasserstein_distance(measured_waits, waits)) / wait_mean,
        run_mean,
        wait_mean,
        by_chance(runs, len(measured_runs)),
        by_chance(waits, len(measured_waits)),
        math.nan if setting.competitors or each_alone else others_cpus(trial),
    )


def by_chance(lengths: Sequence[float], number: int) -> float:
    """How far `number` pauses in a row of one simulation lie from all of them, over their mean:
    95 % of such samples lie nearer. A look that is farther differs by more than its being short."""
    if len(lengths) <= number:
        return math.nan
    starts = random.Random(1).sample(range(len(lengths)), min(200, len(lengths)))
    twice = [*lengths, *lengths]
    far = sorted(wasserstein_distance(twice[at : at + number], lengths) for at in starts)
    return float(far[int(0.95 * len(far))]) / (sum(lengths) / len(lengths))


def others_cpus(trial: dict[str, Any]) -> float:
    """CPUs that programs other than the loops had beside a look; NaN where nobody counted."""
    own = [one.value for one in trial["samples"] if one.metric == "obtained_cpus"]
    busy = trial["beside"].get("busy_ratio")
    if busy is None or not own or own[0] is None:
        return math.nan
    return float(busy * MACHINE_CPUS - own[0])


def compare_all(args: argparse.Namespace) -> list[Compared]:
    """Every recorded look that can be compared; prints each."""
    found = []
    drawn: dict[int, list[scheduler_settings.Setting]] = {}
    for path in sorted(args.folder.glob("*.json.gz")):
        values = read(path)
        seed = values["seed"]
        drawn.setdefault(seed, scheduler_settings.draw(seed, args.number))
        setting = drawn[seed][values["number"]]
        if setting.name not in HELD:
            continue
        for trial in values["trials"]:
            one = compared(args.program, setting, trial, args.tick_ms * 1e6)
            if one is None:
                continue
            disturbed = one.others_cpus > OTHERS_CPUS
            if not disturbed:
                found.append(one)
            print(
                f"{'others ' if disturbed else ''}{path.name} n={one.pauses:3} "
                f"run {one.run_mean_ns / 1e6:6.2f} ms "
                f"{100 * one.runs:5.1f} %  wait {one.wait_mean_ns / 1e6:6.2f} ms "
                f"{100 * one.waits:5.1f} %  (chance {100 * one.runs_chance:.1f} and "
                f"{100 * one.waits_chance:.1f} %)  {one.text}",
                flush=True,
            )
    return found


def figures(found: Sequence[Compared]) -> dict[str, Any]:
    """By what was set: looks, mean and largest distance of runs and of waits."""
    table = {}
    for name in sorted({one.name for one in found}):
        mine = [one for one in found if one.name == name]
        table[name] = {
            "looks": len(mine),
            "pauses": sum(one.pauses for one in mine),
            "run_distance_mean_ratio": sum(one.runs for one in mine) / len(mine),
            "wait_distance_mean_ratio": sum(one.waits for one in mine) / len(mine),
            "run_distance_max_ratio": max(one.runs for one in mine),
            "wait_distance_max_ratio": max(one.waits for one in mine),
            "looks_within_bound": len([one for one in mine if max(one.runs, one.waits) <= BOUND]),
            "looks_beyond_bound_and_chance": len(
                [
                    one
                    for one in mine
                    if one.runs > max(BOUND, one.runs_chance)
                    or one.waits > max(BOUND, one.waits_chance)
                ]
            ),
        }
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="recordings")
    parser.add_argument("--program", type=Path, help="nephoscope-sim, where it is another")
    parser.add_argument("--number", type=int, default=60, help="settings drawn from each seed")
    parser.add_argument("--tick-ms", type=float, default=4.0, help="of the machine recorded on")
    parser.add_argument("--write", action="store_true", help="store the result with the date")
    args = parser.parse_args()
    args.program = args.program or find_simulator()
    found = compare_all(args)
    table = figures(found)
    for name, row in table.items():
        print(f"{name}: {json.dumps({key: round(value, 4) for key, value in row.items()})}")
    if args.write:
        write_result("scheduler-backtest", {"bound_ratio": BOUND, "settings": table})
    held = [row["run_distance_mean_ratio"] <= BOUND for row in table.values()]
    held += [row["wait_distance_mean_ratio"] <= BOUND for row in table.values()]
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
