"""Tenants and daemons of a real cloud are killed: after a sweep nothing is left of either."""

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.leftovers import SweepScope, sweep_leftovers
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.rental import Rentals

from . import tenants
from .cloud import Cloud
from .configuration import FAKE, QEMU
from .fixtures import credentials
from .services import Services

KILLS = int(os.environ.get("NEPHOSCOPE_CLOUD_KILLS", "30"))
AT_ONCE = 5
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

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


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


def made_by_token(cloud: Cloud, runs: str) -> Counter[str]:
    """How many machines were ever made under each token, by nova's own tables.

    runs: how the names of the rentals begin. Tags by the EC2 API are not in these tables.
    """
    rows = cloud.room.run(
        *("mariadb", "-N", "-e"),
        "SELECT t.value FROM nova.instance_metadata t JOIN nova.instance_metadata r "
        "ON t.instance_uuid = r.instance_uuid WHERE t.`key` = 'nephoscope-token' "
        f"AND r.`key` = 'nephoscope-run' AND r.value LIKE '{runs}%'",
    )
    return Counter(rows.split())


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
    outcomes: Counter[str] = Counter()
    words = [sys.executable, "-m", "tests.clouds.openstack.tenants", provider, endpoint, folder]
    lock = threading.Lock()
    names = (*DAEMONS, "ec2-api") if provider == "ec2" else DAEMONS
    with (
        subprocess.Popen(
            words, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as nursery,
        contextlib.ExitStack() as daemons,
    ):
        assert nursery.stdin is not None
        assert nursery.stdout is not None

        def start(name: str, zone: str) -> int:
            with lock:
                assert nursery.stdin is not None
                assert nursery.stdout is not None
                nursery.stdin.write(f"{name} {zone}\n")
                nursery.stdin.flush()
                return int(nursery.stdout.readline())

        def ended(pid: int, limit_s: float) -> bool:
            end = time.monotonic() + limit_s
            while time.monotonic() < end and Path(f"/proc/{pid}").exists():
                time.sleep(0.005)
            return not Path(f"/proc/{pid}").exists()

        # How long a whole rental takes here, all daemons alive, decides when tenants are killed.
        began = time.monotonic()
        assert ended(start(f"{provider}whole", FAKE), 600)
        whole_s = time.monotonic() - began
        swept(here, f"{provider}whole")

        killed = daemons.enter_context(
            dying(openstack_cloud.services, names, f"daemons:{provider}")
        )

        def one(number: int) -> None:
            drawn = random.Random(f"kills:{provider}:{number}")
            name = f"{provider}{number}"
            pid = start(name, QEMU if number % 8 == 7 else FAKE)
            ended(pid, drawn.uniform(0, whole_s))
            try:
                os.kill(pid, signal.SIGKILL)
                outcomes["killed"] += 1
            except ProcessLookupError:
                outcomes["ended before"] += 1
            assert ended(pid, 60)
            outcomes["sweeps"] += swept(here, name)
            assert not (folder / name).exists()

        numbers = iter(range(100 * KILLS))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while outcomes["killed"] < KILLS:
                list(pool.map(one, [next(numbers) for _ in range(AT_ONCE)]))
        nursery.stdin.close()
        nursery.wait(60)
    settled_s = oracles.until_nothing(openstack_cloud, limit_s=180)
    made = made_by_token(openstack_cloud, provider)
    print(  # noqa: T201
        f"a whole rental {whole_s:.1f} s; {dict(outcomes)}; daemons {dict(killed)}; "
        f"{sum(made.values())} machines under {len(made)} tokens; nothing left after "
        f"{settled_s:.1f} s"
    )
    assert killed
    assert len(made) > KILLS / 4 or provider == "ec2"
    assert all(count <= tenants.COUNTS[FAKE] for count in made.values()), made
