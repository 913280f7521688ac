"""Tenants and daemons of a real cloud are killed: after a sweep nothing is left of either."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.leftovers import SweepScope, sweep_leftovers
from nephoscope.measure.cloud.model import Kind, Tags
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.rental import Rentals

from . import tenants
from .cloud import Cloud
from .configuration import FAKE, QEMU
from .fixtures import credentials
from .services import Services

KILLS = int(os.environ.get("NEPHOSCOPE_CLOUD_KILLS", "30"))
AT_ONCE = 6
PATIENCE_S = 180.0
"""Of one sweep; the next one then says whether what is left needs the cloud's own interface."""
APIS = {"nova-api": "compute", "ec2-api": "ec2"}
DAEMONS = ("nova-compute-fake", "nova-compute-qemu", "nova-conductor", "nova-scheduler", "nova-api")
ROOT = Path(__file__).resolve().parents[3]


@contextlib.contextmanager
def dying(services: Services, names: tuple[str, ...], seed: str) -> Iterator[Counter[str]]:
    """Daemons are killed, one after the other, and come back some seconds later."""
    drawn, over, killed = random.Random(seed), threading.Event(), Counter[str]()

    def work() -> None:
        while not over.wait(drawn.uniform(10, 30)):
            name = drawn.choice(names)
            services.kill(name)
            killed[name] += 1
            over.wait(drawn.uniform(0, 8))
            services.start(name)
            # One that is never up for long is another test; a busy machine starts it slowly.
            if name in APIS:
                services.answering(APIS[name])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def swept(rentals: Rentals, name: str) -> int:
    """`cloud sweep --run NAME` until it is confirmed, as its message asks; returns how often.

    EC2's interface forgets the ports of a machine that a killed daemon did not finish, and their
    security group stays in use: the same account is swept by the cloud's own interface then.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = tenants.rentals(CloudSettings("openstack", profile="renter"), Path(folder))
        for attempt in range(1, 31):
            for interface in (own, rentals) if attempt > 1 else (rentals,):
                if is_swept(interface, name) and interface is rentals:
                    return attempt
    raise AssertionError(f"{name} could not be removed")


def is_swept(rentals: Rentals, name: str) -> bool:
    """`cloud sweep --run NAME`; states whether nothing is left, and prints what is."""
    try:
        scope = SweepScope(run=name)
        left = asyncio.run(
            sweep_leftovers(rentals, scope, say=lambda line: None, patience_s=PATIENCE_S)
        )
        left.require_clean("cloud sweep")
    except RunFailed as failed:
        print(f"{name}: {failed.message}", flush=True)  # noqa: T201
        return False
    return True


def made_by_call(cloud: Cloud, runs: str) -> dict[str, list[int]]:
    """Machines that were ever made, by rental, and of each by call: nova's own table, in which a
    machine that was removed stays with its key pair's name and the number of the call.

    runs: how the names of the rentals begin. EC2's interface asks nova once for each machine of a
    call, and names the machine by the call.
    """
    call = {"openstack": "reservation_id", "ec2": "SUBSTRING_INDEX(display_name, '-', 2)"}[runs]
    rows = cloud.room.run(
        *("mariadb", "-N", "-B", "-e"),
        f"SELECT key_name, {call}, COUNT(*) FROM nova.instances "
        f"WHERE key_name LIKE 'nephoscope_{runs}%' GROUP BY key_name, {call}",
    )
    made: dict[str, list[int]] = {}
    for row in rows.splitlines():
        name, _, count = row.split("\t")
        tags = Tags.from_name(name)
        assert tags is not None
        made.setdefault(tags.run, []).append(int(count))
    return made


def calls_of(folder: Path, name: str) -> int:
    """How many calls with tokens of their own a tenant meant to make machines by."""
    intents = RentalFolder(name, folder).intents()
    return len(
        {each.token for each in intents if each.what == "create" and each.kind == Kind.MACHINE}
    )


class Nursery:
    """Starts tenants as children of one process, which has read the libraries once."""

    def __init__(self, provider: str, endpoint: str, folder: Path) -> None:
        module = "tests.clouds.openstack.tenants"
        words = [sys.executable, "-m", module, provider, endpoint, str(folder)]
        self._process = subprocess.Popen(
            words, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lock = threading.Lock()
        self._folder = folder

    def start(self, name: str, zone: str) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{name} {zone}\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def lines(self, name: str) -> int:
        """Lines of a tenant's log so far."""
        return len(RentalFolder(name, self._folder).intents())

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(60)


def ended(pid: int, limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.005)
    return not Path(f"/proc/{pid}").exists()


def timed(nursery: Nursery, here: Rentals, provider: str) -> tuple[float, int]:
    """Seconds of a whole rental, and lines of its log; several at once, as they are killed."""

    def whole(number: int) -> tuple[float, int]:
        name, lines = f"{provider}whole{number}", 0
        began = time.monotonic()
        pid = nursery.start(name, FAKE)
        while not ended(pid, 0.05):
            lines = max(lines, nursery.lines(name))
            assert time.monotonic() - began < 900
        elapsed_s = time.monotonic() - began
        swept(here, name)
        return elapsed_s, lines

    # EC2's interface makes an account's network with its first call: six at once disagree.
    whole(AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        times, logs = zip(*pool.map(whole, range(AT_ONCE)), strict=True)
    return statistics.median(times), min(logs)


@dataclass(frozen=True)
class Killing:
    """Tenants are killed after so many lines of their log, and a part of the time of a line:
    daemons that are away stretch some steps, and none of them is to be missed for it.

    asked: calls that each killed tenant meant to make machines by.
    """

    nursery: Nursery
    here: Rentals
    folder: Path
    provider: str
    whole_s: float
    lines: int
    asked: dict[str, int] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def one(self, number: int) -> None:
        drawn = random.Random(f"kills:{self.provider}:{number}")
        name = f"{self.provider}{number}"
        pid = self.nursery.start(name, QEMU if number % 8 == 7 else FAKE)
        after, calls = drawn.randrange(self.lines), 0
        while self.nursery.lines(name) < after and not ended(pid, 0.01):
            calls = max(calls, calls_of(self.folder, name))
        ended(pid, drawn.uniform(0, self.whole_s / (self.lines + 1)))
        # One that an absent daemon has ended, or that was quick, is followed by another.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.outcomes["killed"] += 1
            self.asked[name] = calls
        assert ended(pid, 60)
        if name in self.asked:
            self.asked[name] = max(calls, calls_of(self.folder, name))
        sweeps = swept(self.here, name)
        self.outcomes["sweeps"] += sweeps
        assert not (self.folder / name).exists()
        did = f"killed after {after} lines" if name in self.asked else "ended by itself"
        print(f"{name}: {did}, {self.asked.get(name)} calls, {sweeps} sweeps", flush=True)  # noqa: T201

    def all(self) -> None:
        numbers, lock = iter(range(100 * KILLS)), threading.Lock()

        def work(_: int) -> None:
            while self.outcomes["killed"] < KILLS:
                with lock:
                    number = next(numbers)
                self.one(number)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(work, range(AT_ONCE)))


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openstack", "ec2"])
def test_nothing_is_left_of_tenants_that_were_killed(
    openstack_cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    from . import oracles

    credentials(openstack_cloud, tmp_path, monkeypatch)
    site, folder = openstack_cloud.site, tmp_path / "rentals"
    folder.mkdir()
    endpoint = {"openstack": site.url("identity"), "ec2": openstack_cloud.ec2_url}[provider]
    settings = CloudSettings(provider, endpoint, "renter")
    here = tenants.rentals(settings, folder)
    daemons = (*DAEMONS, "ec2-api") if provider == "ec2" else DAEMONS
    with contextlib.closing(Nursery(provider, endpoint, folder)) as nursery:
        whole_s, lines = timed(nursery, here, provider)
        killing = Killing(nursery, here, folder, provider, whole_s, lines)
        with dying(openstack_cloud.services, daemons, f"daemons:{provider}") as killed:
            killing.all()
    asked, outcomes = killing.asked, killing.outcomes
    settled_s = oracles.until_nothing(openstack_cloud, limit_s=180)
    made = made_by_call(openstack_cloud, provider)
    tried = {name: made.get(name, []) for name in asked}
    met = sum(map(bool, tried.values()))
    print(  # noqa: T201
        f"a whole rental {whole_s:.1f} s, {lines} lines; {dict(outcomes)}; "
        f"daemons {dict(killed)}; machines of {met} killed tenants, "
        f"{sum(map(sum, made.values()))} in all; nothing left after {settled_s:.1f} s"
    )
    assert killed
    assert met > KILLS / 4
    for name, counts in tried.items():
        assert len(counts) <= asked[name], (name, counts)
        assert all(count <= tenants.COUNTS[FAKE] for count in counts), (name, counts)
