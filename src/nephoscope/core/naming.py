"""Names of metrics and settings as people read them: one definition for every text and document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.reading.printable import printable

# What a unit's ending of a name says as words: `hash_bytes_per_s` is 'hash throughput'.
_UNIT_ENDINGS = {
    "_bytes_per_s": " throughput",
    "_bits_per_s": "",
    "_per_s": "",
    "_ratio": "",
    "_bytes": " size",
    "_cpus": " CPUs",
    "_ns": "",
}
_ACRONYMS = {
    "cpu": "CPU",
    "iops": "IOPS",
    "tcp": "TCP",
    "rtt": "round-trip time",
    "io": "I/O",
    "vcpu": "virtual CPU",
    "usd": "USD",
}
# Metrics whose names are short forms that no reader knows.
_WORDS = {
    "look_cost_ns": "cost of a clock read",
    "look_floor_ns": "shortest gap that is detected",
    "look_min_ns": "fastest clock read",
    "asking_ratio": "share of time spent on finding causes",
    "obtained_cpus": "CPU time obtained",
    "obtained_cycles_cpus": "CPU time obtained over whole cycles",
    "cpu_share_cycles_ratio": "CPU share over whole cycles",
    "thread_cpu_ratio": "CPU share as the kernel counts it",
    "psi_cpu_some_ratio": "CPU pressure",
}
# p999 and p99_9 are p99.9.
_RANK = re.compile(r"_p(?!100$)(\d\d?_|\d\d)(\d+)$")
# Operations as fio names them, which shorten a word.
_OPERATIONS = {
    "randread": "random read",
    "randwrite": "random write",
    "randrw": "random read and write",
}
# Factors of a neighbour's load; at the baseline there is none.
_LOAD = frozenset({"intensity", "neighbours", "resource"})


def clean(text: object) -> str:
    """Text from a machine, on one line and without control characters."""
    return " ".join(printable(str(text)).split())


def plural(count: int, noun: str) -> str:
    """'1 finding', '3 findings'."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def as_number(value: Any) -> float | None:
    """Returns a number as a float; None for anything else, truth values among it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def level_name(level: Any) -> str:
    """A level in a few words; a whole JSON document, such as a scenario, by its own name."""
    if not (isinstance(level, str) and level.lstrip().startswith("{")):
        return str(level)
    try:
        document = json.loads(level)
    except ValueError:
        return f"{level[:24]}…"
    return str(document.get("name") or "a scenario of its own")


def metric_name(metric: str) -> str:
    """A metric's name as words, without its unit: 'latency_p99_ns' is 'latency p99'."""
    if metric in _WORDS:
        return _WORDS[metric]
    stem, kind = metric, ""
    for ending, word in _UNIT_ENDINGS.items():
        if stem.endswith(ending) and stem != ending[1:]:
            stem, kind = stem.removesuffix(ending), word
            break
    words = _RANK.sub(lambda rank: f"_p{rank[1].rstrip('_')}.{rank[2]}", stem).split("_")
    return clean(" ".join(_ACRONYMS.get(word, word) for word in words) + kind)


def full_name(benchmark: str, metric: str) -> str:
    """Benchmark and metric, without saying a word twice: 'mem.stream throughput'."""
    name = metric_name(metric)
    last = benchmark.rpartition(".")[2]
    first, _, rest = name.partition(" ")
    return clean(f"{benchmark} {rest if first.lower() == last else name}")


def line_name(
    benchmark: str, metric: str, factors: Mapping[str, Any], leave_out: Iterable[str] = ()
) -> str:
    """A metric with its setting: 'mem.stream throughput (triad)'."""
    # A file of numbers has metrics without a benchmark, under the names that its author gave.
    name = clean(metric) if benchmark == metric else full_name(benchmark, metric)
    own = factors_text(factors, leave_out)
    return f"{name} ({own})" if own else name


def level_text(name: str, level: Any) -> str:
    """One factor with its level: '2 threads', 'block 4 KiB', 'direct', 'triad', 'CPU 0'."""
    number = as_number(level)
    if isinstance(level, str) and level.lstrip().startswith("{"):
        return clean(level_name(level))
    if name in ("threads", "streams") and isinstance(level, int) and not isinstance(level, bool):
        return plural(level, name[:-1])
    if name == "operation" and level in _OPERATIONS:
        return _OPERATIONS[level]
    if name == "pages":
        return f"{clean(level)} pages"
    if isinstance(level, bool):
        words = " ".join(_ACRONYMS.get(word, word) for word in name.split("_"))
        return clean(words if level else f"not {words}")
    stem, text = name, clean(level)
    if number is not None:
        stem, text = _amount(name, number)
    elif isinstance(level, str) and not (
        # A region may bear the name of a user base; 'a', 'none' and '50ms' alone say nothing.
        name in ("user_base", "arm") or level == "none" or level[:1].isdigit()
    ):
        return text
    words = " ".join(_ACRONYMS.get(word, word) for word in stem.split("_"))
    return f"{words} {text}"


def _amount(name: str, number: float) -> tuple[str, str]:
    """Returns the name of a factor without its unit, and a number in that unit."""
    for ending, text in _AMOUNTS.items():
        if name.endswith(ending):
            return name.removesuffix(ending), text(number)
    return name, f"{number:.0f}" if number.is_integer() else f"{number:.9g}"


def factors_text(factors: Mapping[str, Any], leave_out: Iterable[str] = ()) -> str:
    """A setting in words; the order is that of the factors' names."""
    return ", ".join(level_texts(factors, leave_out).values())


def level_texts(factors: Mapping[str, Any], leave_out: Iterable[str] = ()) -> dict[str, str]:
    """Returns factor -> its level in words, those that a setting in words consists of."""
    hidden = set(leave_out)
    if factors.get("process") == 0:  # the only loop of its CPU
        hidden.add("process")
    is_baseline = factors.get("resource") == "none" and not hidden & _LOAD
    hidden |= _LOAD if is_baseline else set()
    texts = {k: level_text(k, v) for k, v in sorted(factors.items()) if k not in hidden}
    return {"resource": "baseline", **texts} if is_baseline else texts


def bytes_text(value: float) -> str:
    """A size: '4 KiB', '1.5 MiB'."""
    divisor, label = units.scale_of("bytes", value)
    return f"{value / divisor:.4g} {label}"


def common_factors(factor_sets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Factors that have the same level in all sets (and are in all of them)."""
    if not factor_sets:
        return {}
    first = factor_sets[0]
    return {
        name: level
        for name, level in first.items()
        if all(name in factors and factors[name] == level for factors in factor_sets[1:])
    }


_AMOUNTS: Mapping[str, Callable[[float], str]] = {
    "_bytes": bytes_text,
    "_ns": lambda ns: units.format_value(ns, "ns"),
    "_bits_per_s": lambda rate: units.format_value(rate, "bits_per_s"),
    "_bytes_per_s": lambda rate: units.format_value(rate, "bytes_per_s"),
    "_per_s": lambda rate: f"{rate:.9g}/s",
}
"""Ending of a factor's name -> its numbers with their unit; the first one that fits."""
_PHASE = re.compile(r"^in phase [a-z]+: ")


def failure_text(reason: str) -> str:
    """Returns the reason of a failed trial without the phase in which it failed."""
    return _PHASE.sub("", reason)
