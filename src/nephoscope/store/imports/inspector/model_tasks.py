"""Readers of llama.cpp and vLLM: a JSON object for each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nephoscope.core.model import Better
from nephoscope.core.reading import jsontext
from nephoscope.store.imports.inspector.collector import (
    MS,
    PER_S,
    TOKENS_PER_S,
    FigureCollector,
    word,
)
from nephoscope.store.imports.inspector.folder import TaskFolder
from nephoscope.store.imports.units import Unit

_UNITS: Mapping[str, Unit] = {
    "ms": MS,
    "s": Unit("ns", 1e9, Better.LOWER),
    "tok/s": TOKENS_PER_S,
    "tokens/s": TOKENS_PER_S,
    "tokens/sec": TOKENS_PER_S,
    "req/s": PER_S,
    "requests/s": PER_S,
    "requests/sec": PER_S,
}
_ENDS = frozenset({"synchronous", "throughput"})
"""Strategies at the ends of a sweep: one request at a time, and as many as the server takes."""


def _objects(task: TaskFolder, out: FigureCollector) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(task.text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = jsontext.parse(line)
        except ValueError:
            out.leave_out(f"line {number} is no JSON")
            continue
        if isinstance(value, dict):
            yield value
        else:
            out.leave_out(f"line {number} is no JSON object")


def llama(task: TaskFolder, out: FigureCollector) -> None:
    """Mean tokens per second of five repetitions on one machine, of prefill or decoding."""
    for values in _objects(task, out):
        model = word(str(values.get("model_filename")).rpartition("/")[2]).removesuffix(".gguf")
        prompt, generated = values.get("n_prompt"), values.get("n_gen")
        what = "prefill" if generated == 0 else "decode" if prompt == 0 else "mixed"
        tokens = prompt if generated == 0 else generated
        out.add(
            f"llama.{what}/tokens_per_s", values.get("avg_ts"), TOKENS_PER_S, model=model, n=tokens
        )


def vllm(task: TaskFolder, out: FigureCollector) -> None:
    """Times and rates of a served model by percentile, at both ends of the sweep of its load."""
    unknown: set[str] = set()
    for values in _objects(task, out):
        strategy, text = str(values.get("strategy")), str(values.get("unit"))
        if strategy not in _ENDS:
            continue
        unit = _UNITS.get(text)
        if unit is None:
            unknown.add(text[:20])
            continue
        name = f"vllm.{word(values.get('measurement'))}/{word(values.get('percentile') or 'rate')}"
        factors = {"model": values.get("model"), "work": values.get("workload"), "load": strategy}
        out.add(name, values.get("score"), unit, **factors)
    if unknown:
        out.leave_out(f"the units {', '.join(sorted(unknown))} are not known")
