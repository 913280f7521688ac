"""The documents of `nephoscope cloud fleet` and `cloud collect`."""

from __future__ import annotations

from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchedFleet:
    """A fleet that was launched, or a preview of it. run: into which results are collected; null in
    a preview. machines: names of those that were granted. missing: name -> why it was not. batches,
    trials: that the machines are to store. cost: up to the end of their time; null where unknown.
    ends: when the machines power themselves off at the latest.
    """

    name: str
    run: str | None
    bucket: str
    machines: tuple[str, ...]
    missing: dict[str, str]
    batches: int
    trials: int
    cost: float | None
    currency: str
    ends: str


@dataclass(frozen=True, slots=True)
class FleetMachine:
    """A machine of a fleet. id: by its cloud; '' where nobody knows it any more. state: by the
    cloud's list; `ended` when it lists it no longer, `not granted` when there never was one.
    batches, trials: arrived and planned. is_complete: it stored its report, and everything that the
    report names arrived. why: what is missing of it, a sentence; '' when nothing is.
    """

    name: str
    id: str
    state: str
    batches: int
    batches_planned: int
    trials: int
    trials_planned: int
    is_complete: bool
    why: str


@dataclass(frozen=True, slots=True)
class FleetCollection:
    """What has arrived of a fleet. trials: planned = done + failed + missing; valid: those that
    count, of the done ones. is_final: nothing more comes, and what was rented and stored in the
    bucket is removed. refused: objects that could not be read, with the reason.
    """

    name: str
    run: str
    bucket: str
    machines: tuple[FleetMachine, ...]
    machines_complete: int
    batches: int
    batches_planned: int
    trials_planned: int
    trials_done: int
    trials_valid: int
    trials_failed: int
    trials_missing: int
    is_final: bool
    refused: dict[str, str]
