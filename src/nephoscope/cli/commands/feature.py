"""Commands that belong to no feature of their own: measuring, stored runs, files, this host."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

MEASURING = Feature(
    "measuring",
    commands=tuple(f".cli.commands.{name}:{name}" for name in ("survey", "run", "bench", "noise")),
    topic=Topic.MEASURE,
)
STORED_RUNS = Feature(
    "stored_runs",
    commands=tuple(f".cli.commands.{name}:{name}" for name in ("show", "runs", "stop", "verify")),
    topic=Topic.RESULTS,
)
FILES = Feature(
    "files",
    commands=(".cli.commands.import_:import_", ".cli.commands.merge:merge"),
    topic=Topic.RESULTS,
)
HOST = Feature(
    "host",
    commands=(
        ".cli.commands.list_:list_",
        *(
            f".cli.commands.{name}:{name}"
            for name in ("doctor", "config", "schema", "completion", "help_")
        ),
    ),
)
EMULATION = Feature("emulation", commands=(".cli.commands.lab:lab",), topic=Topic.EMULATE)
