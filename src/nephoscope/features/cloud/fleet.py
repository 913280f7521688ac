"""A fleet: machines that are rented, left to themselves, and whose results are collected later.

BUCKET/PREFIX/nephoscope.NAME.OWNER.EXPIRES/   the tags of the rental are in its name
    probe-PROCESSOR      the program that machines fetch
    fleet.json           the manifest of the run, for whoever collects it
    machines.json        what was rented for each target, written after the launch
    MACHINE/job.json     what a machine has to do, with its signed addresses
    MACHINE/b000, …      output of its trials, a batch each; MACHINE/report is the last
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from nephoscope import catalog
from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.programs import find_probe
from nephoscope.core.records import dataclass
from nephoscope.measure import plans
from nephoscope.measure.cloud.bucket_listing import BUCKET
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import Kind, Tags
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.result_bucket import ResultBucket
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.cloud.unattended import Download, Unattended, require_user_data, script
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import Say, SpendingLimit, create_within
from nephoscope.measure.runs.rented_environment import machine_document
from nephoscope.measure.runs.unattended_jobs import (
    JobBatch,
    batches_of,
    job_document,
    refuse_unfit,
    with_fixed_rounds,
)
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import Store, StoredRun

LABEL = "fleet"
"""Label of the run of a fleet; its value is the fleet's name."""
RUN = "run"
"""Key of rental.json: the id of the run that results are collected into."""

FLEET_FILE, MACHINES_FILE, JOB_FILE, REPORT = "fleet.json", "machines.json", "job.json", "report"
PROCESSORS = ("x86_64", "aarch64")
KEPT_S = 7 * 86_400
"""For how long after its machines a fleet's results stay, if nobody collects them."""
MARGIN_S = 1800.0
"""By how much signed addresses outlive the time for which machines are rented: until they boot."""
END_S = 420.0
"""Of the time of a machine, for its last uploads: no trial begins then."""


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """What is launched. hours: after which each machine powers itself off. at_least: fewer
    machines are worth nothing."""

    name: str
    plan: Plan
    hours: float
    at_least: int
    bucket: ResultBucket
    accept_unknown_price: bool = False

    @property
    def machines(self) -> list[RentedRecord]:
        """Returns the machines, which are the targets of the plan."""
        return [target for target in self.plan.targets if isinstance(target, RentedRecord)]

    def rental(self) -> RentalSpec:
        """Returns them as a rental; each is a group, as each has user data of its own."""
        groups = [
            MachineGroup(
                target.name,
                target.region[0],
                target.type[0],
                target.image[0],
                zone="" if target.zone[0] == "any" else target.zone[0],
                market=target.market[0],
                network=target.network,
            )
            for target in self.machines
        ]
        # No zone and no type is always the first.
        random.Random(self.name).shuffle(groups)
        return RentalSpec(
            self.name,
            tuple(groups),
            hours=self.hours,
            lease_s=3600 * self.hours,
            accept_unknown_price=self.accept_unknown_price,
            is_kept=True,
        )


def plan_of(
    records: Sequence[RentedRecord],
    cpus: Mapping[str, int],
    source: Plan | None,
    rounds: int | None,
) -> Plan:
    """Returns the plan of a fleet. source: whose benchmarks it has; a census without one. rounds:
    repetitions of each; those of the source without. cpus: by type. Raises UsageError, PlanError.
    """
    plan = plans.census(metadata=True) if source is None else source
    plan = plans.fit_to_machines(
        plan, list(records), {entry.name: cpus.get(entry.type[0], 1) for entry in records}
    )
    plan = plan.model_copy(update={"name": "cloud-fleet", "concurrent": True})
    if rounds is not None:
        repeat = plan.repeat.model_copy(update={"min": rounds, "max": rounds})
        entries = tuple(
            entry.model_copy(update={"repeat": type(entry.repeat)()}) for entry in plan.benchmarks
        )
        plan = plan.model_copy(update={"repeat": repeat, "benchmarks": entries})
    plan = with_fixed_rounds(plan)
    known = catalog.load()
    refuse_unfit(plan, plans.expand(plan, known), known)
    return plan


async def launch(
    spec: FleetSpec, rentals: Rentals, store: Store, limit: SpendingLimit | None, say: Say
) -> tuple[StoredRun, Rental]:
    """Launches a fleet and begins its run; when it returns, nobody is needed until `collect`.

    Raises UsageError, Lacking, CloudError, RunFailed; then nothing is left.
    """
    require_user_data(rentals.provider.traits, rentals.settings.provider)
    await rentals.calls.repeat(spec.bucket.check)
    _refuse_short_credentials(spec)
    wanted = await rentals.checked(spec.rental())
    known = catalog.load()
    settings = plans.expand(spec.plan, known)
    seed = spec.plan.seed if spec.plan.seed is not None else random.SystemRandom().getrandbits(32)
    run = store.create(spec.plan, seed, catalog=known, settings=settings, labels={LABEL: spec.name})
    try:
        preparation = _Preparation(spec, rentals, run, batches_of(spec.plan, settings, known, seed))
        provisioner = _Launcher(rentals, preparation.unattended())
        rental = await create_within(provisioner, wanted, hours=spec.hours, limit=limit, say=say)
    except BaseException:
        with run.hold():
            store.discard(run)
        raise
    documents = {
        name: machine_document(rentals.settings.provider, machine)
        for name, machine in rental.machines.items()
    }
    run.update(rented=documents)
    content = json.dumps({"machines": documents}).encode()
    key = f"{preparation.folder}{MACHINES_FILE}"
    await rentals.calls.repeat(partial(spec.bucket.put, key, content))
    return run, rental


@dataclass(frozen=True, slots=True)
class _Launcher:
    """`Rentals` as a provisioner of machines that nobody logs in to."""

    rentals: Rentals
    unattended: Unattended

    def quote(self, spec: RentalSpec) -> Any:
        return self.rentals.quote(spec)

    async def create(self, spec: RentalSpec, *, say: Say) -> Rental:
        return await self.rentals.create(spec, say=say, unattended=self.unattended)

    def existing(self) -> Any:
        return self.rentals.existing()

    def open(self, name: str) -> Rental:
        return self.rentals.open(name)

    async def remove(self, name: str) -> Any:
        return await self.rentals.remove(name)


def _refuse_short_credentials(spec: FleetSpec) -> None:
    end_s = spec.bucket.credentials_end_s()
    needed_s = time.time() + 3600 * spec.hours
    if end_s is not None and end_s < needed_s:
        raise UsageError(
            f"The credentials for {spec.bucket.url} expire in {(end_s - time.time()) / 60:.0f} "
            "min, and what they sign expires with them, before the machines are done.",
            "Shorten --hours, or name a profile with lasting credentials by --bucket-profile.",
        )


class _Preparation:
    """The objects that machines need, and their scripts."""

    def __init__(
        self,
        spec: FleetSpec,
        rentals: Rentals,
        run: StoredRun,
        batches: Mapping[str, Sequence[JobBatch]],
    ) -> None:
        self._spec, self._rentals, self._run, self._batches = spec, rentals, run, batches
        self._expires_s = int(time.time() + 3600 * spec.hours + KEPT_S)
        self.folder = ""

    def unattended(self) -> Unattended:
        """Returns what makes the rental one without logins."""
        home = self._spec.machines[0].region[0]
        document = {
            BUCKET: {**asdict(self._spec.bucket.settings), "home": home},
            RUN: self._run.id,
            "store": str(self._run.path.parents[1]),
            "expires_s": self._expires_s,
        }
        return Unattended(self.prepare, document, self._expires_s, self._spec.at_least)

    async def prepare(self, folder: RentalFolder, tags: Tags) -> Mapping[str, str]:
        """Stores the objects and returns the scripts; see `Unattended`."""
        spec, bucket = self._spec, self._spec.bucket
        region = spec.machines[0].region[0]
        self.folder = Tags(tags.run, tags.owner, self._expires_s).as_name() + "/"
        folder.note("create", Kind.RESULT_FOLDER, region, ids=[f"{bucket.url}{self.folder}"])
        manifest = json.dumps({"manifest": dict(self._run.manifest.stored)})
        await self._put(FLEET_FILE, manifest.encode())
        life_s = 3600 * spec.hours + MARGIN_S
        probes = {
            processor: await self._stored(f"probe-{processor}", path.read_bytes(), life_s)
            for processor, path in _probes().items()
        }
        scripts = {}
        for target in spec.machines:
            job = json.dumps(self._job(target.name, life_s)).encode()
            download = await self._stored(f"{target.name}/{JOB_FILE}", job, life_s)
            scripts[target.name] = script(probes, download, int(3600 * spec.hours))
        return scripts

    def _job(self, machine: str, life_s: float) -> dict[str, Any]:
        def signed(name: str) -> Any:
            key = f"{self.folder}{machine}/{name}"
            return self._spec.bucket.signed(key, life_s, is_upload=True)

        batches, lease_s = self._batches[machine], 3600 * self._spec.hours
        return job_document(
            machine,
            batches,
            {batch.name: signed(batch.name) for batch in batches},
            signed(REPORT),
            work_s=max(lease_s / 2, lease_s - END_S),
            gap_meter=self._spec.plan.observe.gap_meter,
        )

    async def _stored(self, name: str, content: bytes, life_s: float) -> Download:
        await self._put(name, content)
        address = self._spec.bucket.signed(f"{self.folder}{name}", life_s, is_upload=False)
        return Download(address.url, hashlib.sha256(content).hexdigest())

    async def _put(self, name: str, content: bytes) -> None:
        put = partial(self._spec.bucket.put, f"{self.folder}{name}", content)
        await self._rentals.calls.repeat(put)


def _probes() -> dict[str, Path]:
    """Returns the probe for each processor for which there is one; at least for that of this
    machine. Raises Lacking."""
    made: dict[str, Path] = {}
    missing: Lacking | None = None
    for processor in PROCESSORS:
        try:
            made[processor] = find_probe(processor)
        except Lacking as error:
            missing = error
    if not made:
        assert missing is not None
        raise missing
    return made
