"""The answers that describe an application: a YAML file and `--set`, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from nephoscope.core import limits, units
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.reading import paths, textfile, yamltext
from nephoscope.core.reading.fields import (
    NAME,
    Delay,
    LineRate,
    Part,
    Record,
    Seconds,
    Size,
    read_by,
)
from nephoscope.core.reading.sentences import Place, place_in, record_at, validation_errors
from nephoscope.core.reading.yamltext import Loc

Kind = Literal[
    "voip", "video-call", "streaming", "game", "web", "transactions", "batch", "parallel"
]
Resource = Literal["cpu", "memory", "disk", "network"]

_SUM_TOLERANCE = 0.005
"""Shares of users that were rounded to per cent may miss 1 by this."""

_Age = Annotated[float, read_by(units.parse_duration_ns, 1e-9), Field(ge=0, le=limits.SECONDS)]
_Region = Annotated[str, Field(pattern=NAME)]


def _sums_to_one(shares: dict[str, float]) -> dict[str, float]:
    total = math.fsum(shares.values())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise ValueError(
            f"the shares of users sum to {100 * total:.4g} %, not to 100 %; correct them, nothing "
            "is normalised."
        )
    return shares


class Application(Record):
    """An application by the answers to the questions below; what is not answered is not assumed."""

    name: Annotated[str, Field(min_length=1, max_length=80)] = Field(
        "application", description="Name.", examples=["photo-sharing"]
    )
    kind: Kind | None = Field(
        None,
        description="Kind of service: voip, video-call, streaming, game, web, transactions, batch, "
        "parallel.",
        examples=["web"],
    )
    nodes: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = Field(
        None, description="Number of nodes that it runs on.", examples=[4]
    )
    synchronised: Seconds | None = Field(
        None,
        description="Time for which a node computes before all nodes wait for each other.",
        examples=["10s"],
    )
    resource: Resource | None = Field(
        None,
        description="Resource that it stresses most: cpu, memory, disk, network.",
        examples=["disk"],
    )
    data: Size | None = Field(
        None, description="Data that has to reach the cloud for a job.", examples=["500GB"]
    )
    link: LineRate | None = Field(
        None, description="Rate of the link over which they are uploaded.", examples=["200Mbit/s"]
    )
    turnaround: Seconds | None = Field(
        None, description="Time within which the data have to be there.", examples=["24h"]
    )
    response: Seconds | None = Field(
        None, description="Longest acceptable response time.", examples=["500ms"]
    )
    jitter: Delay | None = Field(
        None, description="Longest acceptable delay variation.", examples=["40ms"]
    )
    users: Annotated[dict[_Region, Part], AfterValidator(_sums_to_one)] | None = Field(
        None,
        description="Share of users by region.",
        examples=["{north-america: 50%, europe: 30%, asia: 20%}"],
    )
    shared_data: bool | None = Field(
        None, description="Do users of different regions write the same data?", examples=["true"]
    )
    mobile_users: bool | None = Field(
        None, description="Do users move between regions?", examples=["false"]
    )
    availability: Part | None = Field(
        None, description="Required availability.", examples=["99.95%"]
    )
    recovery_point: _Age | None = Field(
        None,
        description="Time of which writes may be lost in a failure; 0s if none.",
        examples=["15min"],
    )

    @model_validator(mode="after")
    def _upload_is_whole(self) -> Application:
        upload = {"data": self.data, "link": self.link, "turnaround": self.turnaround}
        missing = [name for name, value in upload.items() if value is None]
        if 0 < len(missing) < len(upload):
            known = ", ".join(name for name in upload if name not in missing)
            raise ValueError(
                f"the upload time needs data, link and turnaround; {known} alone says nothing. "
                f"Add {' and '.join(missing)}."
            )
        return self


def read(file: Path | None, sets: Mapping[str, str]) -> Application:
    """Returns the answers of a file, with those of `--set` over them.

    Raises PlanError with the place of each mistake.
    """
    text = "" if file is None else textfile.read(file, "application", pipe=True)
    name = "the answers" if file is None else str(file)
    document = yamltext.parse(text, name) if file is not None else {}
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise PlanError(
            f"{name}: this is no mapping of answers.",
            "Print the questions: `nephoscope advise --questions`.",
        )
    for path, value in sets.items():
        paths.put(document, path, yamltext.parse_scalar(value))
    try:
        return Application.model_validate(document)
    except ValidationError as invalid:
        place = _place(text, name, sets)
        record_of = lambda loc: record_at(Application, loc)  # noqa: E731
        validation_errors(invalid, place, record_of).report()
        raise


def _place(text: str, name: str, sets: Mapping[str, str]) -> Place:
    """Returns the places of answers: the option `--set` or file, line and column."""
    in_file = place_in(text, name)

    def place(loc: Loc) -> str:
        dotted = ".".join(map(str, loc))
        option = next((path for path in sets if dotted == path or dotted in path), None)
        if dotted and option is not None:
            return f"--set {option}: "
        return in_file(loc)

    return place


def questions() -> str:
    """Returns a file of all questions with an example of each answer, as comments."""
    lines = ["# Answer what is known and remove the #; then: nephoscope advise FILE", ""]
    for name, field in Application.model_fields.items():
        example: Any = (field.examples or [""])[0]
        lines += [f"# {field.description}", f"# {name}: {example}", ""]
    return "\n".join(lines).rstrip() + "\n"


def required(application: Application) -> list[str]:
    """Returns the names of the answers that an application has, besides its name."""
    values = application.model_dump(exclude={"name"})
    return [name for name, value in values.items() if value is not None]


def refuse_empty(application: Application) -> None:
    """Raises UsageError where nothing is known of the application."""
    if not required(application):
        raise UsageError(
            "Nothing is known of the application.",
            "Answer a question of `nephoscope advise --questions` with FILE or --set NAME=VALUE, "
            "or observe a process with --pid or --command.",
        )
