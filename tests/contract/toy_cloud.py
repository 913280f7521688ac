"""A cloud that only tests know: a resource is a file, a machine is this machine.

Its state is a folder, so that another process sees it, also after a kill. What it makes shows in
its lists `lag_s` later; every call can fail before or after it took effect.

Started as a program it rents what it is asked for.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.measure.cloud.calls import kind_of
from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    Request,
    ResourceState,
    StoragePrices,
    Tags,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings, CloudTraits
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

REGIONS = ("east", "west")
SETTINGS = CloudSettings("toy")


class ToyCloud:
    """See `Provider`. fail: share of the calls that fail, half of them after they took effect."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE, Kind.KEY_PAIR, Kind.VOLUME, Kind.SNAPSHOT}),
        actions=frozenset(Action),
        tokens=True,
        settle_s=0.5,
        user_data=False,
    )

    def __init__(
        self,
        folder: Path,
        *,
        lag_s: float = 0.0,
        fail: float = 0.0,
        seed: int = 0,
        capacity: int = 100,
        price: float | None = 1.0,
        call_s: float = 0.0,
    ) -> None:
        self._folder, self._lag_s, self._fail = folder, lag_s, fail
        self._random = random.Random(seed)
        self._capacity, self._price, self._call_s = capacity, price, call_s
        self.calls: list[str] = []

    def account(self) -> Account:
        return Account("toy", quotas={"machines": (len(self.all(Kind.MACHINE)), self._capacity)})

    def regions(self) -> Sequence[str]:
        return REGIONS

    def zones(self, region: str) -> Sequence[str]:
        self._check(region)
        return (f"{region}-a", f"{region}-b")

    def types(self, region: str) -> Sequence[MachineType]:
        self._check(region)
        return (MachineType("small", 1, 2**30), MachineType("large", 4, 2**32))

    def image(self, region: str, name: str) -> str:
        self._check(region)
        if name != "plain":
            raise CloudError(Cause.UNKNOWN, f"toy: no image '{name}' in {region}.", "Write plain.")
        return "image-1"

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        return None if self._price is None else MachinePrices(self._price, source="toy")

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        self._call("create")
        after = self._fails_after()
        kind, token = kind_of(request), request.tags.token
        made = [one for one in self.all(kind) if one.tags.token == token]
        if not made:
            made = self._make(kind, request)
        if after:
            raise CloudError(Cause.UNANSWERED, "toy: no answer to create.")
        return made

    def _make(self, kind: Kind, request: Request) -> list[CloudResource]:
        made: list[CloudResource] = []
        count, least = 1, 1
        if isinstance(request, MachineRequest):
            if request.type not in ("small", "large"):
                raise CloudError(Cause.UNKNOWN, f"toy: no type '{request.type}'.", "Write small.")
            free = self._capacity - len(self.all(Kind.MACHINE))
            count, least = min(request.count, free), request.at_least
            if count < least:
                raise CloudError(Cause.CAPACITY, f"toy: {free} machines are free.")
        for _ in range(count):
            id_ = f"{kind.name.lower()}-{self._random.getrandbits(40):010x}-{time.time_ns()}"
            common: dict[str, Any] = {
                "created_s": time.time(),
                "zone": getattr(request, "zone", ""),
            }
            if isinstance(request, MachineRequest):
                made.append(
                    Machine(
                        kind,
                        id_,
                        request.region,
                        request.tags,
                        type=request.type,
                        image=request.image,
                        market=request.market,
                        name=request.name,
                        target={"kind": "local"},
                        **common,
                    )
                )
            else:
                made.append(CloudResource(kind, id_, request.region, request.tags, **common))
            self._write(made[-1])
        return made

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        self._call("list")
        self._check(region)
        shown = time.time() - self._lag_s
        return [
            one
            for one in self.all()
            if one.region == region
            and run in (None, one.tags.run)
            and (one.created_s or 0) <= shown
        ]

    def delete(self, resource: CloudResource) -> None:
        self._call("delete")
        after = self._fails_after()
        (self._folder / resource.id).unlink(missing_ok=True)
        if after:
            raise CloudError(Cause.UNANSWERED, "toy: no answer to delete.")

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        self._call("act")
        (machine,) = [one for one in self.all(Kind.MACHINE) if one.id == machine.id]  # type: ignore[misc]
        state = ResourceState.STOPPED if action is Action.STOP else ResourceState.READY
        self._write(machine, state=state, **({"type": value} if value else {}))

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        self._call("attach")

    def detach(self, volume: CloudResource) -> None:
        self._call("detach")

    def console(self, machine: Machine) -> str:
        return "toy started"

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        self._write(resource, tags=asdict(resource.tags) | {"expires_s": expires_s})

    def all(self, kind: Kind | None = None) -> list[CloudResource]:
        """Everything there is, at once: the truth for tests."""
        found = []
        for path in sorted(self._folder.iterdir()):
            try:
                values = json.loads(path.read_text())
            except (FileNotFoundError, ValueError):
                continue
            values |= {"tags": Tags(**values["tags"]), "state": ResourceState(values["state"])}
            values["kind"] = Kind(values["kind"])
            made = Machine if values["kind"] is Kind.MACHINE else CloudResource
            found.append(made(**values))
        return [one for one in found if kind in (None, one.kind)]

    def _write(self, resource: CloudResource, **changes: Any) -> None:
        aside = self._folder / f"{resource.id}.part"
        aside.write_text(json.dumps(asdict(resource) | changes))
        aside.rename(self._folder / resource.id)

    def _check(self, region: str) -> None:
        if region not in REGIONS:
            raise CloudError(Cause.UNKNOWN, f"toy: no region '{region}'.", "Write east or west.")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        time.sleep(self._call_s)
        if self._random.random() < self._fail / 2:
            raise CloudError(Cause.THROTTLED, f"toy: too many calls to {name}.")

    def _fails_after(self) -> bool:
        return self._random.random() < self._fail / 2


def spec(name: str, **more: Any) -> RentalSpec:
    """Two machines, `a` and `b`, in two regions."""
    groups = tuple(
        MachineGroup(host, region, "small", "plain")
        for host, region in zip("ab", REGIONS, strict=True)
    )
    return RentalSpec(name, groups, hours=1.0, owner="tests", **more)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    (where / "cloud").mkdir(exist_ok=True)
    cloud = ToyCloud(where / "cloud", call_s=0.02, seed=time.time_ns(), fail=float(sys.argv[3]))
    rentals = Rentals(cloud, SETTINGS, root=where / "rentals")
    asyncio.run(rentals.create(spec(sys.argv[2]), say=lambda line: None))
    if len(sys.argv) > 4:
        asyncio.run(rentals.remove(sys.argv[2]))
