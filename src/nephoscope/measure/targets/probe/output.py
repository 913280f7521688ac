"""The probe's output to a trial: pure functions, so that they can be tested on any bytes.

Whatever is not exactly a sample, a `done` or an `error` makes the trial fail; a missing or
nonsensical figure never becomes a zero.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.core.model import Sample, Shape
from nephoscope.core.programs import BUILD_COMMAND
from nephoscope.core.reading import jsontext
from nephoscope.measure.targets.base import Done, TargetTrial
from nephoscope.measure.targets.channels.child import last_words

_REPORT = "Report this with the benchmark's parameters; the trial does not count."


Parse = Callable[[bytes, int, str], TargetTrial]
"""Standard output, exit code (negative for a signal), last lines of standard error -> the trial."""


class _Bad(Exception):
    """A line that is none of ours; the text is the reason."""


def parse_output(
    spec: BenchmarkSpec, stdout: bytes, returncode: int, stderr_tail: str = ""
) -> TargetTrial:
    """The trial that `stdout` tells of.

    returncode: the exit code, negative for a signal. Failures, in this order: the probe's own
    named error; died by a signal (`probe_died`); bad lines (`bad_output`); no `done`
    (`probe_died`); a count of samples that differs from the one in `done` (`bad_output`).
    """
    samples: list[Sample] = []
    documents: dict[str, Any] = {}
    done: Done | None = None
    bad: str | None = None
    lines = stdout.split(b"\n")
    # A whole output ends with a newline; what follows the last one was cut off.
    cut_off = lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            event = _event(line, spec, done is not None, returncode)
        except _Bad as error:
            bad = bad or f"line {number}: {error}"
            continue
        if isinstance(event, BenchmarkFailed):
            return _failed(event, stderr_tail, samples)
        if isinstance(event, Done):
            done = event
        elif isinstance(event, Sample):
            samples.append(event)
        else:
            documents.update(event)
    if bad is None and done is not None and returncode == 0 and not cut_off:
        seen = len(samples) + len(documents)
        if done.samples == seen:
            return TargetTrial(tuple(samples), documents, done, None, stderr_tail)
        bad = f"it printed {seen} samples and counted {done.samples}"
    return _failed(_why(spec, returncode, bad, stderr_tail, cut_off), stderr_tail, samples)


def _failed(failure: BenchmarkFailed, stderr_tail: str, samples: Sequence[Sample]) -> TargetTrial:
    return TargetTrial((), {}, None, failure, stderr_tail, before_failure=tuple(samples))


def _why(
    spec: BenchmarkSpec, returncode: int, bad: str | None, stderr_tail: str, cut_off: bytes
) -> BenchmarkFailed:
    if returncode < 0:
        return died_by_signal(spec.id, -returncode)
    if bad is not None:
        return BenchmarkFailed(
            "bad_output", f"{spec.id}: the probe printed what is no sample: {bad}.", _REPORT
        )
    how = "in the middle of a line" if cut_off else "without its last line"
    return BenchmarkFailed(
        "probe_died",
        f"{spec.id}: the probe ended {how}, with exit code {returncode}.{last_words(stderr_tail)}",
        "Run it again; if it happens again, report it.",
    )


def died_by_signal(benchmark: str, number: int) -> BenchmarkFailed:
    """The failure of a probe that a signal ended."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGKILL":
        hint = (
            "The kernel may have run out of memory (see `dmesg`), or someone ended it; "
            "take smaller parameters."
        )
    else:
        hint = "Run it again; if it happens again, report it."
    return BenchmarkFailed("probe_died", f"{benchmark}: the probe was ended by {name}.", hint)


Event = Sample | Done | BenchmarkFailed | dict[str, Any]


def _event(line: bytes, spec: BenchmarkSpec, after_done: bool, returncode: int) -> Event:
    try:
        values = jsontext.parse(line)
    except ValueError as error:
        raise _Bad(f"no JSON: {_quoted(line)}") from error
    if not isinstance(values, dict):
        raise _Bad(f"no object: {_quoted(line)}")
    if after_done:
        raise _Bad("there are lines after the last one")
    if "error" in values:
        return _failure(values["error"], returncode)
    if "done" in values:
        return _done(values["done"])
    return _sample(values, spec)


def _quoted(line: bytes) -> str:
    return repr(line[:80].decode("utf-8", errors="replace"))


def _failure(values: Any, returncode: int) -> BenchmarkFailed:
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise _Bad("an error without a name")
    # The probe's exit codes 2 (asked wrongly) and 4 (the machine lacks something) are ours too.
    exit_code = returncode if returncode in (2, 4) else 3
    return BenchmarkFailed(
        values["name"], str(values.get("message", "")), str(values.get("hint", "")), exit_code
    )


def _done(values: Any) -> Done:
    if not isinstance(values, dict):
        raise _Bad("`done` is no object")
    counters, notes = values.get("counters"), values.get("notes", [])
    served = values.get("served", {})
    if not (isinstance(counters, dict) and isinstance(notes, list) and isinstance(served, dict)):
        raise _Bad("`done` has another form than this version reads")
    return Done(
        elapsed_ns=_count(values.get("elapsed_ns"), "elapsed_ns"),
        samples=_count(values.get("samples"), "samples"),
        counters=counters,
        notes=tuple(map(str, notes)),
        started_wall_ns=_count(values.get("started_wall_ns"), "started_wall_ns"),
        served=served,
    )


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise _Bad(f"{name} is no whole number: {value!r:.40}")
    return value


def _sample(values: Mapping[str, Any], spec: BenchmarkSpec) -> Sample | dict[str, Any]:
    name = values.get("metric")
    metric = next((metric for metric in spec.metrics if metric.id == name), None)
    if metric is None:
        raise _Bad(f"{spec.id} has no metric {name!r:.60}")
    if metric.shape is Shape.DOCUMENT:
        if values.get("document") is None:
            raise _Bad(f"the document of {metric.id} is missing")
        return {metric.id: values["document"]}
    value = values.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Bad(f"{metric.id} is no number: {value!r:.40}")
    try:
        number = float(value)
    except OverflowError as error:
        raise _Bad(f"{metric.id} is too large") from error
    if not math.isfinite(number):
        raise _Bad(f"{metric.id} is not finite")
    factors = values.get("factors", {})
    if not isinstance(factors, dict):
        raise _Bad(f"the factors of {metric.id} are no object")
    count = _count(values.get("count", 1), "count")
    return Sample(metric.id, number, count, _count(values.get("at_ns", 0), "at_ns"), factors)


def check_version(
    described: bytes, catalog: Catalog, where: str, build_command: str = BUILD_COMMAND
) -> None:
    """TargetError of one sentence unless `describe`'s answer is of the catalogue's version."""
    try:
        document = jsontext.parse(described)
        actual = (str(document["probe"]), int(document["protocol"]))
    except (ValueError, KeyError, TypeError) as error:
        raise TargetError(
            f"{where}: what answers as the probe is no nephoscope-probe.", "Check NEPHOSCOPE_PROBE."
        ) from error
    if actual != (catalog.probe, catalog.protocol):
        raise TargetError(
            f"{where}: the probe is version {actual[0]} (protocol {actual[1]}), and this package "
            f"needs {catalog.probe} (protocol {catalog.protocol}).",
            f"Build both together: `{build_command}`.",
        )
