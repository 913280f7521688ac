"""UnixBench, the BYTE UNIX Benchmarks."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter, version_by_usage
from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolError,
    check_ending,
    matched,
    numbers,
)
from nephoscope.catalog.adapters.quantities import Params, choice, rate, whole
from nephoscope.catalog.adapters.reports import scalars
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Sample

_TESTS = (
    *("index", "dhry2reg", "whetstone-double", "execl", "fstime", "fsbuffer", "fsdisk"),
    *("pipe", "context1", "spawn", "syscall", "shell1", "shell8"),
)
_ROW = r"^(\S.*?) {2,}([0-9]+\.[0-9]) +([0-9]+\.[0-9]) +([0-9]+\.[0-9])\n"
_SCORE = r"^System Benchmarks Index Score(?: \(Partial Only\))? +([0-9]+\.[0-9])\n"


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    (score,) = numbers(output, _SCORE, "its index score")
    matched(output, r"^System Benchmarks (?:Partial )?Index {2,}(BASELINE) .*\n", "its table")
    table = output.stdout.partition("  BASELINE  ")[2].partition(" ========")[0]
    rows = re.findall(_ROW, table, re.MULTILINE | re.ASCII)
    if not rows or score == 0:
        raise ToolError("its table of indexes has no rows.")
    lines = [line for line in table.splitlines()[1:] if line.strip()]
    if len(lines) != len(rows):
        raise ToolError(f"its table has '{lines[0][:60]}' among its rows.")
    samples = scalars({"index_score": score}, test="all")
    for name, _, result, index in rows:
        values = {"result_score": float(result), "index_score": float(index)}
        samples += scalars(values, test=name)
    return samples


def _command(params: Params) -> ToolCommand:
    times = ("-c", str(params["copies"]), "-i", str(params["iterations"]))
    return ToolCommand(
        (*times, params["test"]),
        # It builds its programs with make in the folder where it starts unless `make` is another.
        environment={"MAKE": "true", "UB_TMPDIR": "{scratch}", "UB_RESULTDIR": "{scratch}"},
    )


ADAPTER = adapter(
    "unixbench",
    "UnixBench: index of a system's basic operations",
    resource=Resource.SEVERAL,
    tool="Run",
    minimum="5.1",
    install="make, in UnixBench of github.com/kdlucas/byte-unixbench, and that folder in PATH",
    source="BYTE UNIX Benchmarks, github.com/kdlucas/byte-unixbench",
    version=version_by_usage("Run: unknown option --version", "5.1"),
    params=(
        choice("test", _TESTS, "Which of its tests; `index` has all twelve (28 minutes)."),
        whole("copies", 1, 1, 1_024, "Copies of a test at a time (`-c`)."),
        whole(
            "iterations", 10, 1, 1_000, "Times that a test runs, a third of them if long (`-i`)."
        ),
    ),
    metrics=(
        rate("index_score", "Result over that of a SPARCstation 20-61, times 10.", unit="none"),
        rate("result_score", "Result in the unit of the test.", headline=False, unit="none"),
    ),
    command=_command,
    parse=_parse,
    overhead="one CPU for each copy",
    measures="""
How many operations a second basic programs do: integers and strings (Dhrystone), floating point
(Whetstone), system calls, pipes, context switches, processes, scripts, copying of files.""",
    how="""
Its program `Run` is called in a scratch folder; it runs each test `iterations` times, drops the
worst third, and takes the geometric mean. Rows of its table are samples with the factor `test`;
`all` is its index, the geometric mean over the tests.""",
    truth="An index is the result over the baseline in its table, times 10.",
    cross_check="`sys.calls` has getpid, pipe, context switch, fork and exec; `lmbench.…`.",
    caveats="""
No package of Debian has it: build it with its own `make` and put its folder into PATH. The
compiler and its options decide about Dhrystone and Whetstone, so that builds differ between
machines. Its test of system calls does several of them at once. An index over all tests hides
opposite differences. The captures are of version 6.0.0, built from its source; set-ups for
tests do not install it.""",
)
