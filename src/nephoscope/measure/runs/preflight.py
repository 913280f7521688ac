"""What is looked at before the first trial, so that nothing is measured in vain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from nephoscope.catalog import ADAPTER, Catalog
from nephoscope.core import units
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Setting
from nephoscope.store.files import translating_os_errors

STORE_NEEDS_BYTES = 32 << 20
"""A long survey's trials take about 2 MB, its report under 3 MB; the rest is room for others."""

HEADROOM_RATIO = 0.05
"""A disk that a benchmark fills to the brim is slow, and stops other programs."""


def check(
    store: Path, settings: Sequence[Setting], catalog: Catalog, *, here: bool = True
) -> list[str]:
    """Sentences that a person should read before the run; the run may go on all the same.

    here: whether anything is measured on this machine.
    Raises StoreError when the store has no room, which would lose what is measured.
    """
    with translating_os_errors(store, "read"):
        free = shutil.disk_usage(store).free
    if free < STORE_NEEDS_BYTES:
        raise StoreError(
            f"{store} has {units.format_value(free, 'bytes')} of free space; a run needs "
            f"{units.format_value(STORE_NEEDS_BYTES, 'bytes')}.",
            "Free some space there, or name another directory with --store.",
        )
    return [*_disk_room(settings, catalog), *_load()] if here else []


def tools(settings: Sequence[Setting], catalog: Catalog) -> dict[str, set[str]]:
    """Target -> the adapters that will run there, as benchmarks, loads or hooks."""
    needed: dict[str, set[str]] = {}
    for setting in settings:
        for benchmark, _, targets in setting.executions():
            if catalog.benchmark(benchmark).kind == ADAPTER:
                for target in targets:
                    needed.setdefault(target, set()).add(benchmark)
    return needed


def servers(settings: Sequence[Setting], catalog: Catalog) -> dict[str, set[str]]:
    """Target -> the adapters whose servers will run there."""
    adapters: dict[str, set[str]] = {}
    for setting in settings:
        for benchmark, serving in setting.servers():
            if catalog.benchmark(benchmark).kind == ADAPTER:
                for target in serving:
                    adapters.setdefault(target, set()).add(benchmark)
    return adapters


def _disk_room(settings: Sequence[Setting], catalog: Catalog) -> list[str]:
    """Scratch files that would not fit; the benchmark refuses by itself, here it is said early."""
    shortages = set()
    for setting in settings:
        known = {param.id: param.default for param in catalog.benchmark(setting.benchmark).params}
        if not {"file_bytes", "directory"} <= set(known):
            continue
        values = {**known, **setting.params}
        # Where the probe puts a scratch file when the plan does not say.
        directory = Path(values["directory"] or os.environ.get("TMPDIR") or "/var/tmp")
        try:
            usage = shutil.disk_usage(directory)
        except OSError:
            continue
        if values["file_bytes"] > usage.free - HEADROOM_RATIO * usage.total:
            shortages.add(
                f"{directory} has {units.format_value(usage.free, 'bytes')} of free space, little "
                f"for the {units.format_value(values['file_bytes'], 'bytes')} file of "
                f"{setting.benchmark}."
            )
    return sorted(shortages)


def _load() -> list[str]:
    """Other work on this machine, which the trials will share it with."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        return []
    cpus = len(os.sched_getaffinity(0))
    # Half of the CPUs busy: then a benchmark on all CPUs surely shares one.
    if load <= cpus / 2:
        return []
    return [
        f"This machine is busy (load {load:.1f} on {cpus} CPUs): results will be lower and more "
        "scattered."
    ]
