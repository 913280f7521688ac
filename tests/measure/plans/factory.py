"""A catalogue of the tests' own, so that they do not follow every change of a benchmark."""

from __future__ import annotations

from typing import Any

from nephoscope import catalog


def param(name: str, kind: str, unit: str = "none", **more: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "unit": unit, "default": more.pop("default", 1), **more} | {
        "doc": "A parameter."
    }


def benchmark(name: str, params: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    metric = {
        "id": "time_ns",
        "unit": "ns",
        "better": "lower",
        "shape": "scalar",
        "headline": True,
        "doc": "A time.",
    }
    return {
        "id": name,
        "summary": "",
        "params": params,
        "metrics": [metric],
        "overhead": "",
        "source": "",
        "two_sided": False,
        "page": "",
        **more,
    }


CATALOG = catalog.parse(
    {
        "probe": "0.1.0",
        "protocol": 1,
        "benchmarks": [
            benchmark(
                "cpu.work",
                [
                    param("threads", "int", min=0, max=64),
                    param("size_bytes", "int", "bytes", min=1, max=1 << 40, default=4096),
                    param("wait_ns", "int", "ns", min=0, max=10**12, default=0),
                    param("share_ratio", "float", "ratio", min=0.0, max=1.0, default=0.5),
                    param("pin", "bool", default=True),
                    param("mode", "choice", choices=["fast", "no"], default="fast"),
                    param("label", "text", default=""),
                    param("words", "text_list", default=[]),
                    param("lengths", "int_list", "bytes", min=1, max=1 << 40, default=[]),
                    param("ops", "choice_list", choices=["read", "write"], default=[]),
                ],
            ),
            benchmark("disk.work", [param("depth", "int", min=1, max=64)]),
            benchmark(
                "load.work",
                [
                    param("duration_ns", "int", "ns", min=0, max=10**12, default=0),
                    param("strength", "int", min=1, max=100),
                ],
                load=True,
            ),
            benchmark(
                "net.work",
                [param("duration_ns", "int", "ns", min=0, max=10**12, default=10**9)],
                two_sided=True,
                load=True,
            ),
        ],
    }
)
