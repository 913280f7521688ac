"""What has arrived of a fleet: gathered into its run, counted, and removed in the end."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from nephoscope import catalog
from nephoscope.core import limits
from nephoscope.core.errors import BenchmarkFailed, UsageError
from nephoscope.core.format_versions import RUN
from nephoscope.core.naming import clean
from nephoscope.core.reading import jsontext
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import in_thread
from nephoscope.features.cloud.fleet import FLEET_FILE, LABEL, MACHINES_FILE, REPORT
from nephoscope.features.cloud.fleet_records import FleetCollection, FleetMachine
from nephoscope.measure.cloud.model import Machine, ResourceState
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.result_bucket import BucketObject, ResultBucket
from nephoscope.measure.runs.unattended_results import (
    ReturnedBatch,
    UnattendedRun,
    UnreadableBatch,
    read_batch,
    skew_s,
)
from nephoscope.store import RUNNING, Store, StoredRun
from nephoscope.store.manifest import RunManifest

_SMALL_BYTES = 16 << 20
_BATCH_BYTES = 16 * limits.TRIAL_BYTES
_OVER = (ResourceState.GONE, ResourceState.STOPPED, ResourceState.FAILED)
_REPORT_PREFIX = "nephoscope: "
LISTED_S = 60.0
"""After a launch, besides the cloud's own lag: a machine that is not listed may not be shown."""
ENDED, NOT_GRANTED = "ended", "not granted"


@dataclass(slots=True)
class _Arrived:
    """Objects of one machine. batches: by name."""

    batches: dict[str, BucketObject] = field(default_factory=dict)
    report: BucketObject | None = None


class FleetBucket:
    """The folder of a fleet in its bucket."""

    def __init__(self, bucket: ResultBucket, rentals: Rentals, name: str) -> None:
        self.bucket, self._rentals, self._name = bucket, rentals, name
        self.folder = ""

    async def find(self) -> None:
        """Finds the folder. Raises UsageError where there is none, or there are several."""
        folders = await self._rentals.calls.repeat(lambda: list(self.bucket.folders()))
        own = [(folder, tags) for folder, tags in folders if tags.run == self._name]
        if not own:
            raise UsageError(
                f"There are no results of a fleet named {self._name} in {self.bucket.url}.",
                "They were collected, or removed; `nephoscope runs` lists what is stored here.",
            )
        if len(own) > 1:
            owners = " and ".join(tags.owner for _, tags in own)
            raise UsageError(
                f"{self.bucket.url} has several fleets named {self._name}, of {owners}.",
                "Collect it on the machine that launched it.",
            )
        self.folder = own[0][0]

    async def document(self, name: str) -> dict[str, Any] | None:
        """Returns an object that has JSON; None where it is not there."""
        get = partial(self.bucket.get, f"{self.folder}{name}", _SMALL_BYTES)
        try:
            content = await self._rentals.calls.repeat(get)
        except CloudError as error:
            if error.cause is Cause.UNKNOWN:
                return None
            raise
        try:
            values = jsontext.parse(content)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise UsageError(
                f"{name} in {self.bucket.url}{self.folder} is damaged: it is no JSON object.",
                "Remove the fleet with `nephoscope cloud down`.",
            )
        return values

    async def arrived(self) -> dict[str, _Arrived]:
        """Returns what each machine has stored."""
        objects = await self._rentals.calls.repeat(partial(self.bucket.objects, self.folder))
        machines: dict[str, _Arrived] = defaultdict(_Arrived)
        for entry in objects:
            machine, separator, name = entry.key[len(self.folder) :].partition("/")
            if separator and name == REPORT:
                machines[machine].report = entry
            elif separator and "." not in name:
                machines[machine].batches[name] = entry
        return machines

    async def batch(self, entry: BucketObject) -> ReturnedBatch:
        """Returns a batch. Raises UnreadableBatch."""
        machine, _, name = entry.key[len(self.folder) :].partition("/")
        if entry.size_bytes > _BATCH_BYTES:
            raise UnreadableBatch(f"it has more than {_BATCH_BYTES >> 20} MiB")
        get = partial(self.bucket.get, entry.key, _BATCH_BYTES)
        returned = read_batch(await self._rentals.calls.repeat(get))
        if (returned.machine, returned.name) != (machine, name):
            raise UnreadableBatch(f"it is batch {returned.name} of {returned.machine}")
        return returned


def run_of(store: Store, name: str, document: Mapping[str, Any] | None) -> StoredRun:
    """Returns the run of a fleet: the one that its launch began, or, on another machine, a new one
    of the same manifest. Raises UsageError."""
    description = dict((document or {}).get("manifest") or {})
    if not description:
        raise UsageError(
            f"The description of the fleet {name} is missing in its bucket.",
            f"Remove what is left with `nephoscope cloud down {name}`.",
        )
    if not RUN.is_readable(description.get("version")):
        writer = str(description.get("nephoscope") or "")
        raise UsageError(*RUN.refusal(f"The fleet {name}", description.get("version"), writer))
    described = RunManifest.of(description)
    for stored in store.runs():
        if stored.labels.get(LABEL) == name and stored.manifest.seed == described.seed:
            return stored
    for key in ("id", "version", "journal"):
        description.pop(key, None)
    with store.new(described.plan_name or "cloud-fleet", description) as made:
        return made


async def collect(
    rentals: Rentals, bucket: ResultBucket, store: Store, name: str, *, is_ended: bool
) -> tuple[FleetCollection, StoredRun]:
    """Gathers what has arrived of a fleet. is_ended: whatever has not arrived is given up.

    When nothing more comes, the run is finished and everything of the fleet is removed.
    """
    place = FleetBucket(bucket, rentals, name)
    await place.find()
    run = run_of(store, name, await place.document(FLEET_FILE))
    granted = ((await place.document(MACHINES_FILE)) or {}).get("machines")
    with run.lock():
        return await _Collection(place, rentals, run, granted, name).collect(is_ended), run


class _Collection:
    def __init__(
        self,
        place: FleetBucket,
        rentals: Rentals,
        run: StoredRun,
        granted: Mapping[str, Any] | None,
        name: str,
    ) -> None:
        self._place, self._rentals, self._name, self._stored = place, rentals, name, run
        self._run = UnattendedRun(run, catalog.load())
        self._granted = granted
        self._refused: dict[str, str] = {}
        self._reports: dict[str, dict[str, Any]] = {}
        self._listed: dict[str, Machine] = {}
        self._last_words: dict[str, str] = {}

    async def collect(self, is_ended: bool) -> FleetCollection:
        # First the machines, then the objects: what a machine that is over has stored is there.
        states = await self._states()
        arrived = await self._place.arrived()
        if self._stored.state == RUNNING:
            self._run.begin()
            for machine in self._run.batches:
                await self._add(machine, arrived.get(machine, _Arrived()))
            if self._granted and not self._stored.manifest.rented:
                self._stored.update(rented=dict(self._granted))
        for machine, (id_, state) in states.items():
            if state == ENDED and id_ in self._listed and machine not in self._reports:
                self._last_words[machine] = await self._report_of(self._listed[id_])
        machines = [self._machine(machine, states[machine]) for machine in self._run.batches]
        is_final = is_ended or all(
            entry.is_complete or entry.state in (ENDED, NOT_GRANTED) for entry in machines
        )
        if self._stored.state == RUNNING:
            self._end(machines, is_final)
        if is_final:
            # Nothing is left in the store of a fleet but its trials, which are safe now.
            await self._rentals.remove(self._name)
        return self._document(machines, is_final)

    async def _states(self) -> dict[str, tuple[str, str]]:
        """Returns the id and the state of each machine."""
        regions = sorted({str(region) for target in self._targets() for region in target["region"]})
        for region in regions:
            for machine in await self._rentals.calls.machines(region, self._name):
                self._listed[machine.id] = machine
        return {machine: self._state(machine) for machine in self._run.batches}

    async def _report_of(self, machine: Machine) -> str:
        """Returns the last line of ours on a machine's console, or why the cloud ended it."""
        try:
            console = await in_thread(self._rentals.provider.console, machine)
        except CloudError:
            console = ""
        lines = [line for line in console.splitlines() if line.startswith(_REPORT_PREFIX)]
        return clean(lines[-1].removeprefix(_REPORT_PREFIX))[:200] if lines else machine.problem

    def _state(self, name: str) -> tuple[str, str]:
        """Returns the id of a machine and its state, ENDED where nothing more comes of it."""
        is_new = time.time() < self._stored.started_s + LISTED_S + (
            self._rentals.provider.traits.settle_s
        )
        if self._granted is None:
            # The launch was killed before it said which machine is which.
            live = [entry for entry in self._listed.values() if entry.state not in _OVER]
            return "", "unknown" if live or is_new else ENDED
        if name not in self._granted:
            return "", NOT_GRANTED
        id_ = str(self._granted[name]["id"])
        if id_ in self._listed:
            state = self._listed[id_].state
            return id_, ENDED if state in _OVER else str(state)
        return id_, "not listed yet" if is_new else ENDED

    def _targets(self) -> Sequence[Mapping[str, Any]]:
        return self._stored.manifest.targets

    async def _add(self, machine: str, arrived: _Arrived) -> None:
        """Adds the batches of a machine that the run does not have."""
        new: list[tuple[ReturnedBatch, BucketObject]] = []
        for name, entry in sorted(arrived.batches.items()):
            known = {batch.name for batch in self._run.batches[machine]}
            if name in known and self._run.has(machine, name):
                continue
            try:
                new.append((await self._place.batch(entry), entry))
            except UnreadableBatch as error:
                self._refused[f"{machine}/{name}"] = str(error)
        ahead_s = skew_s([(batch.sent_at_s, entry.modified_s) for batch, entry in new])
        for batch, _ in new:
            try:
                self._run.add(batch, ahead_s)
            except UnreadableBatch as error:
                self._refused[f"{machine}/{batch.name}"] = str(error)
        if arrived.report is not None:
            document = await self._place.document(f"{machine}/{REPORT}") or {}
            self._reports[machine] = dict(document.get("report") or {})

    def _machine(self, machine: str, known: tuple[str, str]) -> FleetMachine:
        id_, state = known
        batches = self._run.batches[machine]
        has = sum(self._run.has(machine, batch.name) for batch in batches)
        counts = self._run.counts(machine)
        report = self._reports.get(machine)
        is_whole = has == len(batches) or self._stored.state != RUNNING
        why = "" if has == len(batches) else self._why(machine, state, report, has, len(batches))
        is_complete = is_whole or (report is not None and not self._awaited(machine, report))
        return FleetMachine(
            machine,
            id_,
            state,
            has,
            len(batches),
            counts.planned - counts.missing,
            counts.planned,
            is_complete,
            why,
        )

    def _awaited(self, machine: str, report: Mapping[str, Any]) -> list[str]:
        """Returns the batches that a machine says it has stored, and that are not here."""
        return [
            str(entry.get("name"))
            for entry in report.get("batches") or ()
            if entry.get("missing") is None
            and f"{machine}/{entry.get('name')}" not in self._refused
            and not self._run.has(machine, str(entry.get("name")))
        ]

    def _why(
        self, machine: str, state: str, report: Mapping[str, Any] | None, has: int, planned: int
    ) -> str:
        """Says what is missing of a machine."""
        refused = [
            f"{key.partition('/')[2]} was refused: {why}"
            for key, why in self._refused.items()
            if key.startswith(f"{machine}/")
        ]
        reasons = [
            f"{entry.get('name')} was not stored: {entry['missing']}"
            for entry in (report or {}).get("batches") or ()
            if entry.get("missing")
        ]
        left = f"{planned - has} of {planned} batches are missing"
        if state == NOT_GRANTED:
            return "the cloud granted no machine"
        if report is None and state == ENDED:
            words = self._last_words.get(machine, "")
            reasons.append(f"it ended without a report{f' ({words})' if words else ''}")
        elif report is None:
            reasons.append("it still works")
        elif not reasons and not refused:
            reasons.append("its time was over")
        return f"{left}: {'; '.join([*reasons, *refused])}"

    def _end(self, machines: Sequence[FleetMachine], is_final: bool) -> None:
        """Finishes the run, or leaves it until the next collection."""
        if not is_final:
            self._run.end()
            return
        lost = {entry.name: f"{entry.why}." for entry in machines if entry.why}
        try:
            self._run.finish(lost)
        except BenchmarkFailed:
            # No trial counts: the run says so, and the machines go all the same.
            return

    def _document(self, machines: Sequence[FleetMachine], is_final: bool) -> FleetCollection:
        counts = self._run.counts()
        return FleetCollection(
            self._name,
            self._stored.id,
            self._place.bucket.url,
            tuple(machines),
            sum(entry.is_complete for entry in machines),
            sum(entry.batches for entry in machines),
            sum(entry.batches_planned for entry in machines),
            counts.planned,
            counts.done,
            counts.valid,
            counts.failed,
            counts.missing,
            is_final,
            dict(self._refused),
        )
