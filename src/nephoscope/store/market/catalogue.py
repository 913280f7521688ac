"""The file of all server types, and the parts that an import writes before it is complete.

STORE/market/catalogue.parquet: a row for each figure (type, metric, value, time). Its metadata have
the types, launches and metrics. A part `.part-N.parquet` is a file of the same form with some
types; a type that is in several counts once, with its last part. So a killed import leaves parts
that the next one resumes from, and nothing is there twice.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import LaterFormat, StoreError
from nephoscope.core.format_versions import MARKET
from nephoscope.core.model import Better
from nephoscope.core.reading import jsontext, regular
from nephoscope.core.records import dataclass
from nephoscope.store.files import translating_os_errors, writing_atomically
from nephoscope.store.market.records import (
    MarketMetric,
    PublishedLaunch,
    ServerType,
    TypeReading,
    type_values,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_KEY = b"nephoscope"
_HINT = "Remove it, and import the data again."


def folder_of(store: Path) -> Path:
    """Returns the folder of the market data of a store."""
    return store / "market"


@dataclass(slots=True)
class MarketMetadata:
    """What a file states besides its figures. sources: facts of each import, by folder."""

    types: list[ServerType] = field(default_factory=list)
    launches: list[PublishedLaunch] = field(default_factory=list)
    metrics: dict[str, MarketMetric] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Returns the JSON text."""
        document = {
            "version": MARKET.version,
            "nephoscope": __version__,
            "types": [type_values(server) for server in self.types],
            "launches": [
                [launch.provider, launch.type, launch.run, dict(launch.at_s)]
                for launch in self.launches
            ],
            "metrics": {name: [m.unit, m.better.value] for name, m in self.metrics.items()},
            "sources": self.sources,
        }
        return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _decoded(text: bytes, path: Path) -> MarketMetadata:
    values = jsontext.parse(text)
    version = values.get("version")
    if MARKET.is_later(version):
        raise LaterFormat(*MARKET.refusal(path, version, str(values.get("nephoscope", ""))))
    return MarketMetadata(
        [ServerType(**each) for each in values["types"]],
        [PublishedLaunch(*each) for each in values["launches"]],
        {name: MarketMetric(unit, Better(b)) for name, (unit, b) in values["metrics"].items()},
        values["sources"],
    )


def write_part(folder: Path, number: int, readings: Sequence[TypeReading]) -> Path:
    """Writes some types as a part, whole or not at all. Raises StoreError."""
    metadata = MarketMetadata([reading.type for reading in readings])
    types: list[int] = []
    for index, reading in enumerate(readings):
        metadata.launches += reading.launches
        metadata.metrics |= reading.metrics
        types += [index] * len(reading.figures)
    figures = [figure for reading in readings for figure in reading.figures]
    columns = [[figure[place] for figure in figures] for place in range(3)]
    path = folder / f".part-{number:06d}.parquet"
    _write(path, metadata, [_table(types, *columns)])
    return path


def _table(types: Any, metrics: Any, values: Any, times: Any) -> pa.Table:
    import pyarrow as pa

    names = pa.array(metrics, pa.string()) if isinstance(metrics, list) else metrics
    return pa.table(
        {
            "type": pa.array(types, pa.int32()),
            "metric": names.dictionary_encode() if isinstance(names, pa.StringArray) else names,
            "value": pa.array(values, pa.float64()),
            "at_s": pa.array(times, pa.int64()),
        }
    )


def _write(path: Path, metadata: MarketMetadata, tables: Iterable[pa.Table]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _table([], [], [], []).schema.with_metadata({_KEY: metadata.encoded()})
    with (
        writing_atomically(path) as stream,
        pq.ParquetWriter(
            pa.PythonFile(stream), schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for table in tables:
            if table.num_rows:
                writer.write_table(table.replace_schema_metadata(schema.metadata))


def parts_of(folder: Path) -> list[Path]:
    """Returns the parts of an import that is not complete, in their order."""
    return sorted(folder.glob(".part-*.parquet"))


def next_number(parts: Sequence[Path]) -> int:
    """Returns the number of the next part."""
    return 1 + max(
        (int(part.name[6:-8]) for part in parts if part.name[6:-8].isdecimal()), default=0
    )


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Turns whatever a damaged file causes into a StoreError that names it."""
    import pyarrow as pa

    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise StoreError(f"{path} is damaged ({reason}).", _HINT) from error


def _opened(path: Path) -> tuple[MarketMetadata, pq.ParquetFile]:
    import pyarrow.parquet as pq

    with translating_os_errors(path, "read"):
        content = regular.read_regular(path, limits.MARKET_CATALOGUE_BYTES)
    with _naming_damage(path):
        file = pq.ParquetFile(
            io.BytesIO(content), read_dictionary=["metric"], page_checksum_verification=True
        )
        return _decoded((file.schema_arrow.metadata or {})[_KEY], path), file


def read_metadata(path: Path) -> MarketMetadata:
    """Returns the types and launches of a file or part. Raises StoreError for a damaged one."""
    return _opened(path)[0]


class MarketCatalogue:
    """The server types of a store with their figures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata, self._file = _opened(path)

    @classmethod
    def of_store(cls, store: Path) -> MarketCatalogue | None:
        """Returns that of a store; None where nothing was imported completely."""
        path = folder_of(store) / "catalogue.parquet"
        return cls(path) if path.is_file() else None

    @property
    def types(self) -> Sequence[ServerType]:
        """The types, in the order of `values`."""
        return self.metadata.types

    @property
    def figures(self) -> int:
        """The number of figures."""
        return int(self._file.metadata.num_rows)

    def values(self, metrics: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Returns the last value of each metric for each type, NaN where there is none."""
        wanted = list(metrics)
        result = {name: np.full(len(self.types), np.nan) for name in wanted}
        with _naming_damage(self.path):
            for name, types, values, _ in self._rows(wanted, ["type", "metric", "value"]):
                result[name][types] = values
        return result

    def series(self, metrics: Sequence[str]) -> dict[str, list[tuple[int, int, float]]]:
        """Returns (type, seconds since 1970, value) of each metric in the order of the file."""
        result: dict[str, list[tuple[int, int, float]]] = {name: [] for name in metrics}
        with _naming_damage(self.path):
            for name, types, values, at in self._rows(metrics, ["type", "metric", "value", "at_s"]):
                assert at is not None
                result[name] += zip(types.tolist(), at.tolist(), values.tolist(), strict=True)
        return result

    def _rows(self, metrics: Sequence[str], columns: list[str]) -> Iterator[Any]:
        """Yields metric, types, values and times of each group of rows."""
        for batch in self._file.iter_batches(1 << 20, columns=columns, use_threads=False):
            codes = batch.column("metric")
            names = codes.dictionary.to_pylist()
            places = codes.indices.to_numpy(zero_copy_only=False)
            for name in metrics:
                if name not in names:
                    continue
                rows = places == names.index(name)
                yield (
                    name,
                    batch.column("type").to_numpy()[rows],
                    batch.column("value").to_numpy()[rows],
                    batch.column("at_s").to_numpy()[rows] if "at_s" in columns else None,
                )


def merge(
    folder: Path, root: str, present: Mapping[tuple[str, str], str], source: Mapping[str, Any]
) -> MarketCatalogue:
    """Makes one file of the file that exists and of the parts, which are then removed.

    present: digest of each type that the folder `root` has now; types of it that are not there any
    more are left out. source: facts of this import. Raises StoreError.
    """
    path = folder / "catalogue.parquet"
    files = [*([path] if path.is_file() else []), *parts_of(folder)]
    opened = [_opened(each) for each in files]
    merged = MarketMetadata(sources={})
    owner: dict[tuple[str, str], int] = {}
    for number, (metadata, _) in enumerate(opened):
        merged.sources |= metadata.sources
        for server in metadata.types:
            if server.root != root or present.get(server.key) == server.digest:
                owner[server.key] = number
    merged.sources[root] = dict(source)
    index: dict[tuple[str, str], int] = {}
    for number, (metadata, _) in enumerate(opened):
        for server in metadata.types:
            if owner.get(server.key) == number:
                index[server.key] = len(merged.types)
                merged.types.append(server)
        merged.launches += [
            launch
            for launch in metadata.launches
            if owner.get((launch.provider, launch.type)) == number
        ]
        merged.metrics |= metadata.metrics
    with _naming_damage(path):
        _write(path, merged, _renumbered(opened, owner, index))
    for part in parts_of(folder):
        part.unlink(missing_ok=True)
    return MarketCatalogue(path)


def _renumbered(
    opened: Sequence[tuple[MarketMetadata, pq.ParquetFile]],
    owner: Mapping[tuple[str, str], int],
    index: Mapping[tuple[str, str], int],
) -> Iterator[pa.Table]:
    """Yields the figures of each file for the types that it has the last word on."""
    import pyarrow as pa

    for number, (metadata, file) in enumerate(opened):
        to = np.array(
            [
                index[server.key] if owner.get(server.key) == number else -1
                for server in metadata.types
            ],
            np.int32,
        )
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            moved = to[table.column("type").to_numpy()]
            rows = table.filter(pa.array(moved >= 0))
            yield rows.set_column(0, "type", pa.array(moved[moved >= 0], pa.int32()))
