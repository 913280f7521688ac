"""Sets a drawn setting in a lab and looks at its host as `nephoscope scheduler` does."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator
from typing import Any

from scheduler_settings import Setting
from tests.attempts import PAUSES_S
from trials import real_time

from nephoscope.lab import files
from nephoscope.lab.handle import Lab
from nephoscope.lab.limits import cgroups
from nephoscope.lab.provisioner import LABS
from nephoscope.scheduler import plan as scheduler_plan
from nephoscope.scheduler.inference import Look
from nephoscope.scheduler.observations import look_of
from nephoscope.targets.lab import LabTarget

TIMEOUT_S = 60.0
ATTEMPTS = 4
MOST_STEAL = 0.03
"""What the machine under this one may take meanwhile: beyond it, two schedulers were measured."""


def topology(name: str, network: str, setting: Setting) -> Any:
    """The host `a` with the setting, and a host for each competitor."""
    hosts: dict[str, Any] = {"a": {"cpu": setting.cpu}}
    for number, one in enumerate(setting.competitors):
        hosts[f"c{number}"] = {"cpu": {"weight": one.weight, "cpus": list(one.cpus)}}
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
                words = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
                spinners.append(subprocess.Popen([*host.enter(), *words]))
        yield lab
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
        await LABS.remove(name)


def params_of(setting: Setting) -> list[dict[str, Any]]:
    """The looks of the built-in plan, on as many CPUs as the setting has."""
    looks = [dict(entry.params) for entry in scheduler_plan.scheduler().benchmarks]
    if setting.cpus == 1:
        looks = [one for one in looks if one.get("cpus_max") == 1]
    return looks


async def measured(name: str, network: str, setting: Setting) -> list[dict[str, Any]]:
    """The raw trials of a setting: params, beside, notes, samples; RuntimeError when one fails."""
    async with lab_of(name, network, setting):
        target = LabTarget("a", name, "a")
        try:
            await target.open(TIMEOUT_S)
            found = []
            for params in params_of(setting):
                trial = await target.run("cpu.gaps", params, TIMEOUT_S)
                if trial.failure is not None or trial.done is None:
                    raise RuntimeError(f"{setting.text}: {trial.failure} {trial.stderr_tail}")
                found.append(
                    {
                        "params": params,
                        "beside": dict(trial.done.beside),
                        "notes": list(trial.done.notes),
                        "samples": trial.samples,
                    }
                )
            return found
        finally:
            await target.close()


def looks_of(trials: list[dict[str, Any]], cpus: int) -> list[Look]:
    """The looks of raw trials."""
    return [
        look_of(
            "a",
            f"t{number}",
            one["params"],
            one["samples"],
            one["beside"],
            machine_cpus=cpus,
            notes=one["notes"],
        )
        for number, one in enumerate(trials)
    ]


def stolen(trials: list[dict[str, Any]]) -> float:
    """The largest steal ratio of any look; 0 where the machine does not tell."""
    return max(one["beside"].get("steal_ratio") or 0.0 for one in trials)


def measure(name: str, network: str, setting: Setting) -> list[dict[str, Any]]:
    """As `measured`, again while the machine below takes too much, and the last time anyway.

    Every attempt is printed. What is measured each time is the whole setting, lab and all.
    """
    for number, pause_s in enumerate((0, *PAUSES_S[: ATTEMPTS - 1]), start=1):
        time.sleep(pause_s)
        # The lab leaves the machine's other work a 257th of a CPU: who starts the looks must not
        # wait for that.
        with real_time():
            trials = asyncio.run(measured(name, network, setting))
        steal = stolen(trials)
        print(f"  {setting.text}: attempt {number}, steal {steal:.1%}", flush=True)  # noqa: T201
        if steal <= MOST_STEAL:
            break
    return trials
