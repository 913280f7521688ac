"""sleep, the program of coreutils, as a benchmark."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand
from nephoscope.catalog.adapters.quantities import Params, figure, whole
from nephoscope.catalog.meaning import Resource


def _command(params: Params) -> ToolCommand:
    return ToolCommand((f"{params['milliseconds'] / 1000}",))


def _figures(output: Output) -> dict[str, float]:
    return {"slept_ns": float(output.elapsed_ns)}


ADAPTER = adapter(
    "toy.sleep",
    "sleep: how long a short sleep takes",
    resource=Resource.SCHEDULER,
    tool="sleep",
    minimum="5",
    install="apt-get install coreutils",
    source="coreutils",
    version=r"^sleep \(GNU coreutils\) ([0-9]+(?:\.[0-9]+)+)",
    params=(whole("milliseconds", 1, 1, 1000, "Duration.", "none"),),
    command=_command,
    figures=_figures,
    metrics=(figure("slept_ns", "ns", "Duration of the program."),),
    overhead="none",
    measures="How long a short sleep takes.",
    how="The program runs once.",
    truth="The duration is at least the one asked for.",
    cross_check="None.",
    overhead_page="None.",
    caveats="It starts a program.",
)
