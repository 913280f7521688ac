"""Sets a drawn setting in a lab and looks at its host as `nephoscope scheduler` does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from scheduler_settings import Setting
from tests.attempts import PAUSES_S, TICK_S
from trials import real_time

from nephoscope.features.scheduler import plan as scheduler_plan
from nephoscope.features.scheduler.inference.verdict import ObservationWindow
from nephoscope.features.scheduler.result import window_of
from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.targets.lab import LabTarget

TIMEOUT_S = 60.0
ATTEMPTS = 4
MOST_STEAL = 0.03
"""What the machine under this one may take meanwhile: beyond it, two schedulers were measured."""
MOST_FAVOURED = 0.05
"""Of a CPU, what programs may take that ordinary weights do not hold back."""


def topology(name: str, network: str, setting: Setting) -> Any:
    """The host `a` with the setting, and a host for each competitor."""
    hosts: dict[str, Any] = {"a": {"cpu": setting.cpu}}
    for number, one in enumerate(setting.competitors):
        cpu: dict[str, Any] = {"weight": one.weight, "cpus": list(one.cpus)}
        if one.reservation is not None:
            slice_ms, period_ms = one.reservation
            cpu = {"reservation": {"slice": f"{slice_ms}ms", "period": f"{period_ms}ms"}}
        hosts[f"c{number}"] = {"cpu": cpu}
    return files.from_values({"name": name, "network": network, "hosts": hosts})


@contextlib.asynccontextmanager
async def lab_of(name: str, network: str, setting: Setting) -> AsyncIterator[Lab]:
    """A lab with the setting in force and its competitors busy."""
    lab = await LABS.create(topology(name, network, setting), say=lambda line: None)
    spinners: list[subprocess.Popen[bytes]] = []
    try:
        # Only the lab's own hosts are to compete: it goes before the machine's other work.
        cgroups.favour(name)
        for number, one in enumerate(setting.competitors):
            host = lab.hosts[f"c{number}"]
            for cpu in one.cpus:
                # The kernel takes no reservation for a program that is pinned.
                pinned = [] if one.reservation else ["taskset", "-c", str(cpu)]
                words = [*pinned, "sh", "-c", "while :; do :; done"]
                spinners.append(subprocess.Popen([*host.enter(), *words]))
        yield lab
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
        await LABS.remove(name)


@contextlib.contextmanager
def disturbed(name: str, setting: Setting) -> Iterator[None]:
    """The setting's periodic task runs, or its host's programs are stopped and continued."""
    jobs: list[list[object]] = []
    if (task := setting.task) is not None:
        values = (task.period_ms, task.work_ms, task.jitter)
        jobs += [["task", task.policy, cpu, *values, 1 + cpu] for cpu in task.cpus]
    if (stops := setting.stops) is not None:
        group = cgroups.host(name, "a")
        folders = [tree for tree in group.folders if (tree / "freezer.state").exists()]
        folders = folders or list(group.folders[-1:])
        jobs.append(["stops", stops.method, stops.period_ms, stops.share, stops.jitter, 1])
        jobs[-1] += folders
    program = [sys.executable, str(Path(__file__).with_name("scheduler_disturbers.py"))]
    started = [
        subprocess.Popen([*program, *map(str, job)], stdout=subprocess.PIPE, text=True)
        for job in jobs
    ]
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        yield
        if ended := [one.args for one in started if one.poll() is not None]:
            raise RuntimeError(f"{ended} ended by itself")
    finally:
        for one in started:
            one.terminate()
            with one:  # waits, and closes the pipe
                pass


def params_of(setting: Setting, duration_s: float | None = None) -> list[dict[str, Any]]:
    """The looks of the built-in plan, on as many CPUs as the setting has."""
    plan = scheduler_plan.scheduler(duration_s=duration_s)
    looks = [dict(entry.params) for entry in plan.benchmarks]
    if setting.cpus == 1:
        # As on a machine with one CPU: a loop on every CPU is one loop again.
        looks = [{**one, "cpus_max": 1} for one in looks]
    return looks


async def measured(
    name: str, network: str, setting: Setting, duration_s: float | None = None
) -> list[dict[str, Any]]:
    """The raw trials of a setting: params, beside, notes, samples; RuntimeError when one fails."""
    async with lab_of(name, network, setting):
        target = LabTarget("a", name, "a")
        try:
            await target.open(TIMEOUT_S)
            found = []
            with disturbed(name, setting):
                for params in params_of(setting, duration_s):
                    trial = await target.run("cpu.gaps", params, TIMEOUT_S)
                    if trial.failure is not None or trial.done is None:
                        raise RuntimeError(f"{setting.text}: {trial.failure} {trial.stderr_tail}")
                    found.append(
                        {
                            "params": params,
                            "beside": dict(trial.done.counters),
                            "notes": list(trial.done.notes),
                            "samples": trial.samples,
                        }
                    )
            return found
        finally:
            await target.close()


def looks_of(trials: list[dict[str, Any]], cpus: int) -> list[ObservationWindow]:
    """The looks of raw trials."""
    return [
        window_of(
            "a", f"t{number}", one["params"], one["samples"], one["beside"], machine_cpus=cpus
        )
        for number, one in enumerate(trials)
    ]


def stolen(trials: list[dict[str, Any]]) -> float:
    """The largest steal ratio of any look; 0 where the machine does not tell."""
    return max(one["beside"].get("steal_ratio") or 0.0 for one in trials)


def favoured(name: str) -> dict[int, int]:
    """CPU ticks of each program with a raised priority, and of each in another lab."""
    ticks: dict[int, int] = {}
    mine = {os.getpid(), *cgroups.processes(name)}
    others = {pid for lab in cgroups.labs() if lab != name for pid in cgroups.processes(lab)}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or (pid := int(entry.name)) in mine:
            continue
        with contextlib.suppress(OSError):
            stat = Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()
            parent, nice = int(stat[1]), int(stat[16])
            if pid in others or (nice < 0 and parent not in (2, os.getpid())):
                ticks[pid] = int(stat[11]) + int(stat[12])
    return ticks


def measure(
    name: str, network: str, setting: Setting, duration_s: float | None = None
) -> list[dict[str, Any]]:
    """As `measured`, again while the machine below takes too much, and the last time anyway.

    Every attempt is printed. What is measured each time is the whole setting, lab and all. Programs
    that go before ordinary ones, and those of other labs, take too much as well.
    """
    for number, pause_s in enumerate((0, *PAUSES_S[: ATTEMPTS - 1]), start=1):
        time.sleep(pause_s)
        # The lab leaves the machine's other work a 257th of a CPU: who starts the looks must not
        # wait for that.
        before = favoured(name)
        began = time.monotonic()
        with real_time():
            trials = asyncio.run(measured(name, network, setting, duration_s))
        steal = stolen(trials)
        grown = [count - before.get(pid, 0) for pid, count in favoured(name).items()]
        used = sum(grown) * TICK_S / (time.monotonic() - began)
        text = f"steal {steal:.1%}, favoured programs {used:.1%}"
        print(f"  {setting.text}: attempt {number}, {text}", flush=True)  # noqa: T201
        if steal <= MOST_STEAL and used <= MOST_FAVOURED:
            break
    return trials
