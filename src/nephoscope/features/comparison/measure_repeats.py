"""Measures complete runs of one plan with gaps between them, and presents them together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output

if TYPE_CHECKING:
    from nephoscope.measure.plans import Plan


def measure_repeatedly(
    plan: Plan, *, store: Path | None, repeat: options.Repetition, as_json: bool, fresh: bool
) -> int:
    """Makes the runs, prints what they show together and returns the worst exit code.

    fresh: whether the first run may not resume an unfinished one; the others never do.
    """
    from nephoscope.features.comparison.repeats import analyse_repeats
    from nephoscope.features.comparison.terminal import print_repeats
    from nephoscope.store import Store

    runs = Store(store)
    results, code = [], 0
    for number in range(repeat.runs):
        if number:
            output.log(f"Run {number} of {repeat.runs} is complete; the next in {repeat.gap_s:g} s")
            time.sleep(repeat.gap_s)
        run = measuring.executed(plan, runs, fresh=fresh or number > 0)
        result = measuring.reported(run)
        results.append(result)
        code = max(code, measuring.exit_code(result, run))
    repeats = analyse_repeats(results)
    if as_json:
        output.document(repeats)
    else:
        print_repeats(repeats)
    return code
