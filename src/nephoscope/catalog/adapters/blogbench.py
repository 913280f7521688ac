"""Blogbench, by Frank Denis: the files of a busy blog server."""

from __future__ import annotations

from nephoscope.catalog import ParamSpec
from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    options,
    period,
    rate,
    whole,
)
from nephoscope.catalog.meaning import RequestLoop, Resource


def _threads(name: str, option: str, default: int, what: str) -> ParamSpec:
    return whole(name, default, 1, 10_000, f"Threads that {what} (`{option}`).")


_OPTIONS = {
    "-i": "iterations",
    "-s": "interval_s",
    "-w": "writers",
    "-W": "rewriters",
    "-c": "commenters",
    "-r": "readers",
}


def _command(params: Params) -> ToolCommand:
    values = {**params, "interval_s": params["interval_ns"] // 1_000_000_000}
    return ToolCommand(
        ("-d", ".", *options(values, _OPTIONS)),
        directory=params["directory"],
        needs_bytes=params["space_bytes"],
    )


ADAPTER = adapter(
    "blogbench",
    "Blogbench: reads and writes of small files by many threads",
    resource=Resource.DISK,
    request_loop=RequestLoop.CLOSED,
    minimum="1.1",
    install="make, in the source of github.com/jedisct1/Blogbench, and `blogbench` in PATH",
    source="Denis, Blogbench, github.com/jedisct1/Blogbench",
    version=r"^blogbench ([0-9]+\.[0-9]+)\n",
    version_command=("-h",),
    params=(
        DIRECTORY,
        whole("space_bytes", 1 << 30, 0, 1 << 50, "Disk space, checked before the run.", "bytes"),
        whole("iterations", 30, 2, 100_000, "Intervals that are counted (`-i`)."),
        period(
            "interval_ns", "10s", "1s", "1h", "Time of an interval, rounded down to seconds (`-s`)."
        ),
        _threads("writers", "-w", 3, "write articles and pictures"),
        _threads("rewriters", "-W", 1, "change articles and pictures"),
        _threads("commenters", "-c", 5, "add comments"),
        _threads("readers", "-r", 100, "read all of them"),
    ),
    command=_command,
    figures=(
        Figure(
            rate("write_score", "Largest number of blogs at once, as it counts them.", unit="none"),
            r"^Final score for writes: +([0-9]+)\n",
        ),
        Figure(
            rate("read_score", "Reads in an interval, weighted and averaged by it.", unit="none"),
            r"^Final score for reads : +([0-9]+)\n",
        ),
    ),
    overhead="all CPUs and the disk",
    measures="How well a file system serves many threads that read, add and change small files.",
    how="Threads work on a tree of blogs in a scratch folder; every interval it counts what "
    "was done.",
    truth="Its table counts the operations of each kind, of which the scores are made.",
    cross_check="`postmark` and `dbench` are other mixes of small files.",
    overhead_page="All CPUs, and the disk; its tree grows with the iterations.",
    caveats="""
Scores are weights of operations, comparable for the same options and the same version only.
Reads come from the page cache while the tree fits into memory. The default takes five minutes.
No registry has it: the captures are of version 1.2, built from its source; set-ups for tests do
not install it.""",
)
