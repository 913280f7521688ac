"""The state of the double: resources with their histories, in time that a test can move."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import catalogue
from .errors import ApiError, not_found
from .faults import Faults
from .signatures import Credentials

PREFIXES = {
    "instance": "i",
    "volume": "vol",
    "snapshot": "snap",
    "image": "ami",
    "security-group": "sg",
    "key-pair": "key",
    "elastic-ip": "eipalloc",
    "launch-template": "lt",
    "network-interface": "eni",
    "placement-group": "pg",
    "load-balancer": "lb",
    "spot-instances-request": "sir",
    "auto-scaling-group": "asg",
    "scaling-policy": "policy",
    "scaling-activity": "activity",
}
"""Kind of resource, in the API's own words -> how its ids begin."""


class Clock:
    """Time of the double: it runs `scale` times as fast as ours, and jumps on command."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self._began = time.time()
        self._from = time.monotonic()
        self._jumped = 0.0

    def now(self) -> float:
        return self._began + (time.monotonic() - self._from) * self.scale + self._jumped

    def advance(self, seconds: float) -> None:
        self._jumped += seconds


@dataclass
class Resource:
    """Anything that was made. tags: key -> (value, since); None as value for a tag that was taken
    away. states: (since, state) in order of time, some of them in the future. gone: since when the
    API does not list it."""

    kind: str
    id: str
    region: str
    created: float
    zone: str = ""
    tags: dict[str, list[tuple[float, str | None]]] = field(default_factory=dict)
    states: list[tuple[float, str]] = field(default_factory=list)
    gone: float = float("inf")
    data: dict[str, Any] = field(default_factory=dict)
    token: str = ""

    def state(self, at: float) -> str:
        known = [state for since, state in self.states if since <= at]
        return known[-1] if known else self.states[0][1] if self.states else ""

    def since(self, state: str) -> float:
        return next((since for since, each in reversed(self.states) if each == state), float("inf"))

    def change(self, now: float, *steps: tuple[float, str]) -> None:
        """What was to come does not; instead these states, each so many seconds from now."""
        self.states = [(since, state) for since, state in self.states if since <= now]
        self.states += [(now + later, state) for later, state in steps]

    def tag(self, now: float, key: str, value: str | None) -> None:
        self.tags.setdefault(key, []).append((now, value))

    def tags_at(self, at: float) -> dict[str, str]:
        found = {}
        for key, values in self.tags.items():
            known = [value for since, value in values if since <= max(at, self.created)]
            if known and known[-1] is not None:
                found[key] = known[-1]
        return found

    def exists(self, at: float) -> bool:
        return self.created <= at < self.gone


@dataclass
class Bucket:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/throttling.html: a token bucket."""

    size: float
    per_s: float
    left: float
    seen: float

    def take(self, now: float, tokens: float = 1.0) -> bool:
        self.left = min(self.size, self.left + (now - self.seen) * self.per_s)
        self.seen = now
        if self.left < tokens:
            return False
        self.left -= tokens
        return True


SETTINGS: dict[str, Any] = {
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/query-api-troubleshooting.html
    # #eventual-consistency: an answer may be so many seconds old.
    "lag_s": 0.0,
    "boot_s": 2.0,
    "stop_s": 2.0,
    "shutdown_s": 2.0,
    # TerminateInstances: "Terminated instances remain visible after termination (for approximately
    # one hour)." https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
    "listed_s": 3600.0,
    # "An Spot Instance interruption notice is a warning that is issued two minutes before":
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
    "notice_s": 120.0,
    "interruption_after_s": 600.0,
    # Terminated instances count towards the limits "for some time after termination":
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/query-api-troubleshooting.html
    "quota_release_s": 0.0,
    "image_s": 5.0,
    # Answers without a size of their pages have as many entries at most.
    "page": 1000,
    # It is like OpenStack's EC2 API: see `server.OLD`.
    "old": False,
    "machines": False,
    # CPUs of a machine by its host: host-N has the N-th value, again from the first; none: all.
    "host_cpus": (),
    # CPU credits of each machine: burst and baseline in CPUs, credit in CPU seconds; None: no end.
    "cpu_credit": None,
    # The same of what each machine sends: burst and baseline in bits per second, credit in bits.
    "network_credit": None,
    # Mean life of a spot machine until its interruption, and the shape of its Weibull distribution;
    # 1 is a constant hazard. None: only what the fault `interruption` strikes.
    "spot_life_s": None,
    "spot_shape": 1.0,
    # Factors on the spot price from moments on: (seconds since the epoch, factor).
    "spot_factors": (),
    # Distances between machines: see `paths.Planted`; none: as near as this machine is to itself.
    "paths": (),
    # Operations a second of a machine's own disk, by which it gets one; none: it is in memory.
    "disk_iops": 0,
    # The same of a volume, by its type; 0 for no limit.
    "volume_iops": {},
    "volume_s": 1.0,
    "attach_s": 0.0,
    # Bytes a second of a volume from a snapshot until `lazy_bytes` of it were read; 0: no limit.
    "lazy_bytes_per_s": 0,
    "lazy_bytes": 0,
    # Types that the price list lacks; "egress" for traffic.
    "unpriced": (),
    "bucket_size": None,
    "bucket_per_s": 20.0,
    "policy": None,
}
"""Settings, with their values at the beginning; times are in the double's seconds."""


class Cloud:
    """Everything there is, under one lock."""

    def __init__(self, seed: int = 0, scale: float = 1.0) -> None:
        self.lock = threading.RLock()
        self.clock = Clock(scale)
        self.faults = Faults(seed)
        self.settings = dict(SETTINGS)
        self.draws = random.Random(f"{seed}:cloud")
        self.resources: dict[str, Resource] = {}
        self.tokens: dict[tuple[str, str, str], tuple[str, Any]] = {}
        self.buckets: dict[tuple[str, str], Bucket] = {}
        self.credentials = {"AKIDNEPHOSCOPETEST01": Credentials("a-secret-that-must-not-be-seen")}
        self.capacity: dict[tuple[str, str], int] = {}
        self.quotas = {code: float(value) for code, (_, value) in catalogue.QUOTAS.items()}
        self.calls: list[dict[str, Any]] = []
        self.machines: Any = None
        self._addresses = 0
        for region in catalogue.REGIONS:
            for name, made in catalogue.IMAGES.items():
                self._publish(region, name, made)

    def _publish(self, region: str, name: str, made: str) -> None:
        image = Resource("image", catalogue.image_id(region, name), region, 0.0)
        image.states = [(0.0, "available")]
        image.data = {"name": name, "made": made, "owner": catalogue.PUBLISHER, "snapshot": None}
        self.resources[image.id] = image

    def now(self) -> float:
        return self.clock.now()

    def new_id(self, kind: str) -> str:
        return f"{PREFIXES[kind]}-{self.draws.getrandbits(68):017x}"

    def new_address(self, first: int = 10) -> str:
        """An address that was not given before, until all have been. 127 is loopback: whoever calls
        a machine that exists as a record only reaches nobody."""
        self._addresses = self._addresses % 60000 + 1
        return f"{first}.77.{self._addresses // 250}.{self._addresses % 250 + 2}"

    def add(self, kind: str, region: str, **data: Any) -> Resource:
        """A new resource; `zone`, `tags` and `token` are its fields, all else its data."""
        tags, zone, token = (data.pop(k, d) for k, d in (("tags", {}), ("zone", ""), ("token", "")))
        now = self.now()
        made = Resource(kind, self.new_id(kind), region, now, zone, data=data, token=token)
        for key, value in tags.items():
            made.tag(now, key, value)
        self.resources[made.id] = made
        return made

    def of_kind(self, kind: str, region: str, at: float) -> list[Resource]:
        """Those that an answer as old as `at` shows."""
        return [
            each
            for each in self.resources.values()
            if each.kind == kind and each.region == region and each.exists(at)
        ]

    def find(self, kind: str, region: str, id: str, at: float) -> Resource:
        """Raises ApiError for one that is not there, or not yet to be seen."""
        found = self.resources.get(id)
        if found is None or found.kind != kind or found.region != region or not found.exists(at):
            raise not_found(kind, id)
        return found

    def occupied(self, type_name: str, zone: str) -> int:
        now = self.now()
        return sum(
            each.data["type"] == type_name and each.zone == zone and holds_host(each, now)
            for each in self.resources.values()
            if each.kind == "instance"
        )

    def throttle(self, region: str, action: str) -> None:
        """Takes a token of the action's bucket in the region, where buckets are switched on."""
        size = self.settings["bucket_size"]
        if size is None:
            return
        bucket = self.buckets.setdefault(
            (region, action), Bucket(size, self.settings["bucket_per_s"], size, time.monotonic())
        )
        # Callers wait in our time, whatever the double's.
        if not bucket.take(time.monotonic()):
            raise throttled()

    def owned(self) -> Iterator[Resource]:
        """All that the account ever made."""
        return (each for each in self.resources.values() if each.data.get("owner") is None)


def throttled() -> ApiError:
    return ApiError("RequestLimitExceeded", "Request limit exceeded.", 503)


def holds_host(instance: Resource, now: float) -> bool:
    return instance.state(now) in ("pending", "running", "stopping", "shutting-down")
