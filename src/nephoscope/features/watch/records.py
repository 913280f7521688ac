"""Records of a watch: its definition, and its status as `watch --list` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from nephoscope.core import limits
from nephoscope.core.records import dataclass
from nephoscope.features.compaction.compact import Policy


@dataclass(frozen=True, slots=True)
class Definition:
    """What is repeated, when, and how much at once; STORE/watches/NAME/watch.json has it.

    plan: absolute path. values: of `--set`. every_s: interval; None with a cron expression.
    time_zone: of the cron expression. jitter: random part of the interval by which a start is
    later, ratio. max_runs: runs of all watches of the store at once. max_share: part of the time
    that is spent measuring, ratio. labels: of the runs, besides `watch`. retention: how long what
    is kept.
    """

    name: str
    plan: str
    every_s: Annotated[float, Field(ge=1, le=limits.SECONDS)] | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.0
    seed: int = 0
    max_runs: Annotated[int, Field(ge=1)] = 1
    max_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    values: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    retention: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class FailingTarget:
    """A target that failed. failures: in a row. skips: next starts at which it is left out."""

    target: str
    failures: int
    skips: int
    sentence: str


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """A watch of a store and where it stands.

    schedule: in words. running: a process repeats the plan. measuring: it measures now. series:
    number of the series; an edit of the plan begins a new one. next_start, last_end: ISO 8601, UTC;
    next_start is null where nothing runs. last_run: id. events: number of events by kind.
    """

    name: str
    plan: str
    schedule: str
    running: bool
    measuring: bool
    series: int
    next_start: str | None
    last_end: str | None
    last_run: str | None
    verdict: str
    events: Mapping[str, int]
    failing: tuple[FailingTarget, ...]


@dataclass(frozen=True, slots=True)
class WatchList:
    """The watches of a store by name."""

    watches: tuple[WatchStatus, ...]
