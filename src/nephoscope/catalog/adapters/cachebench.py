"""CacheBench, of the suite LLCbench by Philip Mucci: bandwidth over the size of an array."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter, version_by_usage
from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    check_ending,
    last_words,
)
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    seconds,
    throughput,
    whole,
)
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Sample

_OPERATIONS = {"read": "-r", "write": "-w", "read-write": "-b", "memset": "-s", "memcpy": "-p"}
_END = "end of the report"
_LINE = re.compile(r"([0-9]+) (-?nan|[0-9]+\.[0-9]+)", re.ASCII)


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    *lines, end, rest = ["", *output.stdout.split("\n")]
    if (end, rest) != (_END, ""):
        raise ToolError(f"its report is cut off.{last_words(output)}")
    samples = []
    for line in filter(None, lines):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ToolError(f"its report has '{line[:60]}' among its lines.")
        size, value = int(match[1]), match[2]
        # Where its timer ended before the first pass, it has no value.
        if "nan" not in value and float(value):
            factors = {"array_bytes": size}
            samples.append(Sample("memory_bytes_per_s", float(value) * 2**20, factors=factors))
    if not samples:
        raise ToolError(f"it measured no size.{last_words(output)}")
    return samples


def _command(params: Params) -> ToolCommand:
    limit_s = seconds("cachebench", params)
    sizes = ("-m", str(params["memory_bits"]), "-x", "1", "-e", "1")
    words = (_OPERATIONS[params["operation"]], *sizes, "-d", str(limit_s))
    # Its report has no last line of its own.
    return ToolCommand(words, after=(ToolStep("echo", (_END,)),))


ADAPTER = adapter(
    "cachebench",
    "CacheBench: memory bandwidth over the size of an array",
    resource=Resource.MEMORY,
    minimum="1.0",
    install="make cache-bench, in the source of LLCbench, and `cachebench` in PATH",
    source="Mucci and London, The CacheBench Report, 1998; LLCbench",
    version=version_by_usage("-m Specify the log2(available physical memory)", "1.0"),
    version_command=("-h",),
    params=(
        choice("operation", _OPERATIONS, "What is done with the array."),
        whole("memory_bits", 24, 10, 40, "Largest array: 2 to this power bytes (`-m`)."),
        duration(1),
    ),
    metrics=(throughput("memory_bytes_per_s", "Bytes a second, by `array_bytes`."),),
    command=_command,
    parse=_parse,
    overhead="one CPU, and the memory of the largest array",
    measures="How many bytes a second one thread reads, writes, changes, sets or copies in "
    "arrays from 256 bytes up: the levels of the caches show as steps.",
    how="Two sizes for each power of two, each for `duration_ns`; each is a sample with the "
    "factor `array_bytes`.",
    truth="Arrays that fit into the first cache are as fast as each other.",
    cross_check="`mem.cache` and `mem.stream`; `lmbench.memory`; `ramspeed`.",
    overhead_page="One CPU; the whole takes twice `duration_ns` for each power of two from 256 "
    "bytes.",
    caveats="""
It prints no value for some small sizes, which are left out. A compiler that makes vector
instructions of its loops changes the figures by a factor of two and more. No registry has it:
the captures are of version 1.9 of its file of 2008, built from its source; set-ups for tests do
not install it.""",
)
