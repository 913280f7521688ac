"""Verdicts on schedulers from stored runs whose every gap the test sets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests import schemas
from tests.results.made import NULL_PLAN, make_run
from tests.stats.scheduler.simulated import Budget, Turns, always, look

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.scheduler import terminal as scheduler_text
from nephoscope.features.scheduler.inference.verdict import (
    ObservationWindow,
    Scheduler,
    SchedulerVerdicts,
    Word,
)
from nephoscope.report import report_files
from nephoscope.results import analyse_run

MS = 1_000_000

PLAN = """
version: 1
name: made
repeat: {min: 1, max: 1}
benchmarks:
  - benchmark: cpu.gaps
    params: {cpus_max: 1, duration_ns: 2500ms}
  - benchmark: cpu.gaps
    params: {duration_ns: 2500ms}
targets:
  - {name: one, kind: local}
  - {name: two, kind: local}
"""


def samples_of(seen: ObservationWindow) -> list[Sample]:
    found = []
    for loop in seen.loops:
        where = {"cpu": loop.cpu, "process": loop.process}
        found.append(Sample("cpu_share_ratio", loop.share, factors=where))
        found.append(Sample("look_cost_ns", 15.0, factors=where))
        found += [
            Sample("gap_event_ns", gap.length_ns, 1, gap.start_ns, {**where, "cause": gap.cause})
            for gap in loop.gaps
        ]
    return found


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    """`one` is capped at 1.5 CPUs; on `two` nothing is lost."""
    loops = 1 if setting.params.get("cpus_max") == 1 else 2
    if target == "one" and loops == 2:
        return samples_of(look(Budget(2, 150 * MS, 100 * MS, 7 * MS)))
    return samples_of(look(always(loops)))


def verdicts(result: RunResult) -> tuple[Scheduler, ...]:
    found = result.part(SchedulerVerdicts)
    assert found is not None
    return found.targets


def test_each_target_has_its_verdict(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, PLAN, sampler, rounds=1))
    one, two = verdicts(result)
    assert (one.target, one.word) == ("one", Word.CAP_PER_MACHINE)
    assert (two.target, two.word) == ("two", Word.DEDICATED)
    assert abs(one.fit.share.value - 1.5) < 0.015
    assert abs(one.fit.period_ns.value / (100 * MS) - 1) < 0.01
    # The warm-up round is kept and not looked at.
    assert [seen.trial[:5] for seen in one.windows] == ["r0001", "r0001"]
    document = report_files.document(result)
    schemas.validate(document, schemas.result_schema())
    assert [found["word"] for found in document["scheduler"]["targets"]] == [
        "cap per machine",
        "dedicated",
    ]
    text = scheduler_text.text(verdicts(result))
    assert text.startswith("one: cap per machine\n")
    assert "two: dedicated" in text
    assert "one on every CPU" in text


def test_a_condition_that_varies_has_a_verdict_for_each_level(tmp_path: Path) -> None:
    plan = """
version: 1
name: made
repeat: {min: 1, max: 1}
benchmarks:
  - benchmark: cpu.gaps
    params: {cpus_max: 1, duration_ns: 2500ms}
    factors: {threshold_ns: [100us, 200us]}
"""

    def weighted(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return samples_of(look(Turns(100, [100]), noise=random.Random(1)))

    run = make_run(tmp_path, plan, weighted, rounds=1)
    # A parameter of the benchmark is no condition: all looks belong together.
    (found,) = verdicts(analyse_run.build(run))
    assert found.word is Word.WEIGHT_ONLY
    assert not found.conditions
    assert len(found.windows) == 2
    assert found.missing


def test_a_run_without_looks_has_no_verdict(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, lambda *_: [Sample("null_ns", 1.0)])
    result = analyse_run.build(run)
    assert result.part(SchedulerVerdicts) is None
    assert report_files.document(result)["scheduler"] is None
