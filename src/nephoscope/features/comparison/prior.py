"""Variance between runs that is assumed of a machine without earlier runs, by class of metric.

The assumption is learnt from the data sets in repeated_surveys/: surveys of one machine, repeated
with gaps. Each metric there has a variance of its own; their distribution within a class is taken
as scaled inverse chi-square, fitted by the moments of the log variances. Source: Smyth,
Statistical Applications in Genetics and Molecular Biology 3(1), 2004, section 6.2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from nephoscope.stats.root import root

CLASSES = {"cpu": "CPU", "mem": "memory", "disk": "disk", "net": "network"}
"""First part of a benchmark's id -> name of its class."""
TAIL = re.compile(r"_p99\d*(_|$)")
SCHEDULING = re.compile(r"gap|run_length|switches|asking")
"""Metrics that vary several times as much as the rest of their benchmark: percentiles from the 99th
on, and the number and length of pauses."""
ALL = "all"
"""Class of every other benchmark: the metrics of all classes together."""

MIN_METRICS = 4
"""A class of fewer metrics in the data sets takes the prior of all classes."""
MIN_SD = 0.001
"""Metrics that vary less in a data set are left out: constants of the machine, or of its timer."""
MIN_DF, MAX_DF = 2.0, 30.0
"""Bounds of the degrees of freedom. Below, the quantile of t explodes, and no difference would ever
be called; above, metrics whose variances do not differ would give certainty about other machines.
"""


@dataclass(frozen=True, slots=True)
class Prior:
    """Scaled inverse chi-square distribution of the variance of a run's median, relative.

    sd: square root of the scale, as a ratio. df: degrees of freedom, the number of runs (less one)
    that the assumption weighs. source: data sets, number of surveys and dates in words.
    """

    sd: float
    df: float
    source: str = ""


def class_of(benchmark: str, metric: str) -> str:
    """Returns the name of a metric's class."""
    if TAIL.search(metric):
        return "tail latency"
    family = CLASSES.get(benchmark.partition(".")[0], ALL)
    return "scheduling" if family == "CPU" and SCHEDULING.search(metric) else family


def prior_of(benchmark: str, metric: str) -> Prior:
    """Returns what is assumed of a metric before the machine has a history."""
    by_class = priors()
    return by_class.get(class_of(benchmark, metric), by_class[ALL])


@lru_cache(maxsize=1)
def priors() -> Mapping[str, Prior]:
    """Returns the prior of each class, from all data sets of this package."""
    sets = list(data_sets())
    surveys = sum(len(data["started"]) for data in sets)
    dates = " and ".join(data["date"] for data in sets)
    classes: dict[str, list[tuple[float, int]]] = {ALL: []}
    for data in sets:
        for line in data["lines"]:
            variance = variance_of(line["medians"])
            if variance[0] < MIN_SD**2:
                continue
            for name in {ALL, class_of(line["benchmark"], line["metric"])}:
                classes.setdefault(name, []).append(variance)
    result = {}
    for name, variances in classes.items():
        if len(variances) < MIN_METRICS:
            continue
        sd, df = fit([value for value, _ in variances], [df for _, df in variances])
        source = f"{len(variances)} metrics in {surveys} repeated surveys of {dates}"
        result[name] = Prior(sd, df, source)
    return result


def data_sets() -> Iterator[dict[str, Any]]:
    """Yields the documents that `benchmarks/repeated_surveys.py` wrote, oldest first."""
    folder = resources.files("nephoscope.features.comparison") / "repeated_surveys"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        yield json.loads(file.read_text(encoding="utf-8"))


def variance_of(medians: Sequence[float]) -> tuple[float, int]:
    """Returns the variance of the logarithms of run medians, and its degrees of freedom."""
    return float(np.var(np.log(medians), ddof=1)), len(medians) - 1


def fit(variances: Sequence[float], dfs: Sequence[int]) -> tuple[float, float]:
    """Returns the square root of the scale and the degrees of freedom of the distribution."""
    from scipy.special import digamma, polygamma

    half = np.asarray(dfs) / 2
    logs = np.log(variances) - digamma(half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    low, high = MIN_DF / 2, MAX_DF / 2
    df = MIN_DF
    if excess <= polygamma(1, high):
        df = MAX_DF
    elif excess < polygamma(1, low):
        df = 2 * root(lambda x: float(polygamma(1, x)) - excess, low, high)
    log_scale = float(np.mean(logs)) + float(digamma(df / 2)) - math.log(df / 2)
    return math.exp(log_scale / 2), df
