"""The memory benchmarks against what every memory hierarchy must do, on the release probe.

Ratios inside one trial; bounds from what a core can move per cycle, far from what any machine does.
"""

from __future__ import annotations

from typing import Any

from tests.attempts import attempt
from trials import Trial, run

NEAR_BYTES = 16 << 10
FAR_BYTES = 96 << 20


def value(trial: Trial, metric: str, **factors: Any) -> float:
    """The only value of a metric with these factors."""
    (found,) = [
        sample["value"]
        for sample in trial.samples
        if sample["metric"] == metric
        and all(sample.get("factors", {}).get(name) == level for name, level in factors.items())
    ]
    return float(found)


def test_the_first_cache_moves_more_than_memory() -> None:
    def measure() -> tuple[str, bool]:
        params = {"lengths": [NEAR_BYTES, FAR_BYTES], "operations": ["read"]}
        trial = run("mem.cache", params)
        near = value(trial, "cache_bytes_per_s", vector_bytes=NEAR_BYTES)
        far = value(trial, "cache_bytes_per_s", vector_bytes=FAR_BYTES)
        # A core reads 32 to 128 bytes a cycle from its first cache and fewer than 8 from memory.
        return f"{near / far:.1f}", near > 4 * far

    attempt("first cache over memory, bytes a second", measure)


def test_memory_answers_later_than_the_first_cache() -> None:
    def measure() -> tuple[str, bool]:
        params = {"lengths": [NEAR_BYTES, FAR_BYTES], "pages": ["small"]}
        trial = run("mem.latency", params)
        near = value(trial, "load_latency_ns", vector_bytes=NEAR_BYTES)
        far = value(trial, "load_latency_ns", vector_bytes=FAR_BYTES)
        # 4 or 5 cycles against a row activation of tens of nanoseconds.
        return f"{far / near:.1f}", far > 5 * near

    attempt("memory over first cache, latency", measure)


def test_stream_moves_less_from_memory_than_from_the_cache() -> None:
    def measure() -> tuple[str, bool]:
        def triad(bytes_per_array: int) -> float:
            params = {
                "bytes_per_array": bytes_per_array,
                "kernels": ["triad"],
                "types": ["double"],
                "threads": 1,
                "passes": 3,
                "store": "regular",
            }
            trial = run("mem.stream", params)
            values = sorted(s["value"] for s in trial.samples if "kernel" in s.get("factors", {}))
            return float(values[len(values) // 2])

        near, far = triad(128 << 10), triad(64 << 20)
        return f"{near / far:.1f}", near > 1.5 * far

    attempt("triad in the cache over triad in memory", measure)
