"""Builds the section on excluded trials, grouped by reason."""

from __future__ import annotations

from nephoscope.core.model import InvalidTrial, RunResult
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence, items
from nephoscope.report.columns import number, table, text


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
    rows = table(
        groups.items(),
        text("benchmark", lambda group: group[0][0]),
        text("status", lambda group: group[0][1]),
        number("trials", lambda group: len(group[1])),
        text("reason", lambda group: group[0][2]),
    )
    singles = table(
        result.invalid,
        text("trial", lambda trial: trial.trial),
        text("benchmark", lambda trial: trial.benchmark),
        text("setting", lambda trial: wording.factors_text(trial.factors) or "–"),
        text("status", lambda trial: trial.status.value),
        text("reasons", lambda trial: "; ".join(trial.reasons)),
        caption="List of excluded trials",
        collapsed=True,
    )
    return Section("excluded", "Excluded trials", (Sentence(intro), rows, singles))


def settings_without_results(result: RunResult) -> list[Block]:
    """Returns the settings that no table of results has, since all their trials were excluded."""
    return items(wording.excluded_rows(result), "notice", title="Settings without results")
