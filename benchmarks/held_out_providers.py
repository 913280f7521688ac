"""Predicts the server types of a provider from those of all others, and counts what is covered.

usage: held_out_providers.py TYPES.csv [--work NAME]... [--confidence LEVEL]... [--write]

TYPES.csv has a server type a line: vendor, arch, cpu_model, cpus, threads_per_core, small
benchmarks (stressng_1, stressng_all, comp_*, sha256_16k, bw_*, pm_*) and works, as columns; an
empty cell was not measured. Types with a GPU are left out. Each provider is left out of everything:
the model, the choice of its shape, the scores and the choice of their level.

Prints for each cell the types, those with a prediction, the coverage of the intervals, the range of
coverages in which 95 % of the cells of that size would lie if each type were covered independently
with the nominal probability, the median error, and the median half width.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _paired
import numpy as np
from scipy import stats

from nephoscope.stats.group_prediction import intervals
from nephoscope.stats.statistics.values import Array, Refused

WORKS = {
    "redis": "redis_max",
    "web": "web_1k",
    "geekbench": "gb_multi",
    "llm-135m": "llm_SmolLM-135M_p0_g128",
    "llm-7b": "llm_llama-7b_p0_g128",
}
PER_CPU = ("stressng_all", "sha256_16k", "pm_summ_cpu")
SINGLE = ("stressng_1", "pm_cpu_singlethread", "pm_me_latency", "pm_summ_me")
LEAST_OF_PROVIDER = 8


class Types:
    """The rows of the file that have all small benchmarks."""

    def __init__(self, file: Path) -> None:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.DictReader(stream) if not number(row, "gpus") > 0]
        single = [*SINGLE, *(name for name in rows[0] if name.startswith(("comp_", "bw_")))]
        with np.errstate(invalid="ignore", divide="ignore"):
            cpus = np.log([number(row, "cpus") for row in rows])
            columns = [np.log([number(row, name) for row in rows]) for name in single]
            columns += [np.log([number(row, name) for row in rows]) - cpus for name in PER_CPU]
        known = [[number(row, "threads_per_core") > 1, row["arch"] == "aarch64"] for row in rows]
        features = np.column_stack([*columns, cpus, np.array(known, dtype=float)])
        whole = np.isfinite(features).all(axis=1)
        self._names = [*single, *PER_CPU]
        self._features = features[whole]
        self._rows = [row for row, is_whole in zip(rows, whole, strict=True) if is_whole]
        self.providers = self.texts("vendor")
        self.models = self.texts("cpu_model")

    def features_of(self, work: str) -> Array:
        """Returns the features of a work: none that the same tool measured."""
        tool = work.partition("_")[0] + "_"
        own = [place for place, name in enumerate(self._names) if name.startswith(tool)]
        return np.delete(self._features, own, axis=1)

    def texts(self, name: str) -> Array:
        """Returns a column of words."""
        return np.array([row[name] for row in self._rows])

    def numbers(self, name: str) -> Array:
        """Returns a column of numbers, NaN where there is none."""
        return np.array([number(row, name) for row in self._rows])


def number(row: dict[str, str], name: str) -> float:
    """Returns a cell; NaN where it is empty or no rate."""
    try:
        return float(row[name])
    except ValueError:
        return np.nan


def binomial_range(confidence: float, rows: int) -> tuple[float, float]:
    """Returns the central 95 % of the shares of rows that are covered by chance alone."""
    low, high = stats.binom.interval(0.95, rows, confidence)
    return float(low) / rows, float(high) / rows


def cells(types: Types, column: str, confidence: float) -> list[dict[str, Any]]:
    """Returns a row for each provider."""
    values = types.numbers(column)
    used = values > 0
    features, values = types.features_of(column)[used], values[used]
    providers, models = types.providers[used], types.models[used]
    result = []
    for provider in np.unique(providers):
        own = providers == provider
        if own.sum() < LEAST_OF_PROVIDER:
            continue
        groupings = {"provider": providers[~own], "CPU model": models[~own]}
        try:
            made = intervals.forecast(
                features[~own], values[~own], groupings, features[own], confidence=confidence
            )
        except Refused as why:
            result.append({"provider": str(provider), "refused": str(why)})
            continue
        result.append(cell(str(provider), made, values[own]))
    return result


def cell(provider: str, made: intervals.GroupForecast, values: Array) -> dict[str, Any]:
    """Returns the row of a provider."""
    near = made.is_near
    value, low, high, values = made.value[near], made.low[near], made.high[near], values[near]
    chance = binomial_range(made.confidence, len(values))
    return {
        "provider": provider,
        "types": len(near),
        "predicted": len(values),
        "coverage": float(np.mean((low <= values) & (values <= high))),
        "chance_low": chance[0],
        "chance_high": chance[1],
        "error": float(np.median(np.abs(values / value - 1))),
        "bias": float(np.median(values / value - 1)),
        "half_width": float(np.median(high / value - 1)),
        "scale": made.shape.scale,
        "noise": made.shape.noise,
        "amplitude": made.shape.amplitude,
    }


def line(row: dict[str, Any]) -> str:
    """Returns a row as text."""
    if "refused" in row:
        return f"{row['provider']:<10} {row['refused']}"
    return (
        f"{row['provider']:<10} {row['predicted']:>5} of {row['types']:>5}  covered "
        f"{row['coverage']:6.1%} (chance {row['chance_low']:.0%} to {row['chance_high']:.0%})  "
        f"error {row['error']:6.1%}  bias {row['bias']:+6.1%}  half width {row['half_width']:4.0%}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", type=Path)
    parser.add_argument("--work", action="append", help="of the list, or a column of the file")
    parser.add_argument("--confidence", action="append", type=float)
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    options = parser.parse_args(arguments)
    types = Types(options.types)
    results = []
    for confidence in options.confidence or (0.9,):
        for work in options.work or WORKS:
            begun = time.process_time()
            for row in cells(types, WORKS.get(work, work), confidence):
                results.append({"work": work, "confidence": confidence, **row})
                print(f"{work:<12} {confidence:.0%}  {line(row)}", flush=True)
            print(f"{work:<12} {time.process_time() - begun:.1f} s of CPU time", flush=True)
    if options.write:
        _paired.write_result("held-out-providers", {"cells": results})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
