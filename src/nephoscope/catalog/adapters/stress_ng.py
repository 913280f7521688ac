"""stress-ng, by Colin Ian King: four of its stressors, each a benchmark."""

from __future__ import annotations

from nephoscope.catalog import ParamSpec
from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import Adapter, ToolCommand
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    rate,
    seconds,
    threads,
    whole,
)
from nephoscope.catalog.meaning import Resource

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_COLUMN = r" +[0-9]+(?:\.[0-9]+)?"
_CPU_METHODS = (
    *("all", "ackermann", "bitops", "correlate", "crc16", "decimal64", "div16", "double"),
    *("euler", "fft", "fibonacci", "float", "gcd", "hanoi", "hyperbolic", "int64", "jmp", "log"),
    *("loop", "matrixprod", "nsqrt", "phi", "pi", "prime", "queens", "rand", "sqrt"),
    *("trig", "zeta"),
)


def _adapter(
    stressor: str,
    summary: str,
    measures: str,
    caveats: str,
    *,
    resource: Resource,
    params: tuple[ParamSpec, ...] = (),
    overhead: str = "one CPU for each process",
) -> Adapter:
    def command(values: Params) -> ToolCommand:
        limit_s = seconds("stress-ng", values)
        words = [f"--{stressor}", str(values["threads"]), "--timeout", f"{limit_s}s"]
        for param in params:
            name = param.id.removesuffix("_bytes").replace("_", "-")
            words += [f"--{stressor}-{name}", str(values[param.id])]
        return ToolCommand((*words, "--metrics-brief"))

    return adapter(
        f"stress-ng.{stressor}",
        f"stress-ng: {summary}",
        resource=resource,
        tool="stress-ng",
        minimum="0.13",
        source="King, stress-ng, github.com/ColinIanKing/stress-ng",
        version=r"^stress-ng, version ([0-9]+(?:\.[0-9]+)+)",
        on_stderr=True,
        params=(*params, threads("Processes."), duration(3)),
        command=command,
        figures=(
            Figure(
                rate("operations_per_s", "Operations a second of elapsed time."),
                rf"^stress-ng: .*\] {stressor}{_COLUMN * 4} +{_NUMBER}{_COLUMN}\n",
            ),
        ),
        overhead=overhead,
        measures=measures,
        how=f"The stressor `{stressor}` of stress-ng runs for a set time in each process.",
        truth="Its operations a second are its operations over the elapsed time it reports.",
        cross_check="`cpu.pi`, `mem.stream` and `mem.cache` measure the same parts natively.",
        overhead_page=overhead[0].upper() + overhead[1:] + ".",
        caveats=f"""
{caveats} An operation is what that version of stress-ng makes of it: compare rates of one version
only.""",
    )


CPU = _adapter(
    "cpu",
    "one of its CPU methods",
    "How often a second a CPU does one of many small computations.",
    "`all` takes turns among all methods, so that short runs see other mixtures.",
    resource=Resource.CPU,
    params=(choice("method", _CPU_METHODS, "Computation (`--cpu-method`).", default="matrixprod"),),
)
STREAM = _adapter(
    "stream",
    "memory bandwidth by the loops of STREAM",
    "How fast memory is read and written by the four loops of STREAM.",
    "The memory rate is that of all four loops together, read and written.",
    resource=Resource.MEMORY,
    overhead="one CPU for each process, and four times its last-level cache of memory",
)
CACHE = _adapter(
    "cache",
    "cache thrashing",
    "How often a second caches are read and written all over.",
    "It is made to disturb, not to measure: fences and prefetches change with versions.",
    resource=Resource.CACHE,
)
VM = _adapter(
    "vm",
    "mapping, filling and checking memory",
    "How fast memory is mapped, written with patterns and checked.",
    "Each method checks what it wrote; an error makes the trial fail.",
    resource=Resource.MEMORY,
    params=(whole("bytes", 64 << 20, 4_096, 1 << 40, "Memory of a process.", "bytes"),),
    overhead="one CPU for each process, and `bytes` of memory",
)

ADAPTERS = (CPU, STREAM, CACHE, VM)
