"""Compares stored runs, or two targets of one, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.model import RunResult
from nephoscope.features.comparison import result as comparing
from nephoscope.features.comparison.deciding import next_step
from nephoscope.features.comparison.differences import differences_between, environment_of
from nephoscope.features.comparison.effort import effort, repeats_effort
from nephoscope.features.comparison.history import LineHistory, machine_of
from nephoscope.features.comparison.result import ComparisonRules, Comparisons, Ignored
from nephoscope.features.comparison.settings import measured_otherwise, settings_of
from nephoscope.report import wording
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun

MAX_SIDES = 16
"""Sides of one comparison: each one more leaves less of the error rate to the others."""

Side = tuple[str, str]
"""A run and one of its targets, '' where none was named."""


def of_stored_runs(
    store: Store,
    names: Sequence[str],
    rules: ComparisonRules,
    *,
    paired: bool = False,
    ignored: Ignored | None = None,
    folder: Path | None = None,
) -> Comparisons:
    """Compares what one or two names mean: RUN, or RUN:TARGET.

    One name compares the targets of that run; with more than two sides, each other one is compared
    with the first. folder: the store as the user named it, for the command in `next_step`. Raises
    UsageError or UnknownName where the names do not make pairs.
    """
    names = _with_targets(store, names)
    if len(names) > 2:
        if len(names) > MAX_SIDES:
            raise UsageError(
                f"{len(names)} sides; at most {MAX_SIDES} are compared.",
                "Name fewer; `nephoscope rank` orders many.",
            )
        if len(set(names)) < len(names):
            raise UsageError("A side is named twice.", "Name each run or target once.")
        each = replace(rules, is_part=True)
        return comparing.of_parts(
            [
                of_stored_runs(store, (names[0], name), each, paired=paired, folder=folder)
                for name in names[1:]
            ],
            rules,
        )
    sides = [(run, target) for run, _, target in (name.partition(":") for name in names)]
    stored = [store.open(run) for run, _ in sides]
    built = [analyse_run.build(run, confidence=rules.confidence) for run in stored]
    ids = {str(result.run.id) for result in built}
    if len(ids) == 1:
        a, b = _two_targets(sides, built[0])
        comparisons = comparing.of_targets(built[0], a, b, rules, ignored)
        return _with_differences(comparisons, [stored[0]] * 2, (a, b), ignored or {})
    if paired:
        raise UsageError(
            "Two separate runs have no pairs.",
            "Measure both targets in one plan, which interleaves them.",
        )
    targets = (_one_target(sides[0], built[0]), _one_target(sides[1], built[1]))
    history = (LineHistory(store, stored[0], ids), LineHistory(store, stored[1], ids))
    otherwise = measured_otherwise(*(settings_of(run.records()) for run in stored))
    machines = [machine_of(run, target) for run, target in zip(stored, targets, strict=True)]
    same_machine = machines[0] == machines[1] != ""
    comparisons = comparing.of_runs(
        built[0],
        built[1],
        targets,
        history,
        rules,
        otherwise,
        same_machine=same_machine,
        kin=tuple(side.kin for side in history),
    )
    comparisons = _with_differences(comparisons, stored, targets, {})
    if not comparisons.leaves_open:
        return comparisons
    alike = same_machine and not otherwise
    deciding = next_step((stored[0], stored[1]), targets, alike, folder)
    known = [_duration_s(run) for run in stored]
    if alike:
        needed = repeats_effort(max(known))
    else:
        needed = effort(comparisons.comparisons, rules.margin, sum(known) if all(known) else 0.0)
    return replace(
        comparisons, next_step=f"{deciding.rstrip('.')}. {needed}" if needed else deciding
    )


def _with_targets(store: Store, names: Sequence[str]) -> Sequence[str]:
    """Returns the targets of a run that is named alone and has more than two; else the names."""
    if len(names) != 1 or ":" in names[0]:
        return names
    run = store.open(names[0])
    known = _target_names(analyse_run.build(run))
    return [f"{run.id}:{target}" for target in known] if len(known) > 2 else names


def _duration_s(run: StoredRun) -> float:
    """Seconds that a run took; 0 where they are not known, as of one that was imported."""
    known = run.manifest
    if known.imported is not None or not known.started_at or not known.finished_at:
        return 0.0
    return max(0.0, known.finished_at - known.started_at)


def _with_differences(
    comparisons: Comparisons, runs: Sequence[StoredRun], targets: Sequence[str], set_apart: Ignored
) -> Comparisons:
    """Adds what differs between the environments of the two sides."""
    a, b = (
        environment_of(run, target, set_apart) for run, target in zip(runs, targets, strict=True)
    )
    hidden = [name for name, side in (("A", a), ("B", b)) if not side.fingerprint]
    unknown = ""
    if hidden:
        verb = "have no fingerprints" if len(hidden) == 2 else "has no fingerprint"
        unknown = f"{' and '.join(hidden)} {verb}, so differences of the machines are unknown."
    return replace(comparisons, differences=differences_between(a, b), unknown=unknown)


def _require_results(result: RunResult, known: Sequence[str]) -> None:
    """Raises UsageError for a run without a valid trial."""
    if not known:
        raise UsageError(
            f"Run {result.run.id} has no results: no trial of it is valid.",
            f"`nephoscope show {result.run.id}` has the reasons.",
        )


def _target_names(result: RunResult) -> list[str]:
    """Returns the targets that have results, in the order of the plan: the first one is A."""
    measured = dict.fromkeys(line.target for line in result.metrics)
    planned = [name for name in result.run.targets if name in measured]
    return list(dict.fromkeys([*planned, *measured]))


def _check_target(side: Side, known: Sequence[str]) -> str:
    run, target = side
    if target not in known:
        raise UnknownName(f"Run {run} has no target '{target}'.", f"Targets: {', '.join(known)}.")
    return target


def _two_targets(sides: Sequence[Side], result: RunResult) -> tuple[str, str]:
    known = _target_names(result)
    _require_results(result, known)
    if len(sides) == 2 and not any(target for _, target in sides):
        raise UsageError("A and B are the same run.", "Name two runs.")
    if len(sides) == 2 and all(target for _, target in sides):
        a, b = (_check_target(side, known) for side in sides)
        if a == b:
            raise UsageError(f"A and B are the same target '{a}'.", "Name two targets.")
        return a, b
    if len(known) != 2:
        raise UsageError(
            f"The run has {len(known)} target{'s' if len(known) != 1 else ''} "
            f"({', '.join(known)}).",
            "Name two runs, or two targets as RUN:TARGET.",
        )
    return known[0], known[1]


def _one_target(side: Side, result: RunResult) -> str:
    known = _target_names(result)
    _require_results(result, known)
    if side[1]:
        return _check_target(side, known)
    if len(known) != 1:
        raise UsageError(
            f"Run {side[0]} has {len(known)} targets ({wording.named(known)}).",
            "Select one as RUN:TARGET.",
        )
    return known[0]
