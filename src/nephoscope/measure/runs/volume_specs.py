"""The volumes of a plan's rented machines, checked before anything is rented."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.catalog import VOLUME_RESTORE
from nephoscope.core import units
from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting
from nephoscope.measure.cloud.spec import VolumeSpec
from nephoscope.measure.plans import Plan
from nephoscope.measure.targets.kinds.rented import RentedRecord


def volume_specs(plan: Plan, target: RentedRecord) -> tuple[VolumeSpec, ...]:
    """Returns the volumes of a target; those to whose pattern `volume.restore` works are copied."""
    copied: set[str] = set()
    for entry in plan.benchmarks:
        if entry.benchmark == VOLUME_RESTORE:
            levels = entry.factors.get("directory", [entry.params.get("directory", "")])
            copied |= {str(level) for level in levels}
    is_only = len(target.volumes) == 1 and "" in copied
    return tuple(
        VolumeSpec(
            volume.size,
            volume.directory,
            volume.type,
            volume.per_gib_hour,
            is_copied=is_only or volume.directory in copied,
        )
        for volume in target.volumes
    )


def check(plan: Plan, settings: Sequence[Setting]) -> None:
    """Raises PlanError where `volume.restore` names a volume that its target does not get."""
    targets = {target.name: target for target in plan.targets}
    for setting in settings:
        if setting.benchmark == VOLUME_RESTORE:
            for name in setting.targets:
                target = targets[name]
                if not isinstance(target, RentedRecord):
                    raise PlanError(
                        f"{VOLUME_RESTORE} copies a volume of a rented machine, and '{name}' is of "
                        f"kind {target.kind}.",
                        "Give it a target of kind rented with `volumes`.",
                    )
                specs = volume_specs(plan, target)
                spec = the_volume(specs, str(setting.params.get("directory", "")), name)
                data_bytes = int(setting.params.get("data_bytes", 0))
                if data_bytes > spec.size_bytes:
                    data, size = (units.written(n, "bytes") for n in (data_bytes, spec.size_bytes))
                    raise PlanError(
                        f"{VOLUME_RESTORE} of '{name}': {data} do not fit on a volume of {size}.",
                        "Lower `data_bytes`, or make the volume larger.",
                    )


def the_volume(specs: Sequence[VolumeSpec], directory: str, target: str) -> VolumeSpec:
    """Returns the volume of a directory; the only one where none is named. Raises PlanError."""
    named = [spec for spec in specs if directory in ("", spec.directory)]
    if len(named) == 1:
        return named[0]
    places = ", ".join(spec.directory for spec in specs)
    raise PlanError(
        f"{VOLUME_RESTORE}: '{target}' has no volume at '{directory}'."
        if directory or not specs
        else f"{VOLUME_RESTORE}: '{target}' has {len(specs)} volumes.",
        f"Write `directory:` with one of {places}." if specs else "Give the target `volumes`.",
    )
