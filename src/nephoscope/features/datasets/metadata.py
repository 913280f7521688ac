"""Describes a data set for machines: Croissant 1.0 (MLCommons), Data Package (Frictionless).

Both name each file with its SHA-256 digest and each column with type, unit, direction and
description, from one list of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nephoscope.core.model import Better
from nephoscope.core.records import dataclass
from nephoscope.features.datasets.tables import (
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    TRUTH,
    DataColumn,
    DataTable,
)

CROISSANT, DATA_PACKAGE = "croissant.json", "datapackage.json"

_CROISSANT_TYPES = {
    TEXT: "sc:Text",
    INTEGER: "sc:Integer",
    NUMBER: "sc:Float",
    TRUTH: "sc:Boolean",
    MOMENT: "sc:DateTime",
}
_MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
_DIRECTIONS = {Better.HIGHER: "Higher is better.", Better.LOWER: "Lower is better."}

_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification of Croissant 1.0 prescribes."""


@dataclass(frozen=True, slots=True)
class About:
    """What only the publisher knows.

    name: of letters, digits and '-'. licence: SPDX identifier or address. creators: persons or
    organisations. url: page of the data set; '' without one. published: day, YYYY-MM-DD. version:
    of the data.
    """

    name: str
    title: str
    description: str
    licence: str
    creators: tuple[str, ...]
    url: str
    published: str
    version: str = "1.0.0"

    @property
    def licence_url(self) -> str:
        """Returns the address of the licence's text."""
        if "://" in self.licence:
            return self.licence
        return f"https://spdx.org/licenses/{self.licence}.html"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a data set with its table. ending: csv or parquet."""

    table: DataTable
    ending: str
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """Returns its name in the folder."""
        return f"{self.table.name}.{self.ending}"


def description_of(column: DataColumn) -> str:
    """Returns the description with unit and direction, for formats that have no place for them."""
    unit = f"Unit: {column.unit}." if column.unit else ""
    parts = (column.description, unit, _DIRECTIONS.get(column.better, ""))
    return " ".join(filter(None, parts))


def data_package(about: About, files: Sequence[DataFile]) -> dict[str, Any]:
    """Returns the descriptor of a tabular data package (specs.frictionlessdata.io, version 1)."""
    is_address = "://" in about.licence
    return {
        "profile": "data-package",
        "name": about.name,
        "id": about.url or about.name,
        "title": about.title,
        "description": about.description,
        **({"homepage": about.url} if about.url else {}),
        "version": about.version,
        "created": f"{about.published}T00:00:00Z",
        "licenses": [
            {**({} if is_address else {"name": about.licence}), "path": about.licence_url}
        ],
        "contributors": [{"title": creator, "role": "author"} for creator in about.creators],
        "resources": [
            {
                "profile": "tabular-data-resource" if file.ending == "csv" else "data-resource",
                "name": file.table.name,
                "path": file.name,
                "title": file.table.name,
                "description": file.table.description,
                "format": file.ending,
                "mediatype": _MEDIA_TYPES[file.ending],
                # The validator of frictionless counts no bytes of Parquet, and misses them.
                **({"encoding": "utf-8", "bytes": file.size_bytes} if file.ending == "csv" else {}),
                "hash": f"sha256:{file.sha256}",
                "schema": {
                    "fields": [_package_field(column) for column in file.table.columns],
                    "missingValues": [""],
                },
            }
            for file in files
        ],
    }


def _package_field(column: DataColumn) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "description": column.description,
    }
    if column.type == MOMENT:
        field["format"] = "any"
    if column.unit:
        field["unit"] = column.unit
    if column.better is not Better.NONE:
        field["direction"] = column.better.value
    return field


def croissant(about: About, files: Sequence[DataFile]) -> dict[str, Any]:
    """Returns the description as JSON-LD (docs.mlcommons.org/croissant, version 1.0)."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": about.name,
        "alternateName": about.title,
        "description": about.description,
        "license": about.licence_url,
        **({"url": about.url} if about.url else {}),
        "creator": [{"@type": "sc:Organization", "name": creator} for creator in about.creators],
        "datePublished": about.published,
        "version": about.version,
        "citeAs": _citation(about),
        "keywords": ["benchmark", "performance", "cloud computing"],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.name,
                "name": file.name,
                "description": file.table.description,
                "contentUrl": file.name,
                "contentSize": f"{file.size_bytes} B",
                "encodingFormat": _MEDIA_TYPES[file.ending].replace("vnd.apache.", "x-"),
                "sha256": file.sha256,
            }
            for file in files
        ],
        "recordSet": list(_record_sets(files)),
    }


def _citation(about: About) -> str:
    who = " and ".join(about.creators)
    return f"{who}: {about.title}, {about.published[:4]}{f', {about.url}' if about.url else ''}."


def _record_sets(files: Iterable[DataFile]) -> Iterable[dict[str, Any]]:
    for file in files:
        name = file.table.name
        yield {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "description": file.table.description,
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": f"{name}/{column.name}",
                    "name": column.name,
                    "description": description_of(column),
                    "dataType": _CROISSANT_TYPES[column.type],
                    "source": {
                        "fileObject": {"@id": file.name},
                        "extract": {"column": column.name},
                    },
                }
                for column in file.table.columns
            ],
        }
