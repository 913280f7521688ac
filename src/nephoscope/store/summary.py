"""The summary of a run: one line of JSON with what its trials measured, without their samples.

For each metric, target and setting it holds the value of each trial, or the histogram of each, so
that every percentile and its interval can be computed from it; histograms merge by adding, and
nothing is averaged. A run has its own in FILE, those of older runs stand in day files (`dayfiles`).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.format_versions import RUN_SUMMARY
from nephoscope.core.model import Better, Estimate, Shape
from nephoscope.core.reading import jsontext, regular
from nephoscope.core.records import dataclass
from nephoscope.store import journal
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.manifest import has_types, is_moment, is_number

if TYPE_CHECKING:
    from nephoscope.store.packing import Histogram

FILE = "summary.json"
_HEAD_LIMIT = 1 << 28
"""Bytes that the text of a head may take."""


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """A metric at one setting on one target in a run.

    factors, params: canonical JSON (model.factors_key) of what the plan varies and of the other
    parameters. command: command line of a labelled program, or empty. estimates: name of the metric
    or of a percentile -> its estimate at the summary's confidence, or why it has none. packed: see
    `packing`. share: see MetricSpec; False in what an older version wrote. packed_unanswered: of a
    histogram, those of its observations that are lower bounds, of each trial; empty without any.
    """

    benchmark: str
    metric: str
    target: str
    factors: str
    params: str
    command: str
    unit: str
    better: Better
    shape: Shape
    estimates: Mapping[str, Estimate | str]
    packed: str
    share: bool = False
    packed_unanswered: str = ""

    def values(self) -> list[float]:
        """Returns the value of each trial in the order of execution (scalar metrics)."""
        from nephoscope.store import packing

        return packing.unpack_values(self.packed)

    def histograms(self) -> list[Histogram]:
        """Returns the histogram of each trial in the order of execution (histograms)."""
        from nephoscope.store import packing

        return packing.unpack_histograms(self.packed)

    def unanswered(self) -> list[Histogram]:
        """Returns the lower bounds among the histogram of each trial; empty without any."""
        from nephoscope.store import packing

        packed = self.packed_unanswered
        return packing.unpack_histograms(packed) if packed else []


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """A target in a run. facts: name -> value. steal: median share of CPU time that the hypervisor
    took, None where hidden. is_lab: it is a host of a lab."""

    facts: Mapping[str, str]
    steal: float | None
    is_lab: bool


@dataclass(frozen=True, slots=True)
class RunMeasurements:
    """What a run measured.

    started_s: seconds since the epoch. created_s: the same, when the run came into the store; 0 if
    an older version wrote the summary. state: its status. targets, benchmarks: of its plan.
    trials: number of stored trials. confidence: of the estimates. nephoscope: version that computed
    them. stamp: of the files that it was computed from; empty in a day file. damaged: a sentence
    for each damaged file of the run.
    """

    run: str
    started_s: float
    plan: str
    plan_hash: str
    state: str
    labels: Mapping[str, str]
    trials: int
    confidence: float
    targets: Mapping[str, TargetSummary]
    benchmarks: tuple[str, ...]
    metrics: tuple[MetricSummary, ...]
    nephoscope: str = __version__
    stamp: str = ""
    damaged: tuple[str, ...] = ()
    created_s: float = 0.0

    def estimate(
        self, metric: MetricSummary, name: str, confidence: float
    ) -> Estimate | str | None:
        """Returns the stored estimate of a name, or why it has none; None if it was not stored.

        Estimates of other versions are not used: methods may have changed.
        """
        if self.nephoscope != __version__ or self.confidence != confidence:
            return None
        return metric.estimates.get(name)


def line_of(summary: RunMeasurements) -> bytes:
    """Returns a summary as one line with a checksum (`journal.with_checksum`)."""
    head = {
        "targets": {
            name: {"facts": dict(target.facts), "steal": target.steal, "is_lab": target.is_lab}
            for name, target in summary.targets.items()
        },
        "metrics": [_metric_values(metric) for metric in summary.metrics],
    }
    text = json.dumps(head, separators=(",", ":"), allow_nan=False)
    return journal.with_checksum(
        {
            "run": summary.run,
            "version": RUN_SUMMARY.version,
            "nephoscope": summary.nephoscope,
            "started_s": summary.started_s,
            "plan": summary.plan,
            "plan_hash": summary.plan_hash,
            "state": summary.state,
            "labels": dict(summary.labels),
            "trials": summary.trials,
            "confidence": summary.confidence,
            "benchmarks": list(summary.benchmarks),
            "stamp": summary.stamp,
            "damaged": list(summary.damaged),
            "created_s": summary.created_s,
            "head": base64.b64encode(zlib.compress(text.encode())).decode(),
            "data": [metric.packed for metric in summary.metrics],
        }
    )


def _metric_values(metric: MetricSummary) -> dict[str, Any]:
    own = ("benchmark", "metric", "target", "factors", "params", "command", "unit", "share")
    packed = metric.packed_unanswered
    return {
        **{name: getattr(metric, name) for name in own},
        **({"unanswered": packed} if packed else {}),
        "better": metric.better.value,
        "shape": metric.shape.value,
        "estimates": {
            name: estimate
            if isinstance(estimate, str)
            else [getattr(estimate, key) for key in _ESTIMATE]
            for name, estimate in metric.estimates.items()
        },
    }


_ESTIMATE = (
    "value",
    "low",
    "high",
    "n",
    "method",
    "note",
    "autocorrelation",
    "effective_n",
    "censored",
)


def parsed(line: bytes) -> RunMeasurements | None:
    """Returns the summary of a line without its newline; None where it is damaged or none."""
    document, holds = journal.parsed_line(line)
    if document is None or not holds or not has_types(document, _TYPES):
        return None
    try:
        return _summary(document)
    except (ValueError, TypeError, LookupError, AttributeError, zlib.error):
        return None


def later_version(line: bytes) -> tuple[int, str] | None:
    """Returns version and writer of an intact line of a later version; None for another line."""
    document, holds = journal.parsed_line(line)
    if document is None or not holds or not RUN_SUMMARY.is_later(document.get("version")):
        return None
    return document["version"], str(document.get("nephoscope") or "")


_TYPES: Mapping[str, type] = {
    "run": str,
    "version": int,
    "nephoscope": str,
    "plan": str,
    "plan_hash": str,
    "state": str,
    "labels": dict,
    "trials": int,
    "benchmarks": list,
    "stamp": str,
    "damaged": list,
    "head": str,
    "data": list,
}


def _summary(document: Mapping[str, Any]) -> RunMeasurements:
    if not RUN_SUMMARY.is_readable(document["version"]) or not is_moment(document["started_s"]):
        raise ValueError("it is of another version")
    reader = zlib.decompressobj()
    text = reader.decompress(base64.b64decode(document["head"], validate=True), _HEAD_LIMIT)
    head = jsontext.parse(text)
    targets = {
        str(name): TargetSummary(
            {str(fact): str(value) for fact, value in target["facts"].items()},
            float(target["steal"]) if is_number(target["steal"]) else None,
            bool(target["is_lab"]),
        )
        for name, target in head["targets"].items()
    }
    confidence = float(document["confidence"])
    return RunMeasurements(
        document["run"],
        float(document["started_s"]),
        document["plan"],
        document["plan_hash"],
        document["state"],
        {str(key): str(value) for key, value in document["labels"].items()},
        document["trials"],
        confidence,
        targets,
        tuple(map(str, document["benchmarks"])),
        tuple(
            _metric(values, str(packed), confidence, targets)
            for values, packed in zip(head["metrics"], document["data"], strict=True)
        ),
        document["nephoscope"],
        document["stamp"],
        tuple(map(str, document["damaged"])),
        float(document.get("created_s", 0.0)),
    )


def _metric(
    values: Mapping[str, Any], packed: str, confidence: float, targets: Mapping[str, TargetSummary]
) -> MetricSummary:
    unit = str(values["unit"])
    if values["target"] not in targets:
        raise ValueError("it has a metric of an unknown target")
    factors, params = str(values["factors"]), str(values["params"])
    if not all(isinstance(jsontext.parse(text), dict) for text in (factors, params)):
        raise ValueError("its factors cannot be read")
    return MetricSummary(
        str(values["benchmark"]),
        str(values["metric"]),
        str(values["target"]),
        factors,
        params,
        str(values["command"]),
        unit,
        Better(values["better"]),
        Shape(values["shape"]),
        {
            str(name): estimate
            if isinstance(estimate, str)
            else _estimate(estimate, unit, confidence)
            for name, estimate in values["estimates"].items()
        },
        packed,
        bool(values.get("share")),
        str(values.get("unanswered", "")),
    )


def _estimate(values: Sequence[Any], unit: str, confidence: float) -> Estimate:
    # An older version wrote no mark of censored estimates.
    value, low, high, n, method, note, autocorrelation, effective_n, *censored = values
    numbers = (low, high, autocorrelation, effective_n)
    if not is_number(value) or not all(number is None or is_number(number) for number in numbers):
        raise ValueError("it has an estimate that is no number")
    return Estimate(
        value,
        low,
        high,
        confidence,
        int(n),
        unit,
        method,
        note,
        autocorrelation,
        effective_n,
        censored == [True],
    )


def read(folder: Path) -> RunMeasurements | None:
    """Returns the summary in a run's folder; None where there is none that can be used."""
    path = folder / FILE
    try:
        with translating_os_errors(path, "read"):
            content = regular.read_regular(path, limits.IMPORT_BYTES)
    except StoreError:
        return None
    return parsed(content.removesuffix(b"\n"))


def write(folder: Path, summary: RunMeasurements) -> None:
    """Writes the summary of a run into its folder; it can be computed again, so it is not synced.

    Raises StoreError.
    """
    write_atomically(folder / FILE, line_of(summary), durable=False)


def stamp_of(folder: Path) -> str:
    """Returns a text that differs once the manifest, the journal or a trial file is another one.

    It is made of names, sizes and times of change. Raises StoreError.
    """
    from nephoscope.store.digests import digest_of

    with translating_os_errors(folder, "read"):
        paths = [folder / "manifest.json", folder / "journal.jsonl", *(folder / "trials").iterdir()]
        stats = [(path.name, path.stat()) for path in paths if path.exists()]
    rows = sorted(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats)
    return digest_of("\n".join(rows).encode())
