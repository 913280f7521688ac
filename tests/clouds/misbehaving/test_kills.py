"""Tenants that are killed at drawn moments: after a sweep nothing is left, nothing was made twice.

One call in ten meets one of the faults of calls; a launch meets each of the faults of machines with
a probability of a tenth.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.leftovers import SweepScope, sweep_leftovers
from nephoscope.measure.cloud.rental import Rentals

from . import double as doubles
from . import tenants
from .double import Double

SCALE = 30.0
KILLS = int(os.environ.get("NEPHOSCOPE_KILLS", "40"))
VOLUME_KILLS = KILLS // 2
AT_ONCE = 10
LIFETIME_S = 25.0

CALLS = ("throttle", "unavailable", "internal-before", "internal-after", "drop-before",
         "drop-after", "truncate", "delay")  # fmt: skip
REFUSALS = ("expired", "skew")
"""They end a rental at once, and the next one with good credentials: rarer, so that most get on."""
MACHINES = ("no-capacity", "partial", "boot-failure", "late-failure", "interruption", "stuck")


def break_everything(cloud: Double) -> None:
    for fault in CALLS:
        cloud.fault(fault, rate=0.1 / len(CALLS))
    for fault in REFUSALS:
        cloud.fault(fault, rate=0.0025)
    for fault in MACHINES:
        cloud.fault(fault, rate=0.1)
    cloud.settings(lag_s=tenants.LAG_S, listed_s=600)
    for code in ("L-1216C47A", "L-34B43A08"):
        cloud.quota(code, 100_000)


class Nursery:
    """The process that tenants are forks of."""

    def __init__(self, cloud: Double, folder: Path) -> None:
        words = [sys.executable, "-m", "tests.clouds.misbehaving.tenants"]
        self._process = subprocess.Popen(
            [*words, cloud.endpoint, str(folder), str(SCALE)], cwd=doubles.ROOT,
            env={**os.environ, **cloud.environment()}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._lock = threading.Lock()

    def start(self, name: str) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(30)


def swept(rentals: Rentals, name: str) -> int:
    """`cloud sweep --run NAME` until it is confirmed, as its message asks; returns how often."""
    for attempt in range(1, 31):
        try:
            scope = SweepScope(run=name)
            found = asyncio.run(sweep_leftovers(rentals, scope, say=lambda line: None))
        except RunFailed:
            continue
        if found.is_clean:
            return attempt
    raise AssertionError(f"{name} could not be removed")


@pytest.mark.slow
def test_nothing_is_left_of_tenants_that_were_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "rentals"
    folder.mkdir()
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    with doubles.running(seed=33, scale=SCALE) as cloud:
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        break_everything(cloud)
        nursery = Nursery(cloud, folder)
        made_once = tenants.provider(cloud.endpoint, SCALE)
        here = tenants.rentals(made_once, cloud.endpoint, folder)
        away = tenants.rentals(made_once, cloud.endpoint, tmp_path / "another-machine")
        cap = cap_of(cloud, here)

        def one(number: int) -> None:
            drawn = random.Random(f"kills:{number}")
            name = f"r{number}"
            pid = nursery.start(name)
            end = time.monotonic() + drawn.uniform(0, LIFETIME_S)
            while time.monotonic() < end and Path(f"/proc/{pid}").exists():
                time.sleep(0.005)
            try:
                os.kill(pid, signal.SIGKILL)
                outcomes["killed"] += 1
            except ProcessLookupError:
                outcomes["ended before"] += 1
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.005)
            # Every third one is swept by somebody who has nothing but the tags.
            swept(away if number % 3 == 0 else here, name)
            problems.extend(check(cloud, name, cap))
            with contextlib.suppress(FileNotFoundError):
                here_left = folder / name
                if number % 3 and here_left.exists():
                    problems.append(f"{name}: its folder is still there")

        numbers = iter(range(100 * KILLS))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while outcomes["killed"] < KILLS and not problems:
                list(pool.map(one, [next(numbers) for _ in range(AT_ONCE)]))
        nursery.close()
        problems += [f"left at the end: {each['id']}" for each in cloud.live()]
        made = Counter(each["kind"] for each in cloud.oracle())
        happened = cloud.faults()
        problems += cloud.defects()
    print(f"{dict(outcomes)}; made {dict(made)}; faults {happened}")  # noqa: T201
    assert not problems, problems
    assert made["instance"] > KILLS / 2
    assert set(happened) >= {*CALLS, *REFUSALS, *MACHINES} or KILLS < 40


@pytest.mark.slow
def test_nothing_is_left_of_volumes_and_snapshots_whose_tenant_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot has no token here, and is made once all the same: within what the lists show."""
    folder = tmp_path / "rentals"
    folder.mkdir()
    outcomes: Counter[str] = Counter()
    with doubles.running(seed=34, scale=SCALE) as cloud:
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        break_everything(cloud)
        for fault in (*REFUSALS, *MACHINES):
            cloud.fault(fault, rate=0.0)
        nursery = Nursery(cloud, folder)
        here = tenants.rentals(tenants.provider(cloud.endpoint, SCALE), cloud.endpoint, folder)

        def one(number: int) -> None:
            name = f"volumes{number}"
            pid = nursery.start(name)
            end = time.monotonic() + random.Random(name).uniform(3, LIFETIME_S)
            while time.monotonic() < end and Path(f"/proc/{pid}").exists():
                time.sleep(0.01)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                outcomes["killed"] += 1
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.01)
            swept(here, name)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(VOLUME_KILLS)))
        nursery.close()
        seen = cloud.oracle()
        happened, defects = cloud.faults(), cloud.defects()
    print(f"{dict(outcomes)}; made {Counter(each['kind'] for each in seen)}; faults {happened}")  # noqa: T201
    assert [each["id"] for each in seen if each["live"]] == []
    assert [each["id"] for each in seen if not each["tags_at_creation"]] == []
    made = Counter((each["kind"], each["tags"]["nephoscope-token"]) for each in seen)
    twice = [key for key, count in made.items() if count > 1 and key[0] == "snapshot"]
    assert twice == []
    assert len([key for key in made if key[0] == "snapshot"]) >= VOLUME_KILLS / 3
    assert defects == []


def cap_of(cloud: Double, rentals: Rentals) -> float:
    """What a rental may cost, by its quote; the image is looked up as in a rental."""
    from dataclasses import replace

    wanted = tenants.spec("cap")
    for _ in range(100):
        try:
            groups = tuple(
                replace(group, image=rentals.provider.image(group.region, group.image))
                for group in wanted.groups
            )
            quote = rentals.quote(replace(wanted, groups=groups))
        except RunFailed:
            continue
        assert quote is not None
        return quote.cost(wanted.hours)
    raise AssertionError("no quote")


def check(cloud: Double, name: str, cap: float) -> list[str]:
    """What the oracle objects to in one rental."""
    mine = [each for each in cloud.oracle() if each["tags"].get("nephoscope-run") == name]
    found = [f"{name}: {each['id']} is still {each['state']}" for each in mine if each["live"]]
    untagged = [each["id"] for each in cloud.oracle() if not each["tags_at_creation"]]
    found += [f"{name}: {id} was made without tags" for id in untagged]
    tokens = Counter(
        (each["kind"], each["region"], each["tags"]["nephoscope-token"]) for each in mine
    )
    per_kind: Counter[tuple[str, str]] = Counter()
    for (kind, region, _), count in tokens.items():
        most = {"instance": 2, "volume": 2}.get(kind, 1)
        if count > most:
            found.append(f"{name}: {count} of {kind} under one token")
        per_kind[kind, region] += 1
    # A group that failed is launched once more; all else is made once in a region.
    for (kind, region), count in per_kind.items():
        if count > (2 if kind in ("instance", "volume") else 1):
            found.append(f"{name}: {kind} made {count} times in {region}")
    cost = sum(each["cost"] for each in mine)
    if cost > cap:
        found.append(f"{name}: cost {cost:.4f}, more than {cap:.4f}")
    return found
