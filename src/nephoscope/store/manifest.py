"""A run's manifest.json: written with its own digest, read into values of known types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nephoscope.core.errors import LaterFormat, StoreError
from nephoscope.core.format_versions import RUN
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

_HINT = "Its trial files can be read by any Parquet reader; or remove the run's folder."


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Writes a run's manifest.json, durably, with the digest of its own content."""
    write_atomically(path / "manifest.json", digests.with_own_digest(manifest))


def read_manifest(path: Path) -> dict[str, Any]:
    """Returns the checked values. Raises StoreError for a missing, damaged or newer manifest."""
    from nephoscope.core.reading import jsontext

    with translating_os_errors(path, "read"):
        try:
            raw = path.read_bytes()
            manifest = jsontext.parse(raw)
        except FileNotFoundError as error:
            raise StoreError(f"{path} is missing.", _HINT) from error
        except ValueError as error:
            raise StoreError(f"{path} is damaged: it is no JSON.", _HINT) from error
    if not digests.has_own_digest(raw):
        raise StoreError(f"{path} is damaged: its content is not what was stored.", _HINT)
    version = manifest.get("version") if isinstance(manifest, dict) else None
    # First, because the keys of another version may differ.
    if isinstance(version, int) and not RUN.is_readable(version):
        raise LaterFormat(*RUN.refusal(path, version, str(manifest.get("nephoscope") or "")))
    if not isinstance(manifest, dict) or not manifest.keys() >= _NEEDED.keys():
        raise StoreError(f"{path} is no manifest of a run.", _HINT)
    for key, is_valid in {**_NEEDED, **_OPTIONAL}.items():
        if key in manifest and not is_valid(manifest[key]):
            raise StoreError(f"{path} is damaged: its '{key}' cannot be read.", _HINT)
    if not _entries_exist(manifest["settings"], manifest["plan"].get("benchmarks")):
        raise StoreError(f"{path} is damaged: its 'settings' are not of its plan.", _HINT)
    manifest.pop(digests.KEY, None)
    return manifest


def _entries_exist(settings: Sequence[Mapping[str, Any]], benchmarks: Any) -> bool:
    """States whether each setting is of an entry of the plan (a nested design boots of none)."""
    count = len(benchmarks) if isinstance(benchmarks, list) else 0
    entries = [setting.get("entry", 0) for setting in settings]
    return all(isinstance(one, int) and 0 <= one < max(count, 1) for one in entries)


def is_number(value: Any) -> bool:
    """States whether a value is a number (JSON has no other than finite ones)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def is_moment(value: Any) -> bool:
    """States whether a value is a time in seconds that a calendar has."""
    return is_number(value) and 0 <= value < YEAR_10000_S


def _maybe(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_valid(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _list_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_valid, value))


def _is_target(value: Any) -> bool:
    return has_types(value, {"name": str, "kind": str})


def _is_setting(value: Any) -> bool:
    types = {"benchmark": str, "params": dict, "factors": dict, "index": int}
    return has_types(value, types) and _list_of(_is_text)(value.get("headline") or [])


def _is_spec(value: Any) -> bool:
    metric = {"id": str, "unit": str, "headline": bool, "doc": str}
    return has_types(value, {"id": str, "summary": str, "metrics": list}) and all(
        has_types(one, metric) for one in value["metrics"]
    )


def has_types(value: Any, types: Mapping[str, type]) -> bool:
    """States whether a value is a mapping that has these keys with values of these types."""
    # Nothing but maps: it is called for each trial of a run.
    return _is_mapping(value) and all(map(isinstance, map(value.get, types), types.values()))


_NEEDED: Mapping[str, Callable[[Any], bool]] = {
    "version": lambda value: isinstance(value, int),
    "id": _is_text,
    "state": lambda value: value in STATES,
    "plan": _is_mapping,
    "plan_hash": _is_text,
    "seed": _maybe(lambda value: isinstance(value, int)),
    "settings": _list_of(_is_setting),
    "specs": _list_of(_is_spec),
    "targets": _list_of(_is_target),
}
_MERGED: Mapping[str, type] = {
    "trials": int,
    "warmup": int,
    "journal_bytes": int,
    "records_sha256": str,
    "samples_sha256": str,
}
_OPTIONAL: Mapping[str, Callable[[Any], bool]] = {
    "created_at": is_moment,
    "started_at": _maybe(is_moment),
    "finished_at": _maybe(is_moment),
    "plan_name": _is_text,
    "question": _is_text,
    "confidence": lambda value: is_number(value) and 0 < value < 1,
    "margin": lambda value: is_number(value) and 0 < value <= 1,
    "budget_s": _maybe(is_number),
    "spent_s": _maybe(is_number),
    "fingerprints": lambda value: _is_mapping(value) and all(map(_is_mapping, value.values())),
    "outcomes": _list_of(_is_mapping),
    "journal": lambda value: (
        has_types(value, {"bytes": int, "sha256": str}) and value["bytes"] >= 0
    ),
    "merged_trials": lambda value: has_types(value, _MERGED),
    "labels": lambda value: _is_mapping(value) and all(map(_is_text, value.values())),
    "refused": _list_of(_is_text),
    "lost": lambda value: _is_mapping(value) and all(map(_is_text, value.values())),
    "nephoscope": _maybe(_is_text),
    "probe": _maybe(_is_text),
}
