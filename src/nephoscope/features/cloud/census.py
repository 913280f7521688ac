"""A census of a cloud: machines are rented in random order, identified, measured and removed.

Each batch is a run of its own, with rented targets. Its labels say to which census and wave it
belongs, so that a census that was ended goes on with the machines that are missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nephoscope.catalog import HOST_BOOT
from nephoscope.cli.kit import measuring, output
from nephoscope.core.errors import BenchmarkFailed, NephoscopeError, RunFailed, UsageError
from nephoscope.core.naming import plural
from nephoscope.measure import plans
from nephoscope.measure.cloud.model import Market
from nephoscope.measure.cloud.provider import Cause, CloudSettings
from nephoscope.measure.cloud.spec import BOOT_S, MachineGroup, RentalSpec, starts_s
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.model import Entry, Money, RepeatChange
from nephoscope.measure.runs.rented_environment import RentedEnvironment
from nephoscope.measure.runs.schedule.cells import LAUNCH
from nephoscope.measure.targets.kinds.record import as_name
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import FINISHED, MEASURED, Store, StoredRun

_OF_ONE_CALL = ("at_once", "money", "currency", "boot_s")
LABEL, WAVE = "census", "wave"
LEAST_BUDGET_S = 10.0
_FINISHED = (MEASURED, FINISHED)


@dataclass(frozen=True, slots=True)
class CensusSpec:
    """What is rented for a census.

    count: machines of each type in each zone, and of each wave. waves: how often; every_s: from the
    start of one to the start of the next. at_once: most machines at the same time. budget_s: for
    measuring one machine. boot_s: longest time to its first login. money: most that all of it may
    cost.
    """

    cloud: CloudSettings
    region: str
    types: tuple[str, ...]
    zones: tuple[str, ...]
    image: str
    count: int
    market: Market = "on demand"
    waves: int = 1
    every_s: float = 0.0
    at_once: int = 64
    budget_s: float = 25.0
    boot_s: float = BOOT_S
    money: float | None = None
    currency: str = "USD"
    network: str = ""
    login_from: str = ""

    @property
    def digest(self) -> str:
        """Returns a short name of what is asked; that of the same command is the same."""
        values = {k: v for k, v in asdict(self).items() if k not in _OF_ONE_CALL}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]

    def targets(self, wave: int) -> list[RentedRecord]:
        """Returns the machines of a wave in random order, the same at every call."""
        made = [
            RentedRecord(
                name=f"{as_name(f'{type_}-{zone}')}-{wave + 1}-{number + 1}",
                provider=(self.cloud.provider,),
                region=(self.region,),
                zone=(zone,),
                type=(type_,),
                image=(self.image,),
                market=(self.market,),
                endpoint=self.cloud.endpoint,
                profile=self.cloud.profile,
                network=self.network,
                login_from=self.login_from,
            )
            for type_ in self.types
            for zone in self.zones or ("any",)
            for number in range(self.count)
        ]
        random.Random(f"{self.digest} {wave}").shuffle(made)
        return made


def rental_of(spec: CensusSpec) -> RentalSpec:
    """Returns one wave as a rental, to be held against the cloud and priced; nobody creates it."""
    groups = tuple(
        MachineGroup(
            as_name(f"{type_}-{zone}"),
            spec.region,
            type_,
            spec.image,
            zone=zone,
            market=spec.market,
            count=spec.count,
            network=spec.network,
        )
        for type_ in spec.types
        for zone in spec.zones or ("",)
    )
    measured_s = max(LEAST_BUDGET_S, spec.budget_s * min(spec.at_once, spec.count))
    return RentalSpec("census", groups, hours=(measured_s + starts_s(spec.boot_s)) / 3600)


@dataclass(slots=True)
class Campaign:
    """What came of a census so far. measured: targets; cost: of this call."""

    name: str
    planned: int
    runs: list[StoredRun] = field(default_factory=list)
    measured: set[str] = field(default_factory=set)
    cost: float | None = None
    problems: list[str] = field(default_factory=list)
    stopped: str = ""


def run(spec: CensusSpec, store: Store, cpus: dict[str, int], *, fresh: bool = False) -> Campaign:
    """Rents, measures and removes the machines that are missing of a census.

    cpus: type -> CPUs. Goes on with the last census of the same command unless `fresh`, or it was
    complete. Raises what the first batch raises; later the census ends with what it has.
    """
    waves = [spec.targets(number) for number in range(spec.waves)]
    planned = {target.name for wave in waves for target in wave}
    campaign = _chosen(spec, store, planned, fresh)
    before_s: float | None = None
    for number, wave in enumerate(waves):
        began = [
            entry.started_s for entry in campaign.runs if entry.labels.get(WAVE) == str(number + 1)
        ]
        missing = [target for target in wave if target.name not in campaign.measured]
        if missing and before_s is not None:
            _wait_until(before_s + spec.every_s, number, spec.waves)
        before_s = min(began, default=time.time())
        if missing and not _Wave(spec, store, cpus, campaign, number).measure(missing):
            break
    return campaign


def _chosen(spec: CensusSpec, store: Store, planned: set[str], fresh: bool) -> Campaign:
    """Returns the last census of the same command if it is unfinished, else a new one."""
    campaigns: dict[int, Campaign] = {}
    for stored in store.each(output.warn, replays=False):
        name = stored.labels.get(LABEL, "")
        digest, _, number = name.partition("-")
        if digest == spec.digest and number.isdigit():
            of_name = campaigns.setdefault(int(number), Campaign(name, len(planned)))
            of_name.runs.append(stored)
            if stored.state in _FINISHED:
                of_name.measured |= measured_targets(stored)
        stored.release()
    last = max(campaigns, default=0)
    if last and not fresh and campaigns[last].measured < planned:
        output.log(
            f"Census {campaigns[last].name} goes on: {len(campaigns[last].measured)} of "
            f"{plural(len(planned), 'machine')} are measured."
        )
        return campaigns[last]
    return Campaign(f"{spec.digest}-{last + 1}", len(planned))


def measured_targets(stored: StoredRun) -> set[str]:
    """Returns the targets of a run that were rented and reached."""
    return set(stored.manifest.rented) - set(stored.manifest.lost)


def _wait_until(at_s: float, number: int, waves: int) -> None:
    left_s = at_s - time.time()
    if left_s > 0:
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
        output.log(
            f"Wave {number + 1} of {waves} begins at {text}. Ctrl-C ends the census; the same "
            "command goes on."
        )
        time.sleep(left_s)


class _Wave:
    """The batches of one wave. measure: False when the census ends with it."""

    def __init__(
        self, spec: CensusSpec, store: Store, cpus: dict[str, int], campaign: Campaign, number: int
    ) -> None:
        self._spec, self._store, self._cpus = spec, store, cpus
        self._campaign, self._number = campaign, number

    def measure(self, missing: Sequence[RentedRecord]) -> bool:
        waiting = list(missing)
        while waiting:
            batch, waiting = waiting[: self._spec.at_once], waiting[self._spec.at_once :]
            again = self._batch(batch)
            if self._campaign.stopped:
                return False
            waiting += again
        return True

    def _batch(self, batch: Sequence[RentedRecord]) -> list[RentedRecord]:
        """Measures a batch as a run; returns the machines that are worth another request."""
        campaign = self._campaign
        made: list[RentedEnvironment] = []

        def environment(plan: Plan, stored: StoredRun, say: Any) -> RentedEnvironment:
            made.append(
                RentedEnvironment(plan, stored, say, is_partial=True, boot_s=self._spec.boot_s)
            )
            return made[0]

        labels = {LABEL: campaign.name, WAVE: str(self._number + 1)}
        error: NephoscopeError | None = None
        try:
            stored = measuring.executed(
                self._plan(batch),
                self._store,
                fresh=True,
                labels=labels,
                environment=environment,
                absent={},
            )
            measuring.reported(stored)
            campaign.runs.append(stored)
            campaign.measured |= measured_targets(stored)
        except BenchmarkFailed as failed:
            campaign.problems.append(failed.message)
        except (RunFailed, UsageError) as failed:
            error = failed
        finally:
            self._add_cost(made)
        if error is not None and not campaign.measured and not _is_shortfall(made):
            raise error
        return self._again(batch, made, error)

    def _add_cost(self, made: Sequence[RentedEnvironment]) -> None:
        for entry in made:
            if entry.cost is not None:
                self._campaign.cost = (self._campaign.cost or 0.0) + entry.cost

    def _again(
        self,
        batch: Sequence[RentedRecord],
        made: Sequence[RentedEnvironment],
        error: NephoscopeError | None,
    ) -> list[RentedRecord]:
        """Names what went wrong. A machine for which a quota or a zone had no room is asked for
        again, as long as the cloud grants any of a batch."""
        campaign = self._campaign
        shortfalls = {entry.group: entry for env in made for entry in env.shortfalls}
        campaign.problems += [note for env in made for note in env.notes]
        refused = [entry for entry in batch if _cause(shortfalls.get(entry.name)) is not None]
        if error is not None and not _is_shortfall(made):
            campaign.stopped = error.message
        elif refused and len(refused) == len(batch):
            campaign.stopped = f"The cloud grants no more: {shortfalls[refused[0].name].reason}."
        return refused

    def _plan(self, batch: Sequence[RentedRecord]) -> Plan:
        spec = self._spec
        plan = plans.fit_to_machines(
            plans.census(metadata=True),
            list(batch),
            {entry.name: self._cpus.get(entry.type[0], 1) for entry in batch},
        )
        launch = Entry(
            benchmark=HOST_BOOT, params={"level": LAUNCH}, repeat=RepeatChange(min=1, max=1)
        )
        money = None
        if spec.money is not None:
            left = spec.money - (self._campaign.cost or 0.0)
            money = Money(limit=max(left, 1e-9), currency=spec.currency)
        return plan.model_copy(
            update={
                "name": "cloud-census",
                "benchmarks": (launch, *plan.benchmarks),
                "concurrent": True,
                "money": money,
                "budget_s": max(LEAST_BUDGET_S, spec.budget_s * len(batch)),
            }
        )


def _cause(shortfall: Any) -> Cause | None:
    cause: Cause | None = getattr(shortfall, "cause", None)
    return cause


def _is_shortfall(made: Iterable[RentedEnvironment]) -> bool:
    return any(env.shortfalls for env in made)


def plan_waves(duration_s: float | None, every_s: float | None) -> tuple[int, float]:
    """Returns the number of waves and the seconds between their starts. Raises UsageError."""
    if every_s is None and duration_s is None:
        return 1, 0.0
    if every_s is None or duration_s is None:
        raise UsageError(
            "--every and --for need each other.", "Write, for example, --every 1h --for 1d."
        )
    return max(1, math.ceil(duration_s / every_s - 1e-9)), every_s


def problems_of(campaign: Campaign) -> Iterator[str]:
    """Yields the problems of a census, each once, with how often it came."""
    for text in dict.fromkeys(campaign.problems):
        number = campaign.problems.count(text)
        yield f"{text} ({number} times)" if number > 1 else text
