"""How often scheduler inference is right: settings drawn afresh in a lab, against their classes.

record --seed N --number N --lab NAME --network NET --folder DIR [--first N] [--seconds S]
    draws settings, looks at each, keeps the raw samples as JSON; goes on where it stopped
judge --folder DIR [--all]
    names each recorded setting again and counts: analyses are tuned on files, not on machines
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "truth"))

import scheduler_lab  # noqa: E402
import scheduler_settings  # noqa: E402

from nephoscope.analysis.scheduler import Scheduler, Word, infer  # noqa: E402
from nephoscope.model import Sample  # noqa: E402


def kept(trial: dict[str, Any]) -> dict[str, Any]:
    """A raw trial as JSON."""
    samples = [
        [one.metric, one.value, one.count, one.at_ns, dict(one.factors)] for one in trial["samples"]
    ]
    return {**trial, "samples": samples}


def read(path: Path) -> dict[str, Any]:
    """A recording: number, seed, the raw trials."""
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    for trial in found["trials"]:
        trial["samples"] = [Sample(*one) for one in trial["samples"]]
    return found


def record(args: argparse.Namespace) -> None:
    """Measures what is not there yet, until the time is up."""
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + args.seconds
    for number, setting in enumerate(scheduler_settings.draw(args.seed, args.number)):
        path = folder / f"{args.seed}-{number:03d}.json.gz"
        if number < args.first or path.exists() or time.monotonic() > until:
            continue
        began = time.monotonic()
        try:
            trials = scheduler_lab.measure(args.lab, args.network, setting)
        except Exception as error:
            print(f"{number}: {setting.text}: {error}", file=sys.stderr)
            continue
        values = {"seed": args.seed, "number": number, "trials": [kept(one) for one in trials]}
        path.write_bytes(gzip.compress(json.dumps(values).encode()))
        print(f"{number}: {setting.text} ({time.monotonic() - began:.1f} s)", flush=True)


@dataclass(frozen=True, slots=True)
class Judged:
    """One setting: what it was declared to be, what it was called, and how the fit lies."""

    setting: scheduler_settings.Setting
    found: Scheduler
    share_off: float | None
    period_off: float | None

    @property
    def misses(self) -> int:
        """0 where the class is right, 1 for *unclear*, 2 for a wrong name."""
        if self.found.word is self.setting.word:
            return 0
        return 1 if self.found.word is Word.UNCLEAR else 2

    @property
    def share_fits(self) -> bool | None:
        """Within 1.5 points; None where nothing sets a share."""
        if self.setting.share is None:
            return None
        return self.share_off is not None and abs(self.share_off) <= 0.015

    @property
    def period_fits(self) -> bool | None:
        """Within 10 %; None where nothing sets a period."""
        if self.setting.period_ns is None:
            return None
        return self.period_off is not None and abs(self.period_off) <= 0.10


def judged(setting: scheduler_settings.Setting, trials: list[dict[str, Any]]) -> Judged:
    """Names a setting from its raw trials and holds the fit against what was set."""
    found = infer("a", scheduler_lab.looks_of(trials, setting.cpus))
    share, period = found.fit.share, found.fit.period_ns
    return Judged(
        setting,
        found,
        None if share is None or setting.share is None else share.value - setting.share,
        None
        if period is None or setting.period_ns is None
        else period.value / setting.period_ns - 1,
    )


def told(one: Judged) -> str:
    """One line for people."""
    mark = ("right", "UNCLEAR", "WRONG")[one.misses]
    share = "-" if one.share_off is None else f"{100 * one.share_off:+.2f} points"
    period = "-" if one.period_off is None else f"{100 * one.period_off:+.2f} %"
    return f"{mark}: {one.setting.text} -> {one.found.word}; share {share}, period {period}"


def table(all_: list[Judged]) -> str:
    """The confusion table and the figures, in Markdown."""
    words = [word for word in Word if any(word in (j.setting.word, j.found.word) for j in all_)]
    rows = [["set", *words], ["---"] * (len(words) + 1)]
    for word in words:
        mine = [one for one in all_ if one.setting.word is word]
        if mine:
            counts = [sum(one.found.word is other for one in mine) for other in words]
            rows.append([word, *(str(count or "") for count in counts)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    misses = sum(one.misses for one in all_)
    lines += [
        "",
        f"{len(all_)} settings, {misses} misses (a wrong name counts twice): "
        f"{100 * (1 - misses / len(all_)):.1f} %.",
    ]
    for name, fits in (
        ("share within 1.5 points", [one.share_fits for one in all_]),
        ("period within 10 %", [one.period_fits for one in all_]),
    ):
        known = [fit for fit in fits if fit is not None]
        lines.append(
            f"{name}: {sum(known)} of {len(known)}, {100 * sum(known) / len(known):.1f} %."
        )
    return "\n".join(lines)


def judge(args: argparse.Namespace) -> None:
    """Names every recorded setting again."""
    all_ = []
    drawn: dict[int, list[scheduler_settings.Setting]] = {}
    for path in sorted(Path(args.folder).glob("*.json.gz")):
        values = read(path)
        seed = values["seed"]
        drawn.setdefault(seed, scheduler_settings.draw(seed, 400))
        one = judged(drawn[seed][values["number"]], values["trials"])
        all_.append(one)
        if args.all or one.misses or one.share_fits is False or one.period_fits is False:
            print(path.name, told(one))
            for sentence in (one.found.sentence, *one.found.evidence, *one.found.contradictions):
                if args.all or one.misses:
                    print("    ", sentence)
    print()
    print(table(all_))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("record")
    one.add_argument("--seed", type=int, required=True)
    one.add_argument("--number", type=int, default=60)
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--seconds", type=float, default=3600)
    one.add_argument("--lab", default="sb-sched")
    one.add_argument("--network", default="10.81.0.0/16")
    one.add_argument("--folder", required=True)
    one.set_defaults(work=record)
    one = verbs.add_parser("judge")
    one.add_argument("--folder", required=True)
    one.add_argument("--all", action="store_true", help="Tell of every setting, with evidence.")
    one.set_defaults(work=judge)
    args = parser.parse_args()
    args.work(args)


if __name__ == "__main__":
    main()
