"""Builds the section on excluded trials, grouped by reason."""

from __future__ import annotations

from nephoscope.core.model import InvalidTrial, RunResult
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Section, Sentence, Table, items


def build(result: RunResult) -> Section:
    """The trials by reason, and the single ones folded away."""
    if not result.invalid:
        return Section("excluded", "Excluded trials", (Sentence("No trial was excluded."),))
    count = wording.plural(len(result.invalid), "trial")
    verb = "was" if len(result.invalid) == 1 else "were"
    intro = f"{count} {verb} excluded as invalid or failed. No result above includes them."
    groups: dict[tuple[str, str, str], list[InvalidTrial]] = {}
    for trial in result.invalid:
        for reason in trial.reasons or ("no reason recorded",):
            groups.setdefault((trial.benchmark, trial.status.value, reason), []).append(trial)
    rows = tuple(
        (wording.clean(benchmark), wording.clean(status), str(len(own)), wording.clean(reason))
        for (benchmark, status, reason), own in groups.items()
    )
    head = (*Column.texts("benchmark", "status"), Column("trials", True), Column("reason"))
    singles = tuple(
        (
            wording.clean(trial.trial),
            wording.clean(trial.benchmark),
            wording.factors_text(trial.factors) or "–",
            wording.clean(trial.status.value),
            wording.clean("; ".join(trial.reasons)),
        )
        for trial in result.invalid
    )
    single_head = Column.texts("trial", "benchmark", "setting", "status", "reasons")
    return Section(
        "excluded",
        "Excluded trials",
        (
            Sentence(intro),
            Table(head, rows),
            Table(single_head, singles, "List of excluded trials", collapsed=True),
        ),
    )


def settings_without_results(result: RunResult) -> list[Block]:
    """Returns the settings that no table of results has, since all their trials were excluded."""
    return items(wording.excluded_rows(result), "notice", title="Settings without results")
