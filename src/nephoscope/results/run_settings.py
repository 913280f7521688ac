"""Settings of stored measurements, and those that differ among records that are merged.

A comparison, a ranking or a history merges records of several runs and targets. Whatever differs
between them beside what was asked for is a cause that nobody sees: it is named, with its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nephoscope.catalog.adapters.frame import TOOL
from nephoscope.core.model import TrialRecord
from nephoscope.core.naming import clean, level_name
from nephoscope.core.reading.printable import printable
from nephoscope.core.records import dataclass
from nephoscope.stats import facts
from nephoscope.store import RunManifest, StoredRun

CPU_MODEL = "CPU model"
MICROCODE, HYPERVISOR, INSTANCE_TYPE, ZONE = "microcode", "hypervisor", "instance type", "zone"
FACTS: Mapping[str, str] = {
    "cpu.by_cpuid.brand": CPU_MODEL,
    "cpu.microcode": MICROCODE,
    "kernel.release": "kernel",
    "hypervisor.name": HYPERVISOR,
    "cloud.instance_type": INSTANCE_TYPE,
    "cloud.zone": ZONE,
    "limits.cpu_quota_cpus": "CPU quota",
    "clock.source": "clock source",
}
"""Facts of a fingerprint that are settings, with their names."""
OF_MACHINE = frozenset({CPU_MODEL, MICROCODE, HYPERVISOR, INSTANCE_TYPE, ZONE})
"""Settings that are not hidden where machines are what is compared."""
VERSIONS: Mapping[str, str] = {"nephoscope": "nephoscope", "probe": "nephoscope-probe"}
"""Keys of a manifest that are versions, with their names."""
TARGET_KIND = "target kind"
UNKNOWN = "unknown"
_OF_EVERY_RECORD = frozenset({*FACTS.values(), *VERSIONS.values(), TARGET_KIND})
"""Settings that every record has, so that one without a value is unknown."""

MAX_VALUES = 3
"""Values of one setting that are named."""
MAX_SETTINGS = 8
"""Settings that a sentence names."""


@dataclass(frozen=True, slots=True)
class HiddenSetting:
    """A setting that differs among merged records and that nobody asked to compare.

    values: at most MAX_VALUES of them, 'unknown' where a record hides it; count: of all values.
    """

    name: str
    values: tuple[str, ...]
    count: int


def versions_of(manifest: RunManifest, target: str) -> dict[str, str]:
    """Returns versions and the kind of a target, as far as they are known."""
    values = {title: getattr(manifest, key) for key, title in VERSIONS.items()}
    kinds = (str(each["kind"]) for each in manifest.targets if each["name"] == target)
    values[TARGET_KIND] = next(kinds, None)
    return {title: value for title, value in values.items() if value}


def settings_of(
    manifest: RunManifest, target: str, document: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Returns the settings of all that was measured on a target, as far as they are known.

    document: its fingerprint, instead of the manifest's.
    """
    known = manifest.fingerprints.get(target) if document is None else document
    return facts_of(known) | versions_of(manifest, target)


def facts_of(document: Any) -> dict[str, str]:
    """Returns the settings that a fingerprint shows."""
    values = {title: facts.fact(document, name) for name, title in FACTS.items()}
    return {
        title: " ".join(str(value).split())
        for title, value in values.items()
        if value not in (None, "")
    }


def parameters_of(
    run: StoredRun, target: str, set_apart: Mapping[str, Collection[str]] | None = None
) -> dict[str, str]:
    """Returns the versions of tools and the parameters of benchmarks, with all values of each.

    Factors of the run are no parameters, but for those of `set_apart`, by benchmark.
    """
    values: dict[str, dict[str, None]] = {}
    for record in run.records():
        if record.key.target != target:
            continue
        own = (set_apart or {}).get(record.benchmark, ())
        for name, value in (*_tool_version(record), *record.params.items()):
            if name not in record.factors or name in own:
                level = printable(level_name(value))
                values.setdefault(f"{record.benchmark} {name}", {})[level] = None
    return {
        name: ", ".join([*list(texts)[:MAX_VALUES], *["…"] * (len(texts) > MAX_VALUES)])
        for name, texts in values.items()
    }


def _tool_version(record: TrialRecord) -> Iterable[tuple[str, Any]]:
    tool = record.documents.get(TOOL.id)
    version = tool.get("version") if isinstance(tool, Mapping) else None
    return [("tool version", version)] if version else []


def hidden_settings(
    records: Iterable[Mapping[str, str]], compared: Collection[str] = ()
) -> tuple[HiddenSetting, ...]:
    """Returns the settings that differ among records, without those that are compared.

    A record without any setting, such as one of a file, says nothing.
    """
    every = [record for record in records if record]
    names = dict.fromkeys(name for record in every for name in record if name not in compared)
    differing = []
    for name in names:
        having = [record for record in every if name in record or name in _OF_EVERY_RECORD]
        values = tuple(dict.fromkeys(record.get(name, UNKNOWN) for record in having))
        if len(values) > 1:
            differing.append(HiddenSetting(name, values[:MAX_VALUES], len(values)))
    return tuple(differing)


def warnings_of(settings: Sequence[HiddenSetting]) -> list[str]:
    """Returns the sentence that names hidden settings; nothing without any."""
    if not settings:
        return []
    names = [
        f"{setting.name} ({_listed('; ', setting.values, setting.count)})" for setting in settings
    ]
    listed = _listed(", ", names[:MAX_SETTINGS], len(names))
    return [clean(f"The merged records differ in: {listed}.")]


def _listed(between: str, texts: Sequence[str], count: int) -> str:
    """Joins texts, and how many more there are."""
    more = count - len(texts)
    return between.join([*texts, *([f"and {more} more"] if more else [])])
