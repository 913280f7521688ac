"""One finished trial as one Parquet file: its samples as rows, its record in the metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.model import (
    AUXILIARY_FACTORS,
    Better,
    Sample,
    TrialKey,
    TrialRecord,
    TrialStatus,
    factors_key,
)
from nephoscope.core.reading import jsontext, regular
from nephoscope.store import parquet_bounds
from nephoscope.store.batch import Batch
from nephoscope.store.digests import digest_of
from nephoscope.store.files import translating_os_errors
from nephoscope.store.manifest import has_types, is_moment

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("trial", pa.string()),
        ("round", pa.int64()),
        ("target", pa.string()),
        ("benchmark", pa.string()),
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("better", pa.string()),
        ("value", pa.float64()),
        ("count", pa.int64()),
        ("at_ns", pa.int64()),
        ("factors", pa.string()),
    ]
)
"""Columns of a sample. `factors`: canonical JSON of the trial's and the sample's factors."""
TEXTS = [field.name for field in SCHEMA if field.type == pa.string()]

RECORD_KEY = b"nephoscope.trial"
DAMAGED = "file_damaged"
"""Failure name of a trial whose file cannot be read; a resumed run measures it again."""

_NAME = re.compile(r"([rw])(\d{4,})-s(\d{3,})(?:t(\d{3,}))?-(.+)")


def key_of(name: str) -> TrialKey | None:
    """The key of a trial's name (see TrialKey.name); None if it is no such name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[2])
    round_number = number if match[1] == "r" else -number
    return TrialKey(round_number, int(match[3]), match[5], int(match[4] or 0))


@dataclass(frozen=True, slots=True)
class AuxiliarySamples:
    """Samples that another benchmark took for a trial: of a load that ran beside it, of a hook.

    factors: what tells its rows from the trial's own, besides the trial's factors:
    {"load": name} or {"hook": "before"}.
    """

    spec: BenchmarkSpec
    target: str
    factors: Mapping[str, Any]
    samples: Sequence[Sample]


MeasuredTrial = tuple[TrialRecord, Sequence[Sample], BenchmarkSpec, Sequence[AuxiliarySamples]]


def is_auxiliary(factors: str) -> bool:
    """States whether a row with these factors (canonical text) is of a load or a hook."""
    is_likely = any(f'"{name}":' in factors for name in AUXILIARY_FACTORS)
    return is_likely and not AUXILIARY_FACTORS.isdisjoint(json.loads(factors))


def encode(
    run: str,
    record: TrialRecord,
    samples: Sequence[Sample],
    spec: BenchmarkSpec,
    loads_and_hooks: Sequence[AuxiliarySamples] = (),
) -> bytes:
    """The content of the trial's file. UnknownName for a metric that a spec has not."""
    metadata = {RECORD_KEY: json.dumps(record_values(record), allow_nan=False).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(
        together(run, [(record, samples, spec, loads_and_hooks)]).table.replace_schema_metadata(
            metadata
        ),
        sink,
        compression="zstd",
        write_page_checksum=True,
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def record_values(record: TrialRecord) -> dict[str, Any]:
    """Returns what `record_from_json` reads."""
    # Not asdict of the whole: it copies every counter deeply, which takes longer than the rest.
    fields = {key: getattr(record, name) for key, name in _RECORD_KEYS}
    fields["key"] = {key: getattr(record.key, name) for key, name in _KEY_KEYS}
    return fields


def together(run: str, trials: Iterable[MeasuredTrial]) -> Batch:
    """Returns trials with their rows. UnknownName for a metric that a spec has not."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    sizes = []
    for record, samples, spec, loads_and_hooks in trials:
        before = len(columns["run"])
        for block in (AuxiliarySamples(spec, record.key.target, {}, samples), *loads_and_hooks):
            for name, values in _columns(run, record, block).items():
                columns[name] += values
        sizes.append((record, len(columns["run"]) - before))
    return Batch(sizes, pa.table(columns, schema=SCHEMA))


def column_lists(table: pa.Table, names: Iterable[str]) -> list[list[Any]]:
    """Returns columns as lists, texts from their dictionaries where they have one."""
    return [_column_list(table[name]) for name in names]


def _column_list(column: pa.ChunkedArray) -> list[Any]:
    # Arrow makes lists value by value; through NumPy it takes a tenth of the time.
    if pa.types.is_dictionary(column.type):
        out: list[Any] = []
        for chunk in column.chunks:
            texts = chunk.dictionary.to_pylist()
            out += [texts[code] for code in chunk.indices.to_numpy().tolist()]
        return out
    if pa.types.is_string(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return column.to_numpy().tolist()  # type: ignore[no-any-return]


def _columns(run: str, record: TrialRecord, block: AuxiliarySamples) -> dict[str, list[Any]]:
    samples, spec = block.samples, block.spec
    names = [sample.metric for sample in samples]
    metrics = {name: spec.metric(name) for name in set(names)}
    units = {name: metric.unit for name, metric in metrics.items()}
    directions = {name: metric.better.value for name, metric in metrics.items()}
    n = len(samples)
    return {
        "run": [run] * n,
        "trial": [record.key.name] * n,
        "round": [record.key.round] * n,
        "target": [block.target] * n,
        "benchmark": [spec.id] * n,
        "metric": names,
        "unit": [units[name] for name in names],
        "better": [directions[name] for name in names],
        "value": [float(sample.value) for sample in samples],
        "count": [sample.count for sample in samples],
        "at_ns": [sample.at_ns for sample in samples],
        "factors": list(_factor_texts({**record.factors, **block.factors}, samples)),
    }


def _factor_texts(factors: Mapping[str, Any], samples: Sequence[Sample]) -> Iterable[str]:
    plain = factors_key(factors)
    for sample in samples:
        yield factors_key({**factors, **sample.factors}) if sample.factors else plain


def read(path: Path, digest: str = "") -> tuple[TrialRecord, pa.Table]:
    """The record and the samples of a trial's file.

    digest: of its content, where one is known. Raises StoreError naming the file when it is
    truncated, damaged (page checksums are verified) or was not written by us.
    """
    with translating_os_errors(path, "read"):
        content = regular.read_regular(path, limits.TRIAL_FILE_BYTES)
        if digest and digest_of(content) != digest:
            raise _damaged(path, ValueError("its content is not what was stored"))
        try:
            table = _table_in(content)
            metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
            record = record_from_json(jsontext.parse(metadata[RECORD_KEY]))
            if not digest:
                _check_rows(table, record)
        except (pa.ArrowException, LookupError, ValueError, TypeError, EOFError) as error:
            raise _damaged(path, error) from error
        except OSError as error:
            # Arrow tells of a broken page with a plain OSError that has no errno.
            if error.errno is None:
                raise _damaged(path, error) from error
            raise
    if table.schema.names != SCHEMA.names or record.key.name != path.stem:
        raise StoreError(f"{path} is no trial of this store.", "Move it out of the run's folder.")
    return record, table


def _table_in(content: bytes) -> pa.Table:
    """Returns the rows of a file, whose texts and numbers fit into memory. Raises ArrowInvalid."""
    # Not read_table: its import of pyarrow.dataset costs more than reading a small run.
    with pq.ParquetFile(
        pa.BufferReader(content), page_checksum_verification=True, read_dictionary=TEXTS
    ) as file:
        parquet_bounds.check(file, range(file.metadata.num_row_groups))
        return parquet_bounds.decoded(file.read(use_threads=False))


def _damaged(path: Path, error: Exception) -> StoreError:
    reason = str(error).splitlines()[0].rstrip(".")[:120] if str(error) else type(error).__name__
    return StoreError(
        f"{path} is damaged ({reason}).",
        "Its trial does not count; the same command measures it again while the run is unfinished.",
    )


def record_from_json(values: Any) -> TrialRecord:
    """A record as it stands in the metadata. KeyError, TypeError or ValueError if it is none.

    Keys that a newer program of the same format version added are ignored.
    """
    if not has_types(values, _RECORD_TYPES) or not is_moment(values["started_at"]):
        raise ValueError("the record of the trial cannot be read")
    if not all(isinstance(values[name], of) for name, of in _LATER_TYPES if name in values):
        raise ValueError("the record of the trial cannot be read")
    fields = {name: values[key] for key, name in _RECORD_KEYS if key in values}
    key = {_KEY_NAMES.get(key, key): value for key, value in fields["key"].items()}
    if not has_types({"repeat_index": 0, **key}, _KEY_TYPES):
        raise ValueError("the record has no key")
    fields["key"] = TrialKey(**key)
    fields["status"] = TrialStatus(fields["status"])
    texts = (("reasons", str), ("reason_codes", str), ("notes", str))
    for name, of in (*texts, ("loads", dict)):
        fields[name] = tuple(fields.get(name, ()))
        if not all(isinstance(field, of) for field in fields[name]):
            raise ValueError(f"the {name} of the record cannot be read")
    fields["timeline"] = {
        phase: (int(start), int(end)) for phase, (start, end) in fields.get("timeline", {}).items()
    }
    record = TrialRecord(**fields)
    numbers = (
        *(record.key.round, record.key.setting, record.key.repeat_index, record.position),
        *(record.elapsed_ns, record.attempt, record.skew_ns or 0, record.spent_s),
        *(moment for ends in record.timeline.values() for moment in ends),
    )
    # As other formats have them; True is an integer in Python.
    if bool in map(type, numbers) or not -_INT64 <= min(numbers) <= max(numbers) < _INT64:
        raise ValueError("a number of the record is none, or beyond 64 bits")
    return record


_STORED_AS = {"counters": "beside", "repeat_index": "turn"}
"""Name of a field of TrialRecord or TrialKey -> key under which files have it since version 1."""
_RECORD_KEYS = [(_STORED_AS.get(name, name), name) for name in TrialRecord.__slots__]
_KEY_KEYS = [(_STORED_AS.get(name, name), name) for name in TrialKey.__slots__]
_KEY_NAMES = dict(_KEY_KEYS)

_RECORD_TYPES: Mapping[str, type] = {
    "key": dict,
    "benchmark": str,
    "params": dict,
    "factors": dict,
    "status": str,
    "reasons": list,
    "position": int,
    "elapsed_ns": int,
    "beside": dict,
}
_LATER_TYPES: Sequence[tuple[str, type | UnionType]] = (
    ("documents", dict),
    ("failure_name", str),
    ("spent_s", int | float),
    ("timeline", dict),
    ("skew_ns", int | None),
    ("loads", list),
    ("arm", str),
    ("nest", dict),
    ("attempt", int),
    ("around", dict),
)
"""Of keys that records of earlier programs do not have."""
_INT64 = 1 << 63
_KEY_TYPES: Mapping[str, type] = {"round": int, "setting": int, "target": str, "repeat_index": int}


def _check_rows(table: pa.Table, record: TrialRecord) -> None:
    """Raises ValueError for samples that we would not have written; without digest, who knows."""
    if not table.schema.equals(SCHEMA, check_metadata=False):
        raise ValueError("its columns are not those of a trial")
    if any(table[name].null_count for name in SCHEMA.names):
        raise ValueError("a sample has an empty cell")
    if set(table["trial"].to_pylist()) - {record.key.name}:
        raise ValueError("a sample is of another trial")
    if not all(map(math.isfinite, table["value"].to_pylist())):
        raise ValueError("a value is not finite")
    for text in set(table["factors"].to_pylist()):
        if not isinstance(jsontext.parse(text), dict):
            raise ValueError("the factors of a sample cannot be read")
    for better in set(table["better"].to_pylist()):
        Better(better)


def damaged_record(
    path: Path, settings: Sequence[Mapping[str, Any]], reason: str
) -> TrialRecord | None:
    """What stands for a trial whose file cannot be read; None when its name says nothing."""
    key = key_of(path.stem)
    if key is None or key.setting >= len(settings):
        return None
    setting = settings[key.setting]
    return TrialRecord(
        key=key,
        benchmark=setting["benchmark"],
        params=setting["params"],
        factors=setting["factors"],
        status=TrialStatus.INVALID,
        reasons=(reason.rstrip("."),),
        position=-1,
        started_at=0.0,
        elapsed_ns=0,
        counters={},
        failure_name=DAMAGED,
    )
