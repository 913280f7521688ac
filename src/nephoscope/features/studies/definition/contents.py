"""Records of contents.yaml: a study's tables, figures and experiments, and what answers each."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from nephoscope.core.reading.fields import Record
from nephoscope.features.studies.definition.selectors import Text

State = Literal[
    "runs here", "runs with a requirement", "nothing to run", "not built yet", "not planned"
]
"""Of an entry. runs here: on this machine, by a part of the study or by a command. runs with a
requirement: the same, with something that this machine may not have. nothing to run: a drawing,
notation, a list of offers. not built yet, not planned: with the reason.
"""

STATES: tuple[State, ...] = get_args(State)


class ContentsEntry(Record):
    """A table, a figure, an experiment or a suggestion of a study.

    name: as the study names it ('Table 3.1', 'Section 5.2'). parts: those of study.yaml that run
    it. commands: those that answer it, with the arguments that matter. needs: what a run of them
    requires beyond this machine. The other keys state why there is neither.
    """

    name: Text
    title: Text
    parts: tuple[Text, ...] = ()
    commands: tuple[Text, ...] = ()
    needs: str = ""
    nothing_to_run: str = ""
    not_built: str = ""
    not_planned: str = ""

    @model_validator(mode="after")
    def _has_one_state(self) -> Self:
        runs = bool(self.parts or self.commands)
        if [runs, *map(bool, self._reasons.values())].count(True) != 1:
            raise ValueError(
                f"{self.name}: give `parts` or `commands`, or one of {', '.join(self._reasons)}"
            )
        if self.needs and not runs:
            raise ValueError(f"{self.name}: `needs` belongs to `parts` or `commands`")
        return self

    @property
    def _reasons(self) -> dict[str, str]:
        return {
            "nothing_to_run": self.nothing_to_run,
            "not_built": self.not_built,
            "not_planned": self.not_planned,
        }

    @property
    def state(self) -> State:
        """Whether it runs."""
        if self.nothing_to_run:
            return "nothing to run"
        if self.not_built:
            return "not built yet"
        if self.not_planned:
            return "not planned"
        return "runs with a requirement" if self.needs else "runs here"

    @property
    def explanation(self) -> str:
        """What runs it and what that needs, or the reason."""
        if reason := "".join(self._reasons.values()):
            return reason
        parts = [f"part {', '.join(self.parts)}"] if self.parts else []
        answer = "; ".join([*parts, *(f"`nephoscope {command}`" for command in self.commands)])
        return f"{answer}; needs {self.needs}" if self.needs else answer


class Contents(Record):
    """The study's own tables, figures and experiments, in the order of its text."""

    entries: Annotated[tuple[ContentsEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_distinct_entries(self) -> Self:
        counts = Counter((entry.name, entry.title) for entry in self.entries)
        if twice := [f"{name}, {title}" for (name, title), count in counts.items() if count > 1]:
            raise ValueError(f"listed twice: {'; '.join(twice)}")
        return self


def counts(entries: tuple[ContentsEntry, ...]) -> dict[State, int]:
    """Returns the number of entries in each state."""
    by_state = Counter(entry.state for entry in entries)
    return {state: by_state[state] for state in STATES}
