"""Were two runs measured alike? Lines of other parameters are another measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephoscope.core.model import TrialRecord, factors_key

Settings = Mapping[str, frozenset[str]]
"""Benchmark -> the parameters with which it was run, canonical texts, factors left out."""


def settings_of(records: Iterable[TrialRecord]) -> Settings:
    """The parameters of every benchmark in these trials, apart from what the plan varied."""
    settings: dict[str, set[str]] = {}
    for record in records:
        fixed = {name: v for name, v in record.params.items() if name not in record.factors}
        settings.setdefault(record.benchmark, set()).add(factors_key(fixed))
    return {benchmark: frozenset(texts) for benchmark, texts in settings.items()}


def measured_otherwise(a: Settings, b: Settings) -> frozenset[str]:
    """Benchmarks that both sides have, with parameters that differ."""
    return frozenset(name for name in a.keys() & b.keys() if a[name] != b[name])


def parameter_warning(benchmarks: Iterable[str]) -> str:
    """The sentence for a comparison of lines that were measured with other parameters."""
    names = ", ".join(sorted(benchmarks))
    return (
        f"The two runs measured {names} with different parameters, so a difference may come "
        "from the parameters; run the same plan on both sides to compare machines."
    )
