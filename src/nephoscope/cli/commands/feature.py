"""Commands that belong to no feature of their own: measuring, stored runs, files, this host."""

from __future__ import annotations

from nephoscope.results.feature import Feature

MEASURING = Feature(
    "measuring",
    commands=tuple(f".cli.commands.{name}:{name}" for name in ("survey", "run", "bench", "noise")),
)
STORED_RUNS = Feature(
    "stored_runs",
    commands=tuple(f".cli.commands.{name}:{name}" for name in ("runs", "show", "stop", "verify")),
)
FILES = Feature(
    "files",
    commands=(".cli.commands.import_:import_", ".cli.commands.merge:merge"),
)
HOST = Feature(
    "host",
    commands=(
        ".cli.commands.list_:list_",
        *(
            f".cli.commands.{name}:{name}"
            for name in ("doctor", "config", "schema", "completion", "version", "lab")
        ),
    ),
)
