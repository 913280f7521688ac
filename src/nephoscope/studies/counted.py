"""What study.yaml says of a census of CPU models, as records."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nephoscope.reading.fields import Record

Text = Annotated[str, Field(min_length=1)]


class Counted(Record):
    """Where a study counted CPU models: a table whose rows are 'TYPE MODEL'.

    share: the column of shares in per cent; clock: of clocks in GHz, '' where there is none.
    """

    table: Text
    share: Text
    clock: str = ""


class Relative(Record):
    """Where a study tells the speed of each model: rows are benchmarks, columns models.

    instance_type: the type on which they were measured.
    """

    table: Text
    instance_type: Text


class Census(Record):
    """What of a study is a census of CPU models (`nephoscope census --study NAME`)."""

    counted: Counted
    speeds: tuple[Relative, ...] = ()
