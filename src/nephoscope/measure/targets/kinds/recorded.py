"""Kind `recorded`: no machine; what the probe answered in a stored run is answered again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.model import RECORDED
from nephoscope.core.reading.fields import Count
from nephoscope.measure.targets.kinds.record import (
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
    refuse_long_names,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target


class RecordedRecord(TargetRecord):
    """A recording that answers in a machine's place; nothing is measured."""

    model_config = ConfigDict(title="RecordedTarget")

    form: ClassVar[str] = "recorded:FILE"
    trial_overhead_s: ClassVar[float] = 0.0

    kind: Literal["recorded"] = Field(default=RECORDED, description="How the machine is reached.")
    file: str = Field(
        default="",
        max_length=1000,
        description="Recording that answers, from `nephoscope export RUN --format recording`. "
        "Required.",
    )
    source: str = Field(
        default="",
        max_length=200,
        description="Target of the recording whose answers are given; when absent, each target of "
        "`count` takes the next one.",
    )
    count: Annotated[Count, Field(ge=1, le=limits.TARGETS)] = Field(
        default=1, description="Number of targets; each is named NAME-1, NAME-2, …."
    )
    first: Annotated[Count, Field(ge=0, le=10**9)] = Field(
        default=0,
        description="Number, from 0, of the recorded target and of its answer with which the first "
        "one begins.",
    )
    speed: Annotated[float, Field(gt=0, le=1e6)] = Field(
        default=1.0, description="Factor by which answers come faster than they were recorded."
    )

    _turns: Counter[tuple[str, str]] = PrivateAttr(default_factory=Counter)
    """Answers that were given: a target that was lost goes on where it was."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.file:
            raise ValueError(
                f"'{self.name}' is of kind recorded and has no file. Add `file:`, from "
                "`nephoscope export RUN --format recording`"
            )
        if self.count > 1:
            refuse_long_names(self.name, str(self.count))
        return self

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        return cls(name=as_name(Path(rest).stem), file=rest) if rest else None

    def each(self) -> Iterator[Self]:
        """See `TargetRecord.each`: one for each of `count`."""
        if self.count == 1:
            yield self
            return
        for number in range(self.count):
            name = f"{self.name}-{number + 1}"
            single = self.model_copy(
                update={"name": name, "count": 1, "first": self.first + number}
            )
            single._turns = Counter()
            yield single

    def traits(self) -> Traits:
        """See `TargetRecord.traits`; recorded targets disturb one another as little as machines."""
        return Traits(
            machine=f"recorded:{self.name}",
            place=f"recorded:{self.file}:{self.source}:{self.first}",
            listens_on="",
            sends_to=frozenset(),
            is_recorded=True,
        )

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        from nephoscope.measure.targets.recorded import RecordedTarget

        return RecordedTarget(
            self.name,
            self.file,
            self._turns,
            source=self.source,
            first=self.first,
            speed=self.speed,
        )

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        yield SideEffect("recording", self.file, "read; its targets measure nothing")

    def unanswered(self, spec: BenchmarkSpec) -> tuple[str, str] | None:
        """See `TargetRecord.unanswered`: it answers what was recorded."""
        from nephoscope.measure.targets import recording

        try:
            recorded = recording.read(self.file)
        except UsageError as error:
            return error.message, error.hint
        if self.source and self.source not in recorded.answers:
            return (
                f"'{self.name}': {self.file} has no target '{self.source}'.",
                f"It has: {', '.join(recorded.targets[:10])}.",
            )
        if spec.id in recorded.benchmarks:
            return None
        return (
            f"'{self.name}' answers from {self.file}, which has no trial of {spec.id}.",
            f"It has: {', '.join(sorted(recorded.benchmarks))}.",
        )
