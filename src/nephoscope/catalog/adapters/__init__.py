"""Well-known tools as benchmarks: one file each, listed here in the order of lists and pages.

docs/contributing/adapter.md describes how to add one. Pure: nothing is run here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from nephoscope.catalog import (
    ADAPTER,
    MEANING,
    MEANING_OF_METRIC,
    BenchmarkSpec,
    adapters_of_other_packages,
    check_resource,
    kind_of_own,
)
from nephoscope.catalog.adapters.frame import Adapter, Output, ToolCommand, ToolError, ToolServer

_FILES = """
ab autoscaler blogbench bonnie c_ray cachebench crafty db_pgbench db_sqlite db_ycsb dbench dd
fio fping h2load http_apache http_nginx httperf ioping iozone iperf iperf3 john lb_haproxy lb_nginx
likwid_bench lmbench mbw memtier mtr netperf nuttcp ping openssl perf phoronix postmark qperf
ramspeed redis_benchmark rt_tests sevenzip siege sockperf stress_ng sysbench unixbench wrk xz
"""


def _adapters_of(file: str) -> tuple[Adapter, ...]:
    module = import_module(f"{__name__}.{file}")
    several: tuple[Adapter, ...] = getattr(module, "ADAPTERS", ())
    return several or (module.ADAPTER,)


@cache
def _own() -> dict[str, Adapter]:
    own = {adapter.spec.id: adapter for file in _FILES.split() for adapter in _adapters_of(file)}
    for adapter in own.values():
        check_resource(adapter.spec)
    return own


class _Adapters(Mapping[str, Adapter]):
    """All adapters, imported when one is looked up that is no benchmark of another kind.

    Those of other packages import this module: they are found at the first use.
    """

    @cached_property
    def _every(self) -> dict[str, Adapter]:
        return {**_own(), **{adapter.spec.id: adapter for adapter in adapters_of_other_packages()}}

    def __getitem__(self, name: str) -> Adapter:
        if "_every" in vars(self):
            return self._every[name]
        if kind_of_own(name) not in (None, ADAPTER):
            raise KeyError(name)
        return _own().get(name) or self._every[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)


ADAPTERS = _Adapters()
"""Name of the benchmark -> its adapter, those of other packages last."""


def document() -> dict[str, Any]:
    """All declarations of this program, as the built adapters.json has them."""
    specs = [adapter.spec for adapter in _own().values()]
    return {"adapters": [_without_nothing(dataclasses.asdict(spec)) for spec in specs]}


def _without_nothing(item: dict[str, Any]) -> dict[str, Any]:
    """A parameter's bounds and choices, and what states the meaning of benchmark and metric, only
    where there is any, as the probe writes them."""
    params = [
        {key: value for key, value in param.items() if value is not None and value != ()}
        for param in item["params"]
    ]
    metrics = [
        {key: value for key, value in metric.items() if key not in MEANING_OF_METRIC or value}
        for metric in item["metrics"]
    ]
    stated = {key: value for key, value in item.items() if value != _UNSTATED.get(key, item)}
    return {**stated, "params": params, "metrics": metrics}


_UNSTATED = {
    field.name: field.default
    for field in dataclasses.fields(BenchmarkSpec)
    if field.name in MEANING
}


__all__ = ["ADAPTERS", "Adapter", "Output", "ToolCommand", "ToolError", "ToolServer", "document"]
