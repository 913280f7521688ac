"""Whether a drawn setting got its name, and how far the fit lies from what was set."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scheduler_lab
from scheduler_settings import Setting, draw, draw_wide, from_values

from nephoscope.core.model import Sample
from nephoscope.features.scheduler.inference.infer import infer
from nephoscope.features.scheduler.inference.verdict import Scheduler, Word


@dataclass(frozen=True, slots=True)
class Judged:
    """One setting: what it was declared to be, what it was called, and how the fit lies."""

    setting: Setting
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


def judged(setting: Setting, trials: list[dict[str, Any]]) -> Judged:
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


def drawn(seed: int, number: int, *, wide: bool) -> list[Setting]:
    """Settings from the wider ranges or from the usual ones."""
    return draw_wide(seed, number) if wide else draw(seed, number)


def recorded_setting(values: dict[str, Any]) -> Setting:
    """The setting of a recording, which does not change with the ranges that are drawn from."""
    return from_values(values["setting"])


def read(path: Path) -> dict[str, Any]:
    """Returns a recording of `benchmarks/scheduler.py`: its setting, the raw trials."""
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    for trial in found["trials"]:
        trial["samples"] = [Sample(*one) for one in trial["samples"]]
    return found


def offered_s(found: Scheduler) -> float | None:
    """How long the second observation takes that a verdict offers; None where it offers none."""
    offer = re.search(r"--duration (\d+)s", found.next_step)
    return float(offer[1]) if offer else None


def told(one: Judged) -> str:
    """One line for people."""
    mark = ("right", "UNCLEAR", "WRONG")[one.misses]
    share = "-" if one.share_off is None else f"{100 * one.share_off:+.2f} points"
    period = "-" if one.period_off is None else f"{100 * one.period_off:+.2f} %"
    return f"{mark}: {one.setting.text} -> {one.found.word}; share {share}, period {period}"


def table(found: list[Judged]) -> str:
    """The confusion table and the figures, in Markdown."""
    words = [word for word in Word if any(word in (j.setting.word, j.found.word) for j in found)]
    rows = [["set", *words], ["---"] * (len(words) + 1)]
    for word in words:
        mine = [one for one in found if one.setting.word is word]
        if mine:
            counts = [sum(one.found.word is other for one in mine) for other in words]
            rows.append([word, *(str(count or "") for count in counts)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    values = figures(found)
    lines += [
        "",
        f"{values['settings']} settings, {values['misses']} misses (unclear counts once, a wrong "
        f"class twice): {100 * values['right_ratio']:.1f} %.",
    ]
    for name, (good, of) in (
        ("Share within 1.5 points", values["share_fits"]),
        ("Period within 10 %", values["period_fits"]),
    ):
        lines.append(f"{name}: {good} of {of}.")
    return "\n".join(lines)


def figures(found: list[Judged]) -> dict[str, Any]:
    """What counts: settings, misses, the share that is right, fits as (good, of)."""
    misses = sum(one.misses for one in found)
    return {
        "settings": len(found),
        "misses": misses,
        "right_ratio": 1 - misses / max(1, len(found)),
        "share_fits": _counted([one.share_fits for one in found]),
        "period_fits": _counted([one.period_fits for one in found]),
        "told": [told(one) for one in found],
    }


def _counted(fits: list[bool | None]) -> tuple[int, int]:
    known = [fit for fit in fits if fit is not None]
    return sum(known), len(known)
