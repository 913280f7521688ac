"""Crafty, by Robert Hyatt: a chess program with a benchmark of its own."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, figure, rate, time, whole
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import Resource

_REPORT = (
    r"Running serial benchmark(?: \([^\n]*\))?\. \. \.\n(?:pos:[^\n]*\n)+\n"
    r"Total nodes: ([0-9]+)\nRaw nodes per second: ([0-9]+)\nTotal elapsed time: ([0-9]+\.[0-9]+)\n"
)


def _command(params: Params) -> ToolCommand:
    return ToolCommand(input=f"bench {params['depth'] - 16}\nquit\n")


ADAPTER = adapter(
    "crafty",
    "Crafty: chess positions searched a second",
    resource=Resource.CPU,
    minimum="25",
    install="make, in the source of Crafty (craftychess.com), and `crafty` in PATH",
    source="Hyatt, Crafty, craftychess.com",
    version=r"^Crafty v([0-9]+\.[0-9]+)",
    # Called with commands as arguments it does not state its version.
    version_command=ToolCommand(input="quit\n", paths=("/usr/games",)),
    paths=("/usr/games",),
    params=(whole("depth", 16, 4, 30, "Depth of the search (`bench`, whose own depth is 16)."),),
    command=_command,
    figures=(
        Figures(
            "its serial benchmark", _REPORT, {"nodes_count": 1, "nodes_per_s": 1, "elapsed_ns": 1e9}
        ),
    ),
    metrics=(
        rate("nodes_per_s", "Positions searched a second by one thread."),
        time("elapsed_ns", "Time of the search."),
        figure("nodes_count", "count", "Positions searched; the same for one depth and version."),
    ),
    overhead="one CPU, then all of them",
    measures="How fast a CPU works on integers and unpredictable branches.",
    how="""
Its benchmark searches 64 positions with one thread, and two of them again with several. The
figures are of the first part.""",
    truth="The searched positions of one thread are the same number each time.",
    cross_check="`7zip` and `sysbench.cpu` are other programs on integers.",
    overhead_page="One CPU, then all of them for the second part, which is not reported.",
    caveats="""
It counts hundredths of a second: depths below 12 take less than one. Its licence permits
personal use. No registry has it: the captures are of version 25.2, built from its source;
set-ups for tests do not install it.""",
)
