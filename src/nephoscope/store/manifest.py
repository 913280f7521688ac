"""A run's manifest.json: written with its own digest, read into values of known types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final

from nephoscope.core import limits
from nephoscope.core.errors import LaterFormat, StoreError
from nephoscope.core.format_versions import RUN
from nephoscope.core.model import RECORDED
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store import digests
from nephoscope.store.files import translating_os_errors, write_atomically

RUNNING: Final = "running"
MEASURED: Final = "measured"
FINISHED: Final = "finished"
FAILED: Final = "failed"
STATES = (RUNNING, MEASURED, FINISHED, FAILED)
"""running: trials are missing. measured: all trials are there. finished: reported as well.
failed: nothing could be measured; the same command begins a new run."""

MERGED_SINCE = 2
"""Version from which on the trials of a run that ended are merged; see merged_trials.py."""
YEAR_10000_S = 253_402_300_800
"""Seconds from 1970; no calendar of the standard library goes further."""

_IsValid = Callable[[Any], bool]
_HINT = "Its trial files can be read by any Parquet reader; or remove the run's folder."


def is_number(value: Any) -> bool:
    """States whether a value is a number (JSON has no other than finite ones)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def is_moment(value: Any) -> bool:
    """States whether a value is a time in seconds that a calendar has."""
    return is_number(value) and 0 <= value < YEAR_10000_S


def _maybe(is_valid: _IsValid) -> _IsValid:
    return lambda value: value is None or is_valid(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _list_of(is_valid: _IsValid) -> _IsValid:
    return lambda value: isinstance(value, list) and all(map(is_valid, value))


def _mapping_of(is_valid: _IsValid) -> _IsValid:
    return lambda value: _is_mapping(value) and all(map(is_valid, value.values()))


def _is_target(value: Any) -> bool:
    return has_types(value, {"name": str, "kind": str})


def _is_setting(value: Any) -> bool:
    types = {"benchmark": str, "params": dict, "factors": dict, "index": int}
    return has_types(value, types) and _list_of(_is_text)(value.get("headline") or [])


def _is_spec(value: Any) -> bool:
    metric = {"id": str, "unit": str, "headline": bool, "doc": str}
    return has_types(value, {"id": str, "summary": str, "metrics": list}) and all(
        has_types(name, metric) for name in value["metrics"]
    )


def _is_extent(value: Any) -> bool:
    return has_types(value, {"bytes": int, "sha256": str}) and value["bytes"] >= 0


def _is_origin(value: Any) -> bool:
    return has_types(value, {"store": str, "sha256": str})


def has_types(value: Any, types: Mapping[str, type]) -> bool:
    """States whether a value is a mapping that has these keys with values of these types."""
    # Nothing but maps: it is called for each trial of a run.
    return _is_mapping(value) and all(map(isinstance, map(value.get, types), types.values()))


_MERGED: Mapping[str, type] = {
    "trials": int,
    "warmup": int,
    "journal_bytes": int,
    "records_sha256": str,
    "samples_sha256": str,
}


def _key(is_valid: _IsValid, **default: Any) -> Any:
    """A field of a manifest: what its value has to be, and the default of one that is missing."""
    return field(metadata={"is_valid": is_valid}, **default)


@dataclass(frozen=True, slots=True)
class RunManifest:
    """What is known of a run as a whole; one field for each key of its manifest.json.

    plan, settings, specs, targets: as values of JSON, converted by whoever needs them, because a
    store of thousands of runs is listed without. created_at, started_at, finished_at: seconds since
    the epoch. budget_s, spent_s: seconds of measuring. lost: target -> why it was given up.
    controller: load of the process that ended the run, `ControllerLoad.summary`.
    journal: bytes and digest when the run ended. lab_made: name of the lab that this run made and
    has not removed. merged_from: the stores from which the run was copied, oldest first, each with
    the digest of what was measured. rented: target -> the machine that was rented for it, as its
    cloud names it, with what the cloud shows of its host. imported: how files of another tool were
    read. stored: all keys as the file has them, also those of features and of later versions, which
    stay when the file is rewritten.
    """

    version: int = _key(_is_int)
    id: str = _key(_is_text)
    state: str = _key(lambda value: value in STATES)
    plan: Mapping[str, Any] = _key(_is_mapping)
    plan_hash: str = _key(_is_text)
    settings: Sequence[Mapping[str, Any]] = _key(_list_of(_is_setting))
    specs: Sequence[Mapping[str, Any]] = _key(_list_of(_is_spec))
    targets: Sequence[Mapping[str, Any]] = _key(_list_of(_is_target))
    seed: int | None = _key(_maybe(_is_int), default=None)
    plan_name: str | None = _key(_is_text, default=None)
    question: str | None = _key(_maybe(_is_text), default=None)
    nephoscope: str | None = _key(_maybe(_is_text), default=None)
    probe: str | None = _key(_maybe(_is_text), default=None)
    protocol: int | None = _key(_maybe(_is_int), default=None)
    created_at: float = _key(is_moment, default=0.0)
    started_at: float | None = _key(_maybe(is_moment), default=None)
    finished_at: float | None = _key(_maybe(is_moment), default=None)
    confidence: float | None = _key(lambda value: is_number(value) and 0 < value < 1, default=None)
    margin: float | None = _key(lambda value: is_number(value) and 0 < value <= 1, default=None)
    budget_s: float | None = _key(_maybe(is_number), default=None)
    spent_s: float | None = _key(_maybe(is_number), default=None)
    controller: Mapping[str, float] = _key(_mapping_of(is_number), default_factory=dict)
    fingerprints: Mapping[str, Mapping[str, Any]] = _key(
        _mapping_of(_is_mapping), default_factory=dict
    )
    outcomes: Sequence[Mapping[str, Any]] = _key(_list_of(_is_mapping), default=())
    refused: Sequence[str] = _key(_list_of(_is_text), default=())
    lost: Mapping[str, str] = _key(_mapping_of(_is_text), default_factory=dict)
    labels: Mapping[str, str] = _key(_mapping_of(_is_text), default_factory=dict)
    journal: Mapping[str, Any] | None = _key(_is_extent, default=None)
    merged_trials: Mapping[str, Any] | None = _key(
        lambda value: has_types(value, _MERGED), default=None
    )
    lab_made: str = _key(_is_text, default="")
    rented: Mapping[str, Mapping[str, Any]] = _key(_mapping_of(_is_mapping), default_factory=dict)
    imported: Mapping[str, Any] | None = _key(_is_mapping, default=None)
    merged_from: Sequence[Mapping[str, Any]] = _key(_list_of(_is_origin), default=())
    stored: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> RunManifest:
        """Returns the record of a manifest's values; a key that is missing or null has the
        default."""
        known = {name: stored[name] for name in _VALID if stored.get(name) is not None}
        return cls(**known, stored=stored)

    def changed(self, changes: Mapping[str, Any]) -> RunManifest:
        """Returns the record with these keys changed or added; all others stay as stored."""
        return self.of({**self.stored, **changes})

    @property
    def target_names(self) -> tuple[str, ...]:
        """Returns the names of the targets, in the plan's order."""
        return tuple(str(target["name"]) for target in self.targets)

    @property
    def recorded_targets(self) -> tuple[str, ...]:
        """Returns the names of the targets that answered from a recording: what they state is no
        new measurement."""
        return tuple(str(target["name"]) for target in self.targets if target["kind"] == RECORDED)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Returns the benchmarks of the settings, each once, in the plan's order."""
        return tuple(dict.fromkeys(str(setting["benchmark"]) for setting in self.settings))


_VALID: Mapping[str, _IsValid] = {
    attribute.name: attribute.metadata["is_valid"]
    for attribute in fields(RunManifest)
    if attribute.name != "stored"
}
_NEEDED = (*_VALID,)[: [*_VALID].index("seed") + 1]
"""Keys without which a file is no manifest; a run of another tool may have a null as its seed."""


def write_manifest(path: Path, manifest: RunManifest) -> None:
    """Writes a run's manifest.json, durably, with the digest of its own content."""
    write_atomically(path / "manifest.json", digests.with_own_digest(manifest.stored))


def read_manifest(path: Path) -> RunManifest:
    """Returns the checked record. Raises StoreError for a missing, damaged or newer manifest."""
    from nephoscope.core.reading import jsontext

    with translating_os_errors(path, "read"):
        try:
            raw = regular.read_regular(path, limits.MANIFEST_BYTES)
            values = jsontext.parse(raw)
        except FileNotFoundError as error:
            raise StoreError(f"{path} is missing.", _HINT) from error
        except ValueError as error:
            raise StoreError(f"{path} is damaged: it is no JSON.", _HINT) from error
    if not digests.has_own_digest(raw):
        raise StoreError(f"{path} is damaged: its content is not what was stored.", _HINT)
    _check(path, values)
    values.pop(digests.KEY, None)
    return RunManifest.of(values)


def _check(path: Path, values: Any) -> None:
    """Raises StoreError for values of a later version and for those that are no manifest."""
    version = values.get("version") if isinstance(values, dict) else None
    # First, because the keys of another version may differ.
    if isinstance(version, int) and not RUN.is_readable(version):
        raise LaterFormat(*RUN.refusal(path, version, str(values.get("nephoscope") or "")))
    if not isinstance(values, dict) or not values.keys() >= set(_NEEDED):
        raise StoreError(f"{path} is no manifest of a run.", _HINT)
    for key, is_valid in _VALID.items():
        if key in values and not is_valid(values[key]):
            raise StoreError(f"{path} is damaged: its '{key}' cannot be read.", _HINT)
    if not _entries_exist(values["settings"], values["plan"].get("benchmarks")):
        raise StoreError(f"{path} is damaged: its 'settings' are not of its plan.", _HINT)


def _entries_exist(settings: Sequence[Mapping[str, Any]], benchmarks: Any) -> bool:
    """States whether each setting is of an entry of the plan (a nested design boots of none)."""
    count = len(benchmarks) if isinstance(benchmarks, list) else 0
    entries = [setting.get("entry", 0) for setting in settings]
    return all(isinstance(entry, int) and 0 <= entry < max(count, 1) for entry in entries)
