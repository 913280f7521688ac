"""What study.yaml says of rows that are emulated: a mechanism, what it was set to, as records."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from nephoscope.reading.fields import NAME, Record
from nephoscope.scheduler.inference import Word
from nephoscope.studies.picks import Ours, Text


class Published(Record):
    """A published number that stands beside ours; as: what it is called there ('EC2')."""

    table: Text
    cell: tuple[str, str]
    called: Text = Field(alias="as")


class Share(Record):
    """One figure of a row. set_to: what the mechanism gives by its parameters, in `unit`."""

    what: Text
    ours: Ours
    set_to: float = Field(alias="set")
    beside: tuple[Published, ...] = ()


class Emulated(Record):
    """A row that was set up here: its mechanism, and what it has to give.

    within: how far a whole interval of ours may lie from what was set, in `unit`. word: what the
    inference has to call it from inside, on `target`; '' where it is not asked. why: how the
    mechanism stands for the study's.
    """

    id: str = Field(pattern=NAME)
    title: Text
    target: str = ""
    shares: Annotated[tuple[Share, ...], Field(min_length=1)]
    unit: str = "% of a CPU"
    within: Annotated[float, Field(gt=0)] = 2.0
    word: str = ""
    why: Text

    @model_validator(mode="after")
    def _a_word_of_ours(self) -> Emulated:
        if self.word and self.word not in list(Word):
            raise ValueError(f"{self.id}: '{self.word}' is no verdict. It has: {', '.join(Word)}")
        if self.word and not self.target:
            raise ValueError(f"{self.id}: a verdict is of a target")
        return self
