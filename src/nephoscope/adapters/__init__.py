"""Well-known tools as benchmarks: one file each, listed here in the order of lists and pages.

To add one: a file `<tool>.py` with its ADAPTER, its line in the table below, captures of the real
tool's output in `tests/golden/<tool>/`; `make generate` does the rest. Pure: nothing is run here.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nephoscope.adapters import (
    ab,
    db_pgbench,
    db_sqlite,
    h2load,
    http_nginx,
    httperf,
    lb_haproxy,
    lb_nginx,
    memtier,
    postmark,
    redis_benchmark,
    siege,
    sysbench,
    wrk,
)
from nephoscope.adapters.frame import Adapter, Command, Output, Server, ToolError

_TABLE = (
    ab.ADAPTER,
    db_pgbench.ADAPTER,
    db_sqlite.ADAPTER,
    h2load.ADAPTER,
    http_nginx.ADAPTER,
    httperf.ADAPTER,
    lb_haproxy.ADAPTER,
    lb_nginx.ADAPTER,
    memtier.ADAPTER,
    postmark.ADAPTER,
    redis_benchmark.ADAPTER,
    siege.ADAPTER,
    *sysbench.ADAPTERS,
    wrk.ADAPTER,
)

ADAPTERS: dict[str, Adapter] = {adapter.spec.id: adapter for adapter in _TABLE}
"""Name of the benchmark -> its adapter."""


def document() -> dict[str, Any]:
    """All declarations, as contracts/adapters.json has them."""
    specs = [adapter.spec for adapter in ADAPTERS.values()]
    return {"adapters": [_without_nothing(dataclasses.asdict(spec)) for spec in specs]}


def _without_nothing(item: dict[str, Any]) -> dict[str, Any]:
    """A parameter's bounds and choices only where it has any, as the probe writes them."""
    params = [
        {key: value for key, value in param.items() if value is not None and value != ()}
        for param in item["params"]
    ]
    return {**item, "params": params}


__all__ = ["ADAPTERS", "Adapter", "Command", "Output", "Server", "ToolError", "document"]
