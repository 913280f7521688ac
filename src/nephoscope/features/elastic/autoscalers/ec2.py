"""EC2 Auto Scaling, followed by its API: a group, its instances, and its activities' causes.

A decision is a change of the desired capacity that an activity states, at the time that it states:
"At TIME a monitor alarm ... triggered policy ... changing the desired capacity from 1 to 2". Steps
of an instance: created (its activity begins), booted (EC2 lists it as running), ready and in
rotation (it is InService), out of rotation (it is Terminating), removed. All but the first are seen
by lists, up to an interval late. Sources: Amazon EC2 Auto Scaling User Guide, "Verify a scaling
activity for an Auto Scaling group" and "Amazon EC2 Auto Scaling instance lifecycle".
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nephoscope.autoscalers import log
from nephoscope.measure.cloud.provider import CloudError, CloudSettings
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls

Emit = Callable[..., None]
Entry = Mapping[str, Any]

_CAUSE = re.compile(
    r"At (\S+Z) (an? [^.]*?)(?:,)? changing the desired capacity from (\d+) to (\d+)"
)
_INSTANCE = re.compile(r"Launching a new EC2 instance: (i-[0-9a-z]+)")
_ROTATES = "InService"
_LEAVES = ("Terminating", "Detaching", "EnteringStandby", "Standby")
_FAILURES = 3
"""Reads in a row that have to fail before that is reported: single ones are throttled calls."""
_UNEXPLAINED_S = 30.0
"""Time in which an activity has to state the cause of another desired capacity."""
_ACTIVITIES = 100


@dataclass(slots=True)
class _Instance:
    steps: set[str] = field(default_factory=set)
    is_in_rotation: bool = False
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class ScalingCause:
    """What an activity states of a change of the desired capacity. text: what triggered it."""

    at_ns: int
    text: str
    before: int
    after: int


def cause_of(text: str) -> ScalingCause | None:
    """Returns the change of the desired capacity that a cause states; None where it states none."""
    match = _CAUSE.search(text)
    if match is None:
        return None
    at_s = datetime.fromisoformat(match[1]).timestamp()
    return ScalingCause(round(at_s * 1e9), match[2].strip(), int(match[3]), int(match[4]))


class GroupFollower:
    """Turns what the API lists into the lines of the log."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._instances: dict[str, _Instance] = {}
        self._causes: set[ScalingCause] = set()
        self._activities: set[str] = set()
        self._desired: int | None = None
        self._changed: tuple[int, int, int] | None = None
        self._began_ns = 0

    def take(
        self, at_ns: int, group: Entry, activities: Sequence[Entry], running: frozenset[str]
    ) -> None:
        """Takes one reading. activities: newest first, as the API lists them; running: instances
        that EC2 lists as such."""
        is_first = not self._began_ns
        self._decide(group, activities, is_first)
        self._watch_desired(at_ns, int(group["DesiredCapacity"]))
        listed = {str(entry["InstanceId"]): entry for entry in group.get("Instances") or ()}
        created = {
            match[1]: entry["StartTime"]
            for entry in activities
            if (match := _INSTANCE.search(str(entry.get("Description", ""))))
        }
        for name, entry in listed.items():
            began = created.get(name)
            began_ns = round(began.timestamp() * 1e9) if began is not None else at_ns
            self._step_through(name, str(entry["LifecycleState"]), began_ns, at_ns, running)
        for name in set(self._instances) - set(listed):
            self._leave(name, at_ns)
            del self._instances[name]
            self._print("removed", at_ns, name)
        if is_first:
            self._began_ns = at_ns
            self._emit("begins", at_ns=at_ns, **self._counts())

    def _step_through(
        self, name: str, state: str, began_ns: int, at_ns: int, running: frozenset[str]
    ) -> None:
        own = self._instances.setdefault(name, _Instance())
        self._step(name, "created", began_ns)
        if name in running:
            self._step(name, "booted", at_ns)
        if state == _ROTATES and not own.is_in_rotation:
            own.is_in_rotation, own.is_leaving = True, False
            self._step(name, "ready", at_ns)
            self._step(name, "in_rotation", at_ns)
        elif state.startswith(_LEAVES):
            self._leave(name, at_ns)

    def _leave(self, name: str, at_ns: int) -> None:
        own = self._instances[name]
        own.is_leaving = True
        if own.is_in_rotation:
            own.is_in_rotation = False
            self._step(name, "out_of_rotation", at_ns)

    def _counts(self) -> dict[str, int]:
        instances = self._instances.values()
        return {
            "present": sum(not each.is_leaving for each in instances),
            "in_rotation": sum(each.is_in_rotation for each in instances),
            "billed": len(self._instances),
        }

    def _step(self, name: str, step: str, at_ns: int) -> None:
        if step not in self._instances[name].steps:
            self._instances[name].steps.add(step)
            self._print(step, at_ns, name)

    def _print(self, step: str, at_ns: int, name: str) -> None:
        if self._began_ns:
            self._emit(step, at_ns=max(at_ns, self._began_ns), instance=name, **self._counts())

    def _decide(self, group: Entry, activities: Sequence[Entry], is_first: bool) -> None:
        for entry in reversed(activities):
            cause = cause_of(str(entry.get("Cause", "")))
            if cause is None or cause in self._causes:
                continue
            self._causes.add(cause)
            if is_first or cause.at_ns < self._began_ns - 1_000_000_000:
                continue  # stated in whole seconds; what was before the beginning is history
            if self._changed is not None and self._changed[2] == cause.after:
                self._changed = None
            most, least = int(group["MaxSize"]), int(group["MinSize"])
            reason = "maximum" if cause.after == most else "minimum" if cause.after == least else ""
            values = {"wanted": cause.after, "desired": cause.after, "reason": reason}
            at_ns = max(cause.at_ns, self._began_ns)
            self._emit("metric", at_ns=at_ns, value=0.0, rate=0.0, wanted=cause.after)
            ready = self._counts()["in_rotation"]
            self._emit(
                "decision", at_ns=at_ns, value=0.0, present=cause.before, ready=ready, **values
            )
            if not least <= cause.after <= most:
                self._deviate(at_ns, f"a desired capacity of {cause.after} is beyond the limits "
                                     f"{least} to {most}")  # fmt: skip

    def _watch_desired(self, at_ns: int, desired: int) -> None:
        """Names a change whose cause no activity states in time."""
        before, self._desired = self._desired, desired
        if before is not None and desired != before:
            is_known = any(
                each.after == desired and each.at_ns > at_ns - _UNEXPLAINED_S * 1e9
                for each in self._causes
            )
            self._changed = None if is_known else (at_ns, before, desired)
        if self._changed is not None and at_ns - self._changed[0] > _UNEXPLAINED_S * 1e9:
            since_ns, old, new = self._changed
            self._changed = None
            text = f"the desired capacity went from {old} to {new}, of which no activity states why"
            self._deviate(since_ns, text)

    def _deviate(self, at_ns: int, text: str) -> None:
        self._emit("deviation", at_ns=at_ns, text=text)


def _read(
    calls: Ec2Calls, region: str, name: str
) -> tuple[Entry, Sequence[Entry], frozenset[str]] | None:
    """Returns the group, its activities, and the instances that run; None where it is not there."""
    groups = calls.call(
        "describe_auto_scaling_groups", region, "autoscaling", AutoScalingGroupNames=[name]
    )["AutoScalingGroups"]
    if not groups:
        return None
    activities = calls.call(
        "describe_scaling_activities",
        region,
        "autoscaling",
        AutoScalingGroupName=name,
        MaxRecords=_ACTIVITIES,
    )["Activities"]
    ids = [entry["InstanceId"] for entry in groups[0].get("Instances") or ()]
    running: frozenset[str] = frozenset()
    if ids:
        # By filter: an id that is gone already fails a request by ids.
        filters = [
            {"Name": "instance-id", "Values": ids},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        listed = calls.pages("describe_instances", region, "Reservations", Filters=filters)
        running = frozenset(
            str(entry["InstanceId"]) for each in listed for entry in each["Instances"]
        )
    return groups[0], activities, running


def follow(settings: Mapping[str, Any]) -> None:
    """Follows until SIGTERM. settings: name, place (the region), context (a profile), endpoint
    (for a cloud with this interface), interval_s, address, port."""
    name, region = str(settings["name"]), str(settings["place"])
    calls = Ec2Calls(CloudSettings("ec2", str(settings["endpoint"]), str(settings["context"])))
    follower = GroupFollower(log.event)
    is_open, failures = False, 0
    while not log.ended.is_set():
        began_s = time.monotonic()
        at_ns = time.time_ns()
        try:
            reading = _read(calls, region, name)
            failures = 0
        except CloudError as error:
            failures += 1
            if not is_open and not error.passes:
                raise
            if failures == _FAILURES:
                log.event("unobserved", failure=str(error))
            reading = None
        if reading is not None:
            follower.take(at_ns, *reading)
        elif not failures:
            if not is_open:
                raise SystemExit(f"There is no Auto Scaling group '{name}' in {region}.")
            log.event("unobserved", failure=f"the group '{name}' is gone")
        if reading is not None and not is_open:
            is_open = True
            log.serve(str(settings["address"]), int(settings["port"]), lambda *_: (200, ""))
        log.ended.wait(max(0.0, float(settings["interval_s"]) - (time.monotonic() - began_s)))
    log.event("ended")
