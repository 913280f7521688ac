"""How often scheduler inference is right: settings drawn afresh in a lab, against their classes.

    [all]   draws settings, looks at each, keeps the raw samples in --folder, names each and counts
    record  only the first half; goes on where it stopped
    judge   only the second half: analyses are tuned on files, not on machines

`--write` stores the figures with the date, and the page of docs/explanation that shows them.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import gzip
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _paired import write_result

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "truth"), str(ROOT)]

import scheduler_lab  # noqa: E402
from scheduler_judging import (  # noqa: E402
    Judged,
    drawn,
    figures,
    judged,
    read,
    recorded_setting,
    table,
    told,
)

PAGE = ROOT / "docs" / "explanation" / "scheduler-accuracy.md"
WIDE_HEAD = "## Wider ranges"
LEAST = 0.95


def kept(trial: dict[str, Any]) -> dict[str, Any]:
    """A raw trial as JSON."""
    samples = [
        [one.metric, one.value, one.count, one.at_ns, dict(one.factors)] for one in trial["samples"]
    ]
    return {**trial, "samples": samples}


def record(args: argparse.Namespace, folder: Path) -> None:
    """Measures what is not there yet, until the time is up."""
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + args.seconds
    for number, setting in enumerate(drawn(args.seed, args.number, wide=args.wide)):
        path = folder / f"{'wide-' if args.wide else ''}{args.seed}-{number:03d}.json.gz"
        if path.exists() or time.monotonic() > until:
            continue
        began = time.monotonic()
        try:
            trials = scheduler_lab.measure(args.lab, args.network, setting, args.duration)
        except Exception as error:
            print(f"{number}: {setting.text}: {error}", file=sys.stderr)
            continue
        values = {
            "seed": args.seed,
            "number": number,
            "wide": args.wide,
            "setting": dataclasses.asdict(setting),
            "trials": [kept(one) for one in trials],
        }
        path.write_bytes(gzip.compress(json.dumps(values).encode()))
        print(f"{number}: {setting.text} ({time.monotonic() - began:.1f} s)", flush=True)


def judge(args: argparse.Namespace, folder: Path) -> list[Judged]:
    """Names every recorded setting again; prints those that are not right, and the table."""
    found = []
    for path in sorted(folder.glob("*.json.gz")):
        values = read(path)
        one = judged(recorded_setting(values), values["trials"])
        found.append(one)
        if args.tell or one.misses or one.share_fits is False or one.period_fits is False:
            print(path.name, told(one))
            evidence = (one.found.sentence, *one.found.evidence, *one.found.contradictions)
            for sentence in evidence if args.tell or one.misses else ():
                print("    ", sentence)
    print()
    print(table(found))
    return found


def outcome(found: list[Judged]) -> str:
    """'54 of 60 right, 6 unclear, 0 wrong'."""
    right, unclear, wrong = (sum(one.misses == misses for one in found) for misses in range(3))
    return f"{right} of {len(found)} right, {unclear} unclear, {wrong} wrong"


def after(args: argparse.Namespace, found: list[Judged]) -> str:
    """The outcome after the longer observation that *unclear* offers, where it was recorded."""
    if args.longer is None:
        return ""
    longer = [read(path) for path in sorted(args.longer.glob("*.json.gz"))]
    second = [judged(recorded_setting(values), values["trials"]) for values in longer]
    settings = [one.setting for one in second]
    first = [one for one in found if one.setting not in settings]
    return f"After the longer observation that *unclear* offers: {outcome([*first, *second])}."


def write(args: argparse.Namespace, found: list[Judged]) -> None:
    """The dated result and its part of the page: the usual ranges first, then the wider ones."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    slug = "scheduler-wide" if args.wide else "scheduler"
    write_result(slug, {"seed": args.seed, **figures(found)})
    usual, _, wide = PAGE.read_text(encoding="utf-8").partition(WIDE_HEAD)
    measured = f"Measured {today}, seed {args.seed}: "
    if args.wide:
        wide = (
            f"\n\n{measured}random settings of the wider ranges, with periodic neighbours.\nIn the "
            f"first observation of at most 8.5 s: {outcome(found)}.\n{after(args, found)}\n"
            f"\n{table(found)}\n"
        )
    else:
        usual = (
            f"# Accuracy of scheduler inference\n\n{measured}random settings of a lab host. Each "
            "setting determines its class\n([the mapping](../how-to/scheduler.md#validation)) and "
            "was observed for at most 8.5 s.\nRows are the classes of the settings, columns the "
            "inferred classes. `make bench` draws other settings and writes this page again.\n\n"
            f"{table(found)}\n\n"
        )
    PAGE.write_text(f"{usual.rstrip()}\n\n{WIDE_HEAD}{wide}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", nargs="?", choices=("all", "record", "judge"), default="all")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no setting later")
    parser.add_argument("--wide", action="store_true", help="draw from the wider ranges")
    parser.add_argument("--duration", type=float, help="seconds of all looks at one setting")
    parser.add_argument("--lab", default="sb-sched")
    parser.add_argument("--network", default="10.81.0.0/16")
    parser.add_argument("--folder", type=Path, help="where recordings are kept")
    parser.add_argument("--longer", type=Path, help="recordings of longer second observations")
    parser.add_argument("--tell", action="store_true", help="tell of every setting")
    parser.add_argument("--realtime", action="store_true", help="has no meaning here")
    parser.add_argument("--write", action="store_true", help="store the result with the date")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        folder = args.folder or Path(aside)
        if args.verb != "judge":
            record(args, folder)
        if args.verb == "record":
            return 0
        found = judge(args, folder)
        if args.write:
            write(args, found)
    return 0 if found and figures(found)["right_ratio"] >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
